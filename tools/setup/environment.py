"""The virtual environment `.venv` with what pyproject.toml pins.

The list that was installed last is kept inside it; as long as it equals the list
in pyproject.toml there is nothing to do.
"""

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from .errors import SetupError

_ROOT = Path(__file__).parents[2]
VENV = _ROOT / ".venv"
_PYTHON = VENV / "bin" / "python"
_INSTALLED = VENV / "installed.txt"


def wanted(pyproject: Path = _ROOT / "pyproject.toml") -> list[str]:
    """Every pinned requirement of every group, sorted."""
    groups = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    return sorted({requirement for group in groups.values() for requirement in group})


def install() -> bool:
    """Make `.venv` hold what is wanted; returns whether there was anything to do."""
    lines = "".join(f"{requirement}\n" for requirement in wanted())
    if _PYTHON.exists() and _INSTALLED.exists() and _INSTALLED.read_text() == lines:
        return False
    if not _PYTHON.exists():
        print("setup: making the virtual environment .venv", flush=True)
        venv.create(VENV, with_pip=True, clear=True, symlinks=True)
    print(f"setup: installing {lines.count('==')} Python packages (minutes)", flush=True)
    _install(lines)
    _INSTALLED.write_text(lines)
    return True


def _install(lines: str) -> None:
    listed = VENV / "wanted.txt"
    listed.write_text(lines)
    quiet = [] if sys.stdout.isatty() else ["-q"]
    pip = [str(_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", *quiet]
    if subprocess.run([*pip, "-r", str(listed)]).returncode:
        raise SetupError("pip could not install the packages above; mend that, `make setup` again")
