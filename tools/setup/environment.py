"""The virtual environment `.venv` with what pyproject.toml pins, and stubs beside it.

The list that was installed last is kept in each folder; as long as it equals the
list in pyproject.toml there is nothing to do.
"""

import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

from .errors import SetupError

_ROOT = Path(__file__).parents[2]
_PYPROJECT = _ROOT / "pyproject.toml"
VENV = _ROOT / ".venv"
STUBS = _ROOT / ".tools" / "stubs"
_PYTHON = VENV / "bin" / "python"
_INSTALLED = "installed.txt"


def wanted(pyproject: Path = _PYPROJECT) -> list[str]:
    """Every pinned requirement of every group, sorted."""
    groups = _read(pyproject)["project"]["optional-dependencies"]
    return sorted({requirement for group in groups.values() for requirement in group})


def wanted_stubs(pyproject: Path = _PYPROJECT) -> dict[str, list[str]]:
    """The pinned stubs of each MicroPython port."""
    stubs: dict[str, list[str]] = _read(pyproject)["tool"]["umqtt31"]["stubs"]
    return stubs


def _read(pyproject: Path) -> dict[str, Any]:
    return tomllib.loads(pyproject.read_text())


def install() -> bool:
    """Make `.venv` and the stubs hold what is wanted; returns whether anything was to do."""
    did = [_install_venv(wanted())]
    did += [_install_stubs(STUBS / port, pins) for port, pins in wanted_stubs().items()]
    return any(did)


def _install_venv(pins: list[str]) -> bool:
    if _PYTHON.exists() and _holds(VENV, pins):
        return False
    if not _PYTHON.exists():
        print("setup: making the virtual environment .venv", flush=True)
        venv.create(VENV, with_pip=True, clear=True, symlinks=True)
    print(f"setup: installing {len(pins)} Python packages (minutes)", flush=True)
    _pip_install(VENV, pins)
    return True


def _install_stubs(folder: Path, pins: list[str]) -> bool:
    if _holds(folder, pins):
        return False
    print(f"setup: installing MicroPython stubs of {folder.name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _pip_install(folder, pins, "--no-deps", "--target", str(folder))
    return True


def _holds(folder: Path, pins: list[str]) -> bool:
    noted = folder / _INSTALLED
    return noted.exists() and noted.read_text() == _lines(pins)


def _lines(pins: list[str]) -> str:
    return "".join(f"{pin}\n" for pin in pins)


def _pip_install(folder: Path, pins: list[str], *options: str) -> None:
    quiet = [] if sys.stdout.isatty() else ["-q"]
    # PEP 517: pyspark comes as source, and older versions of pip would call its setup.py.
    options = ("--disable-pip-version-check", "--use-pep517", *quiet, *options)
    if subprocess.run([str(_PYTHON), "-m", "pip", "install", *options, *pins]).returncode:
        raise SetupError("pip could not install the packages above; mend that, `make setup` again")
    # Last: it says that all of the above is done.
    (folder / _INSTALLED).write_text(_lines(pins))
