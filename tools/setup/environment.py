"""The virtual environment `.venv` with what pyproject.toml pins, and stubs beside it.

The list of what is installed is kept in each folder; as long as all that is wanted
stands in it there is nothing to do.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tools.project import ROOT

from . import SetupError

_PYPROJECT = ROOT / "pyproject.toml"
VENV = ROOT / ".venv"
STUBS = ROOT / ".tools" / "stubs"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
_INSTALLED = "installed.txt"


def wanted(pyproject: Path = _PYPROJECT, groups: Collection[str] = ()) -> list[str]:
    """Every pinned requirement of `groups`, of all if there are none, sorted."""
    project = _read(pyproject)["project"]
    pins = {"tools": project.get("dependencies", []), **project["optional-dependencies"]}
    return sorted({pin for group in groups or pins for pin in pins[group]})


def wanted_stubs() -> dict[str, list[str]]:
    """The pinned stubs of each MicroPython port."""
    stubs: dict[str, list[str]] = _read(_PYPROJECT)["tool"]["umqtt31"]["stubs"]
    return stubs


def _read(pyproject: Path) -> dict[str, Any]:
    return tomllib.loads(pyproject.read_text())


def install(groups: Collection[str] = ()) -> bool:
    """Make `.venv` hold what `groups`, or all of them, want; returns whether it did not yet."""
    pins = wanted(groups=groups)
    is_whole = _is_whole()
    if is_whole and _holds(VENV, pins):
        return False
    if not is_whole:
        _make()
    print(f"setup: installing {', '.join(groups) or 'all'} Python packages", flush=True)
    # Python compiles a module when it is first imported; most never are.
    _pip_install(VENV, pins, "--no-compile", kept=set(wanted()))
    return True


def _is_whole() -> bool:
    # Without a list the set-up was interrupted.  After an upgrade of the system the packages are
    # in the folder of another Python, where this one does not look.
    program = PYTHON.resolve()
    is_named = re.fullmatch(r"python3\.\d+", program.name)
    return (
        program.exists()
        and (VENV / _INSTALLED).exists()
        and (not is_named or (VENV / "lib" / program.name).exists())
    )


def _make() -> None:
    print("setup: making the virtual environment .venv", flush=True)
    try:
        venv.create(VENV, with_pip=True, clear=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        # pip's own error line, not the end of the traceback that follows.
        said = (error.output or b"").decode(errors="replace").strip().splitlines()
        why = [line for line in said if line.startswith("ERROR: ")] or said or [str(error)]
        raise SetupError(f".venv could not be made: {why[-1]}") from error


def install_stubs() -> bool:
    """Make the folders of stubs hold what is wanted; returns whether anything was to do."""
    did = [_install_stubs(STUBS / port, pins) for port, pins in wanted_stubs().items()]
    return any(did)


def _install_stubs(folder: Path, pins: list[str]) -> bool:
    if _holds(folder, pins):
        return False
    print(f"setup: installing MicroPython stubs of {folder.name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _pip_install(folder, pins, "--no-deps", "--target", str(folder))
    return True


def _holds(folder: Path, pins: list[str]) -> bool:
    return set(pins) <= _installed(folder)


def _installed(folder: Path) -> set[str]:
    noted = folder / _INSTALLED
    return set(noted.read_text().splitlines()) if noted.exists() else set()


def _pip_install(
    folder: Path, pins: list[str], *options: str, kept: Collection[str] = frozenset()
) -> None:
    # PEP 517: pyspark comes as source, and older versions of pip would call its setup.py.
    options = ("--disable-pip-version-check", "--use-pep517", *options)
    command = [str(PYTHON), "-m", "pip", "install", *options, *pins]
    run = subprocess.call if sys.stdout.isatty() else _tell_downloads
    if run(command):
        raise SetupError("pip could not install the packages above; mend that, `make setup` again")
    # Written last: it says that all of the above is done.  Packages that another version
    # replaced are no longer there, and no group wants them.
    installed = sorted(_installed(folder) & set(kept) | set(pins))
    (folder / _INSTALLED).write_text("".join(f"{pin}\n" for pin in installed))


def _tell_downloads(command: list[str]) -> int:
    # Without a terminal pip draws no bar.  So show a line for each large file and for the rest
    # of the work, and all that pip said if it fails.
    lines: list[str] = []
    process = subprocess.Popen(
        [*command, "--progress-bar", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if told := _progress_in(line):
            print(f"setup:   {told}", flush=True)
    if process.wait():
        print("".join(lines[-20:]), flush=True)
    return process.returncode


def _progress_in(line: str) -> str:
    text = line.strip()
    if text.startswith("Downloading ") and text.endswith("MB)"):
        return text.replace("Downloading ", "")
    return "unpacking" if text.startswith("Installing collected packages") else ""
