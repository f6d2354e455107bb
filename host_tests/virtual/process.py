"""One MicroPython process, from a reset to the next: its output, its end and its Ctrl-C.

Ctrl-C is SIGUSR1, and the process answers each (`interrupt.py` is its side): there is
one on the way at a time, and the time it takes does not matter.
"""

import os
import signal
import subprocess
import time
from typing import Any

# Lets it get on with what must not be interrupted; nothing depends on the length.
_PAUSE_S = 0.001
_AGAIN = ord("A")  # of interrupt.py's answers the only one that asks for something


class Process:
    """MicroPython running `argv(answers)`, where `answers` is its descriptor for answers.

    `output` is its output and `answers` what it answers to Ctrl-C, both to be read as
    soon as they can be: read_answers() does the latter.
    """

    def __init__(self, argv, environment, stdin):
        read, write = os.pipe()
        self.answers = open(read, "rb", buffering=0)
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._process: Any = subprocess.Popen(
            argv(write), bufsize=0, env=environment, pass_fds=[write], **pipes
        )
        os.close(write)
        self.output: Any = self._process.stdout
        self._is_free = False  # to take a Ctrl-C; its first answer says so
        self._is_wanted = False

    def interrupt(self):
        """Press Ctrl-C; while one is on the way any number counts as one more."""
        self._is_wanted = True
        self._send_wanted()

    def read_answers(self):
        """Read what there is, and send what may go now."""
        for answer in self.answers.read(64):
            if answer == _AGAIN:
                time.sleep(_PAUSE_S)
                self._send()
            else:
                self._is_free = True
                self._send_wanted()

    def wait(self):
        """Wait until it has ended -> its exit status; nothing is left open."""
        status = self._process.wait()
        self.output.close()
        self.answers.close()
        return status

    def kill(self):
        """End it at whatever instruction it is."""
        self._process.kill()
        self.wait()

    def _send_wanted(self):
        if self._is_wanted and self._is_free:
            self._is_wanted, self._is_free = False, False
            self._send()

    def _send(self):
        self._process.send_signal(signal.SIGUSR1)
