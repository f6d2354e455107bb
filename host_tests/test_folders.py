"""No command empties a folder that it did not make."""

import io

import click
import pytest
from rich.console import Console

from host_tests.running import said_by
from tools import folders
from tools.demo.stage import Stage
from tools.dist import cli as dist
from tools.docs import cli as docs
from tools.micropython import choose


@pytest.fixture
def theirs(tmp_path):
    """A folder of somebody's, with a file and a folder in it."""
    folder = tmp_path / "home"
    (folder / "letters").mkdir(parents=True)
    (folder / "letters" / "one.txt").write_text("dear")
    return folder


def holds(folder):
    return sorted(path.name for path in folder.rglob("*") if path.name != folders.MARK)


@pytest.mark.parametrize("command", [[dist.cli], [docs.cli, "build"]])
def test_command_refuses_to_empty_somebodys_folder_before_it_does_anything(theirs, command):
    output = said_by(*command, "--out", theirs, status=1)
    assert "holds files of yours: name another folder" in output
    assert holds(theirs) == ["letters", "one.txt"]


def test_stage_of_demo_and_soak_refuses_it_too(theirs):
    with pytest.raises(click.ClickException, match="holds files of yours"):
        Stage(theirs, choose(), Console(file=io.StringIO()))
    assert holds(theirs) == ["letters", "one.txt"]


def test_folder_that_is_new_or_empty_or_was_made_so_is_emptied(tmp_path):
    folder = folders.make_empty(tmp_path / "deep" / "new")
    (folder / "old").mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert folders.make_empty(link) == folder
    assert holds(folder) == []
    (tmp_path / "empty").mkdir()
    assert holds(folders.make_empty(tmp_path / "empty")) == []


def test_folder_below_build_and_dist_is_ours_and_what_holds_them_is_not(theirs, monkeypatch):
    monkeypatch.setattr(folders, "_OURS", (theirs / "letters",))
    assert holds(folders.make_empty(theirs / "letters")) == []
    (theirs / "letters" / "one.txt").touch()
    with pytest.raises(click.ClickException, match="holds files of yours"):
        folders.make_empty(theirs)
    assert holds(theirs) == ["letters", "one.txt"]
