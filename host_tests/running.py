"""How tests run programs: CPython as MicroPython is, the project's commands in this process."""

import os
import sys

from click.testing import CliRunner

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


def said_by(cli, *words, status=0, **options):
    """-> what the command says; `status` is what it has to end with."""
    done = CliRunner().invoke(cli, [str(word) for word in words], **options)
    assert done.exit_code == status, done.output
    return done.output
