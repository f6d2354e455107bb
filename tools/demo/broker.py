"""A broker as a process that is started, stopped, killed and started again.

It keeps its port and its folder (configuration, persistent state, log) from one
start to the next, so that a client meets the broker that it knew.
"""

import abc
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import ClassVar, Self

HOST = "127.0.0.1"
_START_S = 120.0
_STOP_S = 10.0


class BrokerError(Exception):
    """A broker that cannot be started; the message is one line that says what to do."""


def free_port() -> int:
    """A TCP port on the loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def check_free(port: int) -> None:
    """Raise BrokerError if somebody listens on `port`; connections that fade away are no bar."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise BrokerError(f"port {port} is taken: choose another one") from None


class BrokerProcess(abc.ABC):
    """One broker on `host`:`port`, running inside `with` or between start() and close().

    `folder` is kept when given, else made for this broker and removed by close().
    """

    name: ClassVar[str]
    host = HOST

    def __init__(self, folder: Path | None = None, port: int = 0) -> None:
        self._owns_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.log_path = self.folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @abc.abstractmethod
    def _prepare(self) -> list[str]:
        """Write the configuration into `folder`; returns the command that starts the broker."""

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id; BrokerError when it is not running."""
        if self._process is None or not self.is_running:
            raise BrokerError(f"{self.name} is not running: start() it")
        return self._process.pid

    def start(self) -> Self:
        """Start, and return when the port accepts connections.  Raises BrokerError."""
        if self.is_running:
            return self
        check_free(self.port)
        command = self._prepare()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_for_port()
        return self

    def stop(self) -> None:
        """End it as its service would (SIGTERM), so that it writes down what it keeps."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop it, and remove the folder if it was made for this broker."""
        self.stop()
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def log_text(self) -> str:
        """What it has logged so far, over all starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if not self.is_running:
                last = (self.log_text().strip().splitlines() or ["no log"])[-1]
                raise BrokerError(f"{self.name} ended at once: {last}")
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1):
                return
            time.sleep(0.02)
        self.kill()
        raise BrokerError(f"{self.name} did not open port {self.port} in {_START_S:.0f} s")

    def _end(self, number: signal.Signals) -> None:
        """Signal the whole process group, which is the broker's own, and wait for its end."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None
