"""What a TLS connection takes: memory that malloc gives out.

Mosquitto shows an ECDSA certificate (P-256); the suite is one of TLS 1.2, which is
what boards speak.  32 bits.  The desk's Mbed TLS sends from a buffer of 16 KB where
boards have one of 4 KB, so their figures are 12,288 bytes less.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import Certificates
from tools.micropython import choose
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


def _counted(pattern: re.Pattern, *args: object, **more: str) -> list[int]:
    # What a run of handshake.py, with `more` in the environment, says of its memory.
    interpreter = choose(bits=32)
    done = subprocess.run(
        interpreter.argv(DEVICE / "handshake.py", heap_bytes=_HEAP_BYTES, args=[_SUITE, *args]),
        env=interpreter.environment([ROOT, ROOT / "lib"], more),
        capture_output=True,
        text=True,
        timeout=_RUN_S,
    )
    found = [int(number) for number in pattern.findall(done.stderr)]
    if done.returncode or not found:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise BenchError(f"the TLS program failed: {last}")
    return found


def connection() -> Rows:
    """Without and with a certificate of our own."""
    rows: Rows = {}
    tool = {"LD_PRELOAD": "libmemusage.so"}  # glibc's own, beside the 32-bit C library
    with tempfile.TemporaryDirectory() as name:
        made = Certificates.usual(Path(name), "device")
        for title, ssl in (("server's only", made.ssl()), ("ours too", made.ssl("device"))):
            is_strict = len(ssl) > 1
            with TLSMosquitto(made.path, "server", "1.2", require_certificate=is_strict) as broker:
                words = broker.port, *ssl.values()
                start, connected = _counted(_IN_USE, *words)
                (peak,), (none,) = _counted(_PEAK, *words, **tool), _counted(_PEAK, **tool)
            found = {"at most": peak - none, "connected": connected - start}
            for row, taken in found.items():
                rows[f"{title}: {row}, on a board"] = {"umqtt31": taken - _LESS_ON_BOARDS}
    return rows
