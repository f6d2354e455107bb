"""What a TLS connection takes: memory that malloc gives out, and instructions.

Mosquitto shows an ECDSA certificate (P-256); the suite is one of TLS 1.2, which is
what boards speak.  Memory with 32 bits.  The desk's Mbed TLS sends from a
buffer of 16 KB where boards have one of 4 KB, so their figures are 12,288 bytes less.
"""

import re
import shutil
import subprocess
import tempfile
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


def _open(
    interpreter: Interpreter, words: list, count: int, *tool: str, **more: str
) -> subprocess.CompletedProcess[str]:
    # So many connections, below `tool`, with `more` in the environment.
    port, *files = words
    args = [port, _SUITE, count, *files]
    done = subprocess.run(
        [*tool, *interpreter.argv(DEVICE / "handshake.py", heap_bytes=_HEAP_BYTES, args=args)],
        env=interpreter.environment([ROOT, ROOT / "lib"], more),
        capture_output=True,
        text=True,
        timeout=_RUN_S,
    )
    if done.returncode:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise BenchError(f"the TLS program failed: {last}")
    return done


def _figures(words: list) -> dict[str, float]:
    small, large = choose(bits=32), choose(bits=64, certificates=True)
    done = _open(small, words, 1)
    start, context, connected = map(int, _IN_USE.findall(done.stderr))
    # glibc's own tool, which lies beside the 32-bit C library.
    tool = "libmemusage.so"
    none, peak = (
        _found(_PEAK, _open(small, words, count, LD_PRELOAD=tool), tool) for count in (-1, 1)
    )
    if not shutil.which("valgrind"):
        raise BenchError("valgrind is not installed: run `make setup` or install it")
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    one, five = (
        _found(_COLLECTED, _open(large, words, count, *callgrind), "valgrind") for count in (1, 5)
    )
    return {
        "context, bytes": context - start,
        "at most, on a board": peak - none - _LESS_ON_BOARDS,
        "connected, on a board": connected - start - _LESS_ON_BOARDS,
        "of these in Python's heap": int(done.stdout),
        "instructions, 64 bits": (five - one) / 4,
    }


def _found(pattern: re.Pattern, done: subprocess.CompletedProcess[str], tool: str) -> int:
    found = pattern.search(done.stderr)
    if not found:
        raise BenchError(f"{tool} does not count here")
    return int(found[1])


def connection() -> Rows:
    """Without and with a certificate of our own."""
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        made = Certificates.usual(Path(name), "device")
        for title, ssl in (("server's only", made.ssl()), ("ours too", made.ssl("device"))):
            is_strict = len(ssl) > 1
            with TLSMosquitto(made.path, "server", "1.2", require_certificate=is_strict) as broker:
                found = _figures([broker.port, *ssl.values()])
                rows |= {f"{title}: {row}": {"umqtt31": n} for row, n in found.items()}
    return rows
