"""Folders that a command empties before it fills them: never those of somebody else."""

import shutil
from pathlib import Path

import click

from tools.project import ROOT

MARK = ".emptied-by-umqtt31"
_TEXT = "A command of umqtt31 filled this folder, and empties it before it does so again.\n"
_OURS = (ROOT / "build", ROOT / "dist")


def make_empty(folder: Path) -> Path:
    """Make `folder`, empty but for a mark -> its path without links.

    What is in it is deleted only if the mark says that a command made it, or below
    build/ and dist/.  Raises click.ClickException otherwise, with nothing touched.
    """
    folder = folder.resolve()
    is_ours = (folder / MARK).exists() or any(folder.is_relative_to(top) for top in _OURS)
    if not is_ours and folder.exists() and any(folder.iterdir()):
        raise click.ClickException(
            f"{folder} would be emptied first, and holds files of yours: name another folder"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(_TEXT, encoding="utf-8")
    return folder
