"""A board's REPL, through the real mpremote as a program of its own.

Each call is one `mpremote connect PORT …`; actions of one call share one
connection, so the board is soft-reset once at most.  Errors are one line.
"""

import binascii
import contextlib
import os
import subprocess
import sys
import threading
import time

from . import device
from .errors import BoardError
from .port import check_port, open_port, told_errors

MPREMOTE = [sys.executable, "-m", "mpremote"]
# Ctrl-C ends what runs, Ctrl-B leaves the raw REPL, Ctrl-D resets into main.py.
_RESTART = b"\r\x03\x03\r\x02\x04"
_RESTARTED = b"soft reboot"
_RESTART_S = 3
_LONGEST_S = 600


class Remote:
    """The board at serial port `port`."""

    def __init__(self, port):
        self.port = port

    def run(self, *actions, on_line=lambda line: None):
        """Run mpremote actions, each a list of words, on one connection -> their output.

        `on_line` hears each line as it comes.  Raises BoardError when the port
        cannot be used, the board does not answer, or its Python raises.
        """
        check_port(self.port)
        # The firmware's watchdog outlives a soft reset: someone must feed it.
        words = ["connect", self.port, "exec", device.source("watchdog")]
        for action in actions:
            words += ["+", *action]
        output, status = run_program([*MPREMOTE, *words], _LONGEST_S, on_line)
        if status:
            raise BoardError(f"{self.port}: {_reason(output, status)}")
        return output

    def execute(self, source):
        """Run Python on the board -> what it printed."""
        return self.run(["exec", source])

    def restart(self):
        """Soft-reset the board, so that it runs boot.py and main.py."""
        check_port(self.port)
        with told_errors(self.port, "the board is gone; plug it in again"):
            with open_port(self.port, timeout=1) as line:
                self.send_restart(line)

    @contextlib.contextmanager
    def stopped(self):
        """What runs on the board may be interrupted meanwhile; at the end, after an error or
        Ctrl-C, too, it starts again."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(BoardError):
                self.restart()
            raise
        self.restart()

    def read_journal(self):
        """The bytes of the journal area, as an image file for `tools.journal`."""
        lines = self.execute(device.source("journal_area")).split()
        try:
            size = int(lines[0])
            erased = b"\xff" * size
            blocks = [erased if line == "-" else binascii.a2b_base64(line) for line in lines[1:]]
            is_whole = all(len(block) == size for block in blocks)
        except (IndexError, ValueError):
            is_whole = False
        if not is_whole:
            raise BoardError(f"{self.port}: the answer was cut short; try again")
        return b"".join(blocks)

    @staticmethod
    def send_restart(line):
        """Soft-reset the board at the other end of an open serial `line`, and wait for it.

        Returns what it printed until then, bytes.
        """
        line.write(_RESTART)
        seen, limit = b"", time.monotonic() + _RESTART_S
        while _RESTARTED not in seen and time.monotonic() < limit:
            seen += line.read(1)
        return seen


def run_program(command, timeout_s, on_line):
    """Run a program, `on_line` hearing each line as it comes -> (output, exit status)."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    limit = threading.Timer(timeout_s, process.kill)
    limit.start()
    lines = []
    assert process.stdout
    try:
        for line in process.stdout:
            lines.append(line)
            on_line(line.rstrip())
        return "".join(lines), process.wait()
    finally:
        limit.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _reason(output, status):
    lines = [line for line in output.strip().splitlines() if line.strip()]
    last = lines[-1].removeprefix("mpremote: ") if lines else "no answer; reset the board"
    if "could not enter raw repl" in output:
        return "no MicroPython answers; flash it first (make flash), or press reset and try again"
    if "ENOSPC" in output or "Errno 28" in output or "No space" in output:
        return "the board's filesystem is full; remove files of yours (mpremote rm) and try again"
    is_lost = any(x in output for x in ("timeout waiting", "Input/output error", "disconnected"))
    if is_lost or status < 0:  # mpremote was killed
        return "the connection broke off; plug the board in and run the same command again"
    if "Traceback" in output:
        return f"the board says {last}"
    return last
