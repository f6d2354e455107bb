"""What a TLS connection takes: memory that malloc gives out, and instructions.

Mosquitto shows an ECDSA certificate (P-256); the suite is one of TLS 1.2, which is
what boards speak.  Memory with 32 bits.  The desk's Mbed TLS sends from a
buffer of 16 KB where boards have one of 4 KB, so their figures are 12,288 bytes less.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import Certificates
from tools.micropython import Interpreter, choose
from tools.project import ROOT

from . import BenchError
from .catalogue import DEVICE
from .measures import Rows

_SUITE = "TLS-ECDHE-ECDSA-WITH-AES-128-GCM-SHA256"
_HEAP_BYTES = 1024 * 1024
_RUN_S = 300
_LESS_ON_BOARDS = 3 * 4096
_IN_USE = re.compile(r"^Total.*\n.*\nin use bytes +=\s+(\d+)", re.MULTILINE)
_PEAK = re.compile(r"heap peak: (\d+)")
_COLLECTED = re.compile(r"Collected : (\d+)")


@dataclass(frozen=True)
class _Case:
    title: str
    port: int
    files: tuple[Path, ...]

    def run(
        self, interpreter: Interpreter, count: int, *tool: str, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Open so many connections, below `tool`, with `more` in the environment."""
        args = [self.port, _SUITE, count, *self.files]
        argv = interpreter.argv(DEVICE / "handshake.py", heap_bytes=_HEAP_BYTES, args=args)
        done = subprocess.run(
            [*tool, *argv],
            env=interpreter.environment([ROOT, ROOT / "lib"], more),
            capture_output=True,
            text=True,
            timeout=_RUN_S,
        )
        if done.returncode:
            last = (done.stderr.strip() or "no output").splitlines()[-1]
            raise BenchError(f"the TLS program failed: {last}")
        return done

    def figures(self) -> Iterator[tuple[str, float]]:
        """(row, figure) of all."""
        small, large = choose(bits=32), choose(bits=64, certificates=True)
        done = self.run(small, 1)
        start, context, connected = map(int, _IN_USE.findall(done.stderr))
        # glibc's own tool, which lies beside the 32-bit C library.
        peaks = [
            _found(_PEAK, self.run(small, count, LD_PRELOAD="libmemusage.so"), "libmemusage.so")
            for count in (-1, 1)
        ]
        yield f"{self.title}: context, bytes", context - start
        yield f"{self.title}: at most, on a board", peaks[1] - peaks[0] - _LESS_ON_BOARDS
        yield f"{self.title}: connected, on a board", connected - start - _LESS_ON_BOARDS
        yield f"{self.title}: of these in Python's heap", int(done.stdout)
        yield f"{self.title}: instructions, 64 bits", self._instructions(large)

    def _instructions(self, interpreter: Interpreter) -> float:
        if not shutil.which("valgrind"):
            raise BenchError("valgrind is not installed: run `make setup` or install it")
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        one, five = (
            _found(_COLLECTED, self.run(interpreter, count, *tool), "valgrind") for count in (1, 5)
        )
        return (five - one) / 4


def _found(pattern: re.Pattern, done: subprocess.CompletedProcess[str], tool: str) -> int:
    found = pattern.search(done.stderr)
    if not found:
        raise BenchError(f"{tool} does not count here")
    return int(found[1])


def connection() -> Rows:
    """Without and with a certificate of our own."""
    return {row: {"umqtt31": figure} for row, figure in _measured()}


def _measured() -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as name:
        made = Certificates.usual(Path(name), "device")
        own = made.ssl("device")
        for title, names in (("server's only", ["ca"]), ("ours too", ["ca", "cert", "key"])):
            with TLSMosquitto(
                made.path, "server", "1.2", require_certificate=len(names) > 1
            ) as broker:
                files = tuple(Path(own[name]) for name in names)
                yield from _Case(title, broker.port, files).figures()
