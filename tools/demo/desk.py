"""The sensor node of `firmware/` as a process on the desk, under real MicroPython.

Runs the same files as a board with the `desk` profile, compiled as for a board, with
a folder in place of the flash and a heap of a board's size.  It is killed and started
again at will; what it prints is followed while it runs (docs/guides/sensor-node.md lists it).
"""

import json
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tools.boards.compile import build_tree
from tools.boards.profile import load_profile
from tools.micropython import Interpreter

HEAP_BYTES = {32: 128 * 1024, 64: 256 * 1024}

_STEP_S = 0.01


class DeskError(Exception):
    """The node did not do what it should have; the message says what it last printed."""


class DeskNode:
    """One node in `folder`, with `settings` as its settings.json.

    `accepted[boot, stream]` is the number of readings that publish() took in that
    boot, as far as the node could still say so; `counts` how often each first word
    was printed, over all starts.  What it prints is also kept in console.log.
    `extra`: a module that is started in place of main.py.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        folder: Path,
        settings: dict[str, object],
        heap_bytes: int | None = None,
        extra: Path | None = None,
    ):
        self.interpreter = interpreter
        self._heap_bytes = heap_bytes or HEAP_BYTES[interpreter.bits]
        self._main = extra.stem if extra else "main"
        self.folder = folder
        self.boot = 0
        self.accepted: dict[tuple[int, int], int] = {}
        self.counts: Counter[str] = Counter()
        self.report: dict[str, object] | None = None
        self.lines: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the node's own files, as if it were frozen: sources would need the
        # compiler's memory as well, which no deployed board spends.
        self._code = build_tree(load_profile("desk"), folder.with_name(f"{folder.name}-code"))
        if extra:
            shutil.copy(extra, self._code)
        (folder / "settings.json").write_text(json.dumps(settings))

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Switch it on, as after a reset."""
        self._process = self.interpreter.start(
            f"import boot, {self._main}",
            heap_bytes=self._heap_bytes,
            micropypath=(self._code / "lib", self._code),
            cwd=self.folder,
        )
        self._reader = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
        self._reader.start()

    def live(self, seconds: float) -> None:
        """Let it run for that long.  Raises DeskError if it ends by itself."""
        time.sleep(seconds)
        if not self.is_running:
            raise DeskError(f"the node ended by itself{self._last()}")

    def interrupt(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Pull its plug (SIGKILL); what it had printed is known when this returns."""
        if self._process:
            self._process.kill()
            self.wait(5)

    def wait(self, timeout_s: float) -> int:
        """Wait for its end -> exit status.  Raises DeskError."""
        if self._process is None or self._reader is None:
            raise DeskError("the node was not started")
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise DeskError(f"the node did not end in {timeout_s:.0f} s{self._last()}") from None
        self._reader.join()
        return status

    def wait_for_readings(self, more: int, stream: int = 0, timeout_s: float = 60) -> None:
        """Wait until so many more are accepted in a stream.  Raises DeskError."""
        goal = self.accepted_in_stream(stream) + more
        self.wait_until(
            lambda: self.accepted_in_stream(stream) >= goal, timeout_s, f"reading number {goal}"
        )

    def wait_for_word(self, word: str, count: int = 1, timeout_s: float = 60) -> None:
        """Wait until so many lines begin with `word`, over all starts.  Raises DeskError."""
        self.wait_until(lambda: self.counts[word] >= count, timeout_s, f"word {word!r}")

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait for `condition()` while the node runs.  Raises DeskError naming `what`."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if not self.is_running:
                raise DeskError(f"the node ended before {what}{self._last()}")
            if time.monotonic() > deadline:
                raise DeskError(f"no {what} within {timeout_s:.0f} s{self._last()}")
            time.sleep(_STEP_S)

    def accepted_in_stream(self, stream: int) -> int:
        """Readings accepted in `stream` over all boots."""
        return sum(n for (_, one), n in self.accepted.items() if one == stream)

    def _last(self) -> str:
        return f"; it last printed: {self.lines[-1]}" if self.lines else "; it printed nothing"

    def _follow(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with (self.folder / "console.log").open("a") as log:
            for line in process.stdout:
                log.write(line)
                # A kill cut this line off, so it proves nothing.
                if line.endswith("\n"):
                    self._take(line.rstrip("\n"))

    def _take(self, line: str) -> None:
        self.lines.append(line)
        word, _, rest = line.partition(" ")
        self.counts[word] += 1
        if word == "accepted":
            stream, number = rest.split()
            self.accepted[self.boot, int(stream)] = int(number)
        elif word == "boot":
            self.boot = int(rest.split()[0])
        elif word == "report":
            self.report = json.loads(rest)
