"""The computer's side of the virtual board: pseudo terminal, power switch and plug.

A thread carries bytes between the terminal and MicroPython's pipes.  Ctrl-C
becomes SIGINT, as the interrupt of a board's UART raises KeyboardInterrupt.
"""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time
import tty
from pathlib import Path
from typing import Any

REPL = Path(__file__).with_name("repl.py")
_MODE_AFTER = {80: "raw", 81: "friendly"}
_READY = b"\0"
_INTERRUPT_ME_AGAIN = b"\0INT\0"
_CTRL_C = 3
_PARTS = re.compile(rb"\x03+|[^\x03]+")
_SERVED_S = 0.02


class VirtualBoard:
    """A board of `profile` whose flash is the file `image`, from flash offset 0.

    `interpreter` is a tools.micropython.Interpreter.  As a context manager it powers
    on and, at the end, unplugs.  `port` is the terminal's path.  `cut_at_operation`:
    the n-th write or erase of the flash does not happen, the power is gone.
    """

    def __init__(self, profile, image, interpreter, heap_bytes=262144, cut_at_operation=0):
        layout, journal = profile.filesystem, profile.journal
        places = [layout.offset, layout.size, journal.offset]
        places.append(0 if journal.place == "file" else journal.size)
        self._start = lambda mode: interpreter.argv(
            REPL,
            heap_bytes=heap_bytes,
            args=[mode, image, profile.mcu, layout.program_unit, *places],
        )
        self._environment = interpreter.environment(
            [], {"CUT_AT_OPERATION": str(cut_at_operation)}
        )
        self._process: Any = None  # the running subprocess.Popen
        self._is_ready = False
        self._held = b""
        self._interrupted_at = 0.0
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._is_plugged = True
        self._is_gone = False
        self._written = 0
        self._cut_after = None
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def __enter__(self):
        self.power_on()
        return self

    def __exit__(self, *exception):
        self.unplug()

    def power_on(self, mode="friendly"):
        """Start MicroPython: boot.py, main.py (unless `mode` is "raw"), then the REPL."""
        self._is_ready = False
        self._process = subprocess.Popen(
            self._start(mode),
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
        self._wake()

    def cut_power(self):
        """Stop MicroPython at whatever instruction it is; the terminal stays."""
        process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def unplug(self):
        """Cut the power and take the port away."""
        if self._is_gone:
            return
        self._is_gone = True
        self._is_plugged = False
        self.cut_power()
        self._wake()
        self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def unplug_after(self, count):
        """Pull the plug when the computer has sent `count` more bytes."""
        self._cut_after = self._written + count

    def _wake(self):
        os.write(self._wake_write, b"x")

    def _carry(self):
        # The only reader of both sides; power_on() and unplug() wake it.
        while self._is_plugged:
            process = self._process
            sources = [self._master, self._wake_read] + ([process.stdout] if process else [])
            with contextlib.suppress(ValueError, OSError):
                ready = select.select(sources, [], [])[0]
                if self._wake_read in ready:
                    os.read(self._wake_read, 64)
                if self._master in ready:
                    self._to_board(os.read(self._master, 4096))
                if process and process.stdout in ready:
                    self._to_computer(process)
        # Closing the last descriptors hangs up the computer's side.
        os.close(self._master)
        os.close(self._slave)

    def _to_board(self, data):
        self._written += len(data)
        if self._cut_after is not None and self._written >= self._cut_after:
            self.cut_power()
            self._is_plugged = False
            return
        if not self._is_ready:
            self._held += data
        elif self._process:
            self._deliver(self._process, data)

    def _deliver(self, process, data):
        for part in _PARTS.findall(data):
            if part[0] == _CTRL_C:
                self._interrupt(process)
            else:
                process.stdin.write(part)

    def _interrupt(self, process):
        # The unix port takes a second SIGINT before it served the first as an order
        # to exit; a board takes any number of Ctrl-C.
        time.sleep(max(0, self._interrupted_at + _SERVED_S - time.monotonic()))
        self._interrupted_at = time.monotonic()
        process.send_signal(signal.SIGINT)

    def _to_computer(self, process):
        data = os.read(process.stdout.fileno(), 4096)
        if not data:
            self._ended(process)
            return
        if not self._is_ready and _READY in data:
            # It survives Ctrl-C from here on; before, the signal would kill it.
            data = data.replace(_READY, b"", 1)
            self._is_ready = True
            held, self._held = self._held, b""
            self._deliver(process, held)
        if _INTERRUPT_ME_AGAIN in data:
            data = data.replace(_INTERRUPT_ME_AGAIN, b"")
            self._interrupt(process)
        if data:
            os.write(self._master, data)

    def _ended(self, process):
        if process is not self._process:
            return
        self._process = None
        if mode := _MODE_AFTER.get(process.wait()):
            self.power_on(mode)
        else:
            # The power went: on USB the port goes with it.
            self._is_plugged = False
