"""The computer's side of the virtual board: pseudo terminal, power switch and plug.

A thread carries bytes between the terminal and MicroPython's pipes.  Ctrl-C is a byte
like any other and, as at a board's UART, an interrupt too.
"""

import array
import contextlib
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import threading
import tty
from pathlib import Path
from typing import Any

from tools.boards.filesystem import Filesystem

from .process import Process

REPL = Path(__file__).with_name("repl.py")
_STANDIN = REPL.parents[1] / "standin"
# What a process's status asks for: mode of the next one, and its reset cause.
_NEXT_AFTER = {80: ("raw", 5), 81: ("friendly", 5), 82: ("friendly", 4)}
_POWER_ON = 1
# What repl.py and its like, C code on a real board, take from the heap; 4,096 bytes of it are
# for their 200 names.
_OWN_HEAP_BYTES = 49152 + 4096
_CTRL_C = b"\x03"


class VirtualBoard:
    """A board of `profile` whose flash is the file `image`, from flash offset 0.

    `interpreter` is a tools.micropython.Interpreter; the heap is the profile's.  As a
    context manager it powers on and, at the end, unplugs.  `port` is the terminal's path.
    `cut_at_operation`: the n-th write or erase of the flash does not happen, the power is
    gone.
    """

    def __init__(self, profile, image, interpreter, cut_at_operation=0):
        self.image = image
        self._layout = layout = profile.filesystem
        journal = profile.journal
        places = [layout.offset, layout.size, journal.offset]
        places.append(0 if journal.place == "file" else journal.size)
        is_chip = profile.port != "unix"
        machine = f"{profile.firmware.machine} with {profile.chip}" if is_chip else ""
        chip = [profile.mcu, profile.port, machine]
        self._argv = lambda answers, mode, cause: interpreter.argv(
            REPL,
            heap_bytes=profile.memory.heap + _OWN_HEAP_BYTES,
            args=[answers, mode, cause, image, *chip, layout.program_unit, *places],
        )
        self._environment = interpreter.environment(
            [_STANDIN], {"CUT_AT_OPERATION": str(cut_at_operation)}
        )
        self._switch = threading.RLock()  # held while the process changes
        self._process: Any = None  # the running Process
        self._stdin: Any = None  # both ends of a pipe: as a receive buffer, kept over resets
        self._after_ctrl_c = 0  # bytes from the last one on, that one included
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        # Nobody may be reading there; the board waits then, and can be unplugged.
        os.set_blocking(self._master, False)
        self._unsent = b""  # printed, and no room at the terminal
        self._is_plugged = True
        self.is_gone = False
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
        read, write = os.pipe()
        with self._switch:
            self._stdin = open(read, "rb", buffering=0), open(write, "wb", buffering=0)
            self._start(mode, _POWER_ON)
        self._wake()

    def cut_power(self):
        """Stop MicroPython at whatever instruction it is; the terminal stays."""
        with self._switch:
            process, self._process = self._process, None
            if process:
                process.kill()
                for end in self._stdin:
                    end.close()

    def files(self):
        """Cut the power -> {path: content} of what is on flash."""
        self.cut_power()
        area = self.image.read_bytes()[self._layout.offset :][: self._layout.size]
        return Filesystem(self._layout, area).files()

    def unplug(self):
        """Cut the power and take the port away."""
        if self.is_gone:
            return
        self.is_gone = True
        self._is_plugged = False
        self.cut_power()
        self._wake()
        self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def join(self):
        """Wait until the port is gone: MicroPython ended, or the plug was pulled."""
        self._thread.join()

    def unplug_after(self, count):
        """Pull the plug when the computer has sent `count` more bytes."""
        self._cut_after = self._written + count

    def _start(self, mode, cause):
        read, _ = self._stdin
        self._process = Process(
            lambda answers: self._argv(answers, mode, cause), self._environment, read
        )

    def _wake(self):
        os.write(self._wake_write, b"x")

    def _carry(self):
        # The only reader of all sides; power_on() and unplug() wake it.
        while self._is_plugged:
            process = self._process
            sources = [self._master, self._wake_read]
            targets = [self._master] if self._unsent else []
            if process:
                sources.append(process.answers)
                if not self._unsent:
                    sources.append(process.output)
            with contextlib.suppress(ValueError, OSError):
                ready, has_room, _ = select.select(sources, targets, [])
                if has_room:
                    self._send()
                self._carry_ready(process, ready)
        # Closing the last descriptors hangs up the computer's side.
        os.close(self._master)
        os.close(self._slave)

    def _carry_ready(self, process, ready):
        if self._wake_read in ready:
            os.read(self._wake_read, 64)
        if self._master in ready:
            self._to_board(os.read(self._master, 4096))
        if process and process.answers in ready:
            process.read_answers()
        if process and process.output in ready:
            self._to_computer(process)

    def _to_board(self, data):
        process = self._process
        self._written += len(data)
        if self._cut_after is not None and self._written >= self._cut_after:
            self.cut_power()
            self._is_plugged = False
        elif process:
            self._after_ctrl_c += len(data)
            if _CTRL_C in data:
                self._after_ctrl_c = len(data) - data.rindex(_CTRL_C)
                process.interrupt()
            self._stdin[1].write(data)

    def _to_computer(self, process):
        data = process.output.read(4096)
        if data:
            self._unsent = data
            self._send()
        else:
            with self._switch:
                if process is self._process:
                    self._start_again(process)

    def _send(self):
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[os.write(self._master, self._unsent) :]

    def _start_again(self, process):
        status = process.wait()
        if status in _NEXT_AFTER:
            self._start(*_NEXT_AFTER[status])
            if self._is_ctrl_c_unread():
                self._process.interrupt()
        else:
            # The power went, as chips.py cuts it: on USB the port goes with it.
            if status not in (0, -signal.SIGKILL):
                print("%s: MicroPython ended with %d" % (self.port, status), file=sys.stderr)
            self.cut_power()
            self._is_plugged = False

    def _is_ctrl_c_unread(self):
        unread = array.array("i", [0])
        fcntl.ioctl(self._stdin[0], termios.FIONREAD, unread)
        return 0 < self._after_ctrl_c <= unread[0]
