"""umqtt.simple, the fastest peer, fetched when first needed; none of it is kept here.

`mip`, MicroPython's own package manager, has the current version.  Where its index
cannot be reached, PyPI has one package that pip can install: the first version,
which publishes and receives in the same steps.  It is fetched into `.tools/`.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.micropython import Interpreter
from tools.project import ROOT

from .figures import BenchError

_FOLDER = ROOT / ".tools" / "peer"
_MODULE = Path("umqtt") / "simple.py"
_MIP = "import mip; mip.install('umqtt.simple', target=%r, mpy=False)"
_PYPI = "micropython-umqtt.simple==1.1"
_FETCH_S = 60


@dataclass(frozen=True)
class Peer:
    """`folder` holds `umqtt/simple.py`; `title` says which version and whence."""

    folder: Path
    title: str


def given(folder: Path) -> Peer:
    """The umqtt.simple in `folder`.  Raises BenchError."""
    source = folder / _MODULE
    if not source.is_file():
        raise BenchError(f"no {_MODULE} in {folder}: give the folder that holds umqtt/")
    found = re.search(r"""__version__ = ['"]([\d.]+)""", source.read_text())
    return Peer(folder, f"version {found[1] if found else 'unknown'}")


def fetched(interpreter: Interpreter) -> Peer | None:
    """umqtt.simple by mip, else from PyPI, else None."""
    current, first = _FOLDER / "mip", _FOLDER / "pypi"
    if (current / _MODULE).is_file() or _fetch_by_mip(interpreter, current):
        return given(current)
    if (first / _MODULE).is_file() or _fetch_by_pip(first):
        return Peer(first, "version 1.1, a stand-in from PyPI")
    return None


def _fetch_by_mip(interpreter: Interpreter, target: Path) -> bool:
    try:
        interpreter.run(_MIP % str(target), timeout=_FETCH_S)
    except subprocess.TimeoutExpired:
        return False
    return (target / _MODULE).is_file()


def _fetch_by_pip(target: Path) -> bool:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(target),
        _PYPI,
    ]
    subprocess.run(pip, capture_output=True)
    return (target / _MODULE).is_file()
