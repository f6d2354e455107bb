"""`python -m tools`: groups are found without importing them; errors are one line."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from host_tests.__main__ import main as main_of_tests
from tools import __main__ as command_line
from tools.project import ROOT


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of groups in the place of tools/, importable as such."""
    package = tmp_path / "tools"
    (package / "deep").mkdir(parents=True)
    (package / "deep" / "__init__.py").write_text('"""Digs deep.\n\nMore."""\n')
    (package / "deep" / "cli.py").write_text("import no_such_package_anywhere\ncli = None\n")
    (package / "flat.py").write_text('"""Rolls flat."""\ndef cli(): pass\n')
    (package / "silent.py").write_text('"""No command."""\nCLI = 1\n')
    (package / "__main__.py").write_text("def cli(): pass\n")
    monkeypatch.setattr(command_line, "_TOOLS", package)
    return package


def test_find_groups_takes_packages_and_modules_with_a_cli(folder):
    assert list(command_line.find_groups(folder)) == ["deep", "flat"]


def test_summary_is_the_first_line_of_the_docstring(folder):
    found = command_line.find_groups(folder)
    assert command_line.summary(found["deep"]) == "Digs deep."
    assert command_line.summary(found["flat"]) == "Rolls flat."


def test_help_lists_a_group_whose_imports_are_missing(monkeypatch, folder):
    monkeypatch.setattr(
        command_line, "find_groups", lambda _: {"deep": folder / "deep" / "cli.py"}
    )
    result = CliRunner().invoke(command_line.main, ["--help"])
    assert result.exit_code == 0
    assert "Digs deep." in result.output


def test_group_with_a_missing_package_says_what_to_do(monkeypatch, folder):
    (folder.parent / "tools" / "absent.py").write_text("import no_such_package_anywhere\ncli = 0")
    monkeypatch.setattr(command_line, "find_groups", lambda _: {"absent": folder / "absent.py"})
    monkeypatch.setattr(sys.modules["tools"], "__path__", [str(folder)])
    result = CliRunner().invoke(command_line.main, ["absent"])
    assert result.exit_code == 1
    assert result.output == (
        "Error: absent needs the Python package 'no_such_package_anywhere': run `make setup`\n"
    )


@pytest.mark.parametrize("main", [command_line.main, main_of_tests], ids=lambda main: main.name)
def test_every_group_of_the_project_is_a_click_command(main):
    context = click.Context(main)
    assert len(main.list_commands(context)) > 5
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert isinstance(command, click.Command), name


@pytest.mark.parametrize("package", ["tools", "host_tests"])
def test_unknown_group_exits_with_2_and_no_traceback(package):
    command = [sys.executable, "-m", package, "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


def test_tools_outside_of_the_environment_go_on_inside():
    """A Python without packages (-I -S), as the computer's own is."""
    code = (
        "import sys, runpy; sys.path.insert(0, '.'); "
        "sys.argv[1:] = ['boards', 'show', '--board', 'desk']; "
        "runpy.run_module('tools', run_name='__main__')"
    )
    python = sys.base_prefix + "/bin/python3"
    done = subprocess.run(
        [python, "-I", "-S", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "title" in done.stdout


@pytest.mark.parametrize("environment", ["missing", "this one"])
def test_tools_stay_where_no_other_environment_is(environment, monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(command_line.os, "execv", lambda *command: started.append(command))
    folder = tmp_path if environment == "missing" else Path(sys.prefix)
    monkeypatch.setattr(command_line, "_VENV", folder)
    command_line.go_on_in_venv()
    assert started == []


def test_help_imports_no_group():
    code = "import sys, runpy; sys.argv[1:] = ['--help']\n" + (
        "try: runpy.run_module('tools', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('tools.') and m != 'tools.__main__'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words",
    [
        ["sim", "run", "--seconds", "-1"],
        ["sim", "run", "--seconds", "0"],
        ["fuzz", "run", "--seconds", "0"],
        ["soak", "--minutes", "-1"],
    ],
)
def test_number_that_means_nothing_is_refused_with_its_option(words):
    """Zero seconds kept every promise, or never ended."""
    done = CliRunner().invoke(main_of_tests, words)
    assert done.exit_code == 2
    assert f"Invalid value for '{words[-2]}'" in done.output


def test_port_that_means_nothing_is_refused_with_its_option():
    done = CliRunner().invoke(command_line.main, ["docs", "serve", "--port", "99999"])
    assert done.exit_code == 2
    assert "Invalid value for '--port'" in done.output
