"""CPython, to be run as MicroPython is."""

import os
import sys

from tools.micropython import Interpreter
from tools.project import ROOT


class _CPython(Interpreter):
    """Finds its modules by another variable."""

    id = "cpython"

    def environment(self, micropypath=None, extra=None):
        """Environment variables for a run: modules come from `micropypath`, else from `lib/`."""
        folders = [ROOT / "lib"] if micropypath is None else micropypath
        return os.environ | {"PYTHONPATH": ":".join(map(str, folders))} | (extra or {})


CPYTHON = _CPython("", 64, (sys.executable, "-u"))
