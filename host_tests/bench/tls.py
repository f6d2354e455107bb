"""What a TLS connection takes: memory that malloc gives out, instructions, time, bytes.

Mosquitto shows an ECDSA certificate (P-256); the suite is one of TLS 1.2, which is
what boards speak.  Memory and time on 32 bits.  The desk's Mbed TLS sends from a
buffer of 16 KB where boards have one of 4 KB, so their figures are 12,288 bytes less.
"""

import re
import resource
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import Certificates
from tools.micropython import Interpreter, choose
from umqtt31.tls import context_of, wrap

from . import BenchError
from .catalogue import DEVICE
from .measures import Rows

_SUITE = "TLS-ECDHE-ECDSA-WITH-AES-128-GCM-SHA256"
_HEAP_BYTES = 256 * 1024
_RUN_S = 300
_LESS_ON_BOARDS = 3 * 4096
_CONNECT = b"\x10\x13\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x05bench"
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
            env=interpreter.environment(extra=more),
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
        yield f"{self.title}: processor time, 32 bits, µs", self._processor_us(small)
        yield f"{self.title}: the same, 64 bits, µs", self._processor_us(large)

    def _instructions(self, interpreter: Interpreter) -> float:
        if not shutil.which("valgrind"):
            raise BenchError("valgrind is not installed: run `make setup` or install it")
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        one, five = (
            _found(_COLLECTED, self.run(interpreter, count, *tool), "valgrind") for count in (1, 5)
        )
        return (five - one) / 4

    def _processor_us(self, interpreter: Interpreter) -> float:
        times = []
        for count in (10, 60):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.run(interpreter, count)
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return (times[1] - times[0]) / 50 * 1_000_000


def _found(pattern: re.Pattern, done: subprocess.CompletedProcess[str], tool: str) -> int:
    found = pattern.search(done.stderr)
    if not found:
        raise BenchError(f"{tool} does not count here")
    return int(found[1])


def connection() -> Rows:
    """Without and with a certificate of our own, then CPython's resumed sessions."""
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
        # Without Nagle's algorithm, which holds CONNACK back by 40 ms.
        options: dict[str, Any] = {"require_certificate": True, "set_tcp_nodelay": True}
        with TLSMosquitto(made.path, "server", **options) as broker:
            yield from _resumed(broker.port, own)


def _resumed(port: int, files: dict[str, str]) -> Iterator[tuple[str, float]]:
    seen: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
    for _ in range(20):
        context = context_of(files)
        for _ in range(2):
            is_resumed, *figures = _connect(port, context)
            seen[is_resumed].append(tuple(figures))
    for title, rows in (("whole", seen[False]), ("resumed", seen[True])):
        if not rows:
            raise BenchError("the broker resumed no session")
        elapsed, sent, received = (statistics.median(column) for column in zip(*rows))
        yield f"CPython, {title}: bytes sent", sent
        yield f"CPython, {title}: bytes received", received
        yield f"CPython, {title}: time, µs", elapsed * 1_000_000


def _connect(port: int, context: object) -> tuple[bool, float, int, int]:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    start = time.perf_counter()
    stream = wrap(sock, context, "localhost")
    answer = bytearray(4)
    while stream.write(_CONNECT, 0, len(_CONNECT)) is None:
        pass
    while stream.readinto(answer, 4) is None:
        pass
    elapsed = time.perf_counter() - start
    # struct tcp_info: tcpi_bytes_acked and tcpi_bytes_received.
    about = stream.raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    sent, received = struct.unpack_from("QQ", about, 120)
    is_resumed = stream.raw.session_reused
    stream.close()
    return is_resumed, elapsed, sent, received
