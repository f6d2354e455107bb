"""What every act of the demo plays on: broker, breaking link, collector, display."""

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.folders import make_empty
from tools.micropython import Interpreter

from .accounts import Account, balance
from .collector import Collector
from .desk import DeskNode
from .mosquitto import Mosquitto
from .proxy import Proxy

PREFIX = "demo"
_QUIET_S = 1.0
_LAST_ARRIVALS_S = 20.0


@dataclass
class Outcome:
    """The result of one act: balances by stream, and what else must hold (text, holds)."""

    title: str
    accounts: list[Account]
    checks: list[tuple[str, bool]] = field(default_factory=list)


class Stage(contextlib.AbstractContextManager["Stage"]):
    """Sets everything up in `folder`, which is emptied first, and takes it down again.

    The node reaches the broker through `proxy` only, which records `capture_path`;
    the collector sits at the broker.
    """

    def __init__(self, folder: Path, interpreter: Interpreter, console: Console):
        make_empty(folder)
        self.folder = folder
        self.interpreter = interpreter
        self.capture_path = folder / "captures" / "node.pcap"
        self._console = console
        self._began_s = time.monotonic()
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> "Stage":
        self.capture_path.parent.mkdir(parents=True)
        with self._cleanup:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            progress = Progress(
                *columns, TimeElapsedColumn(), console=self._console, transient=True
            )
            self.progress = self._cleanup.enter_context(progress)
            self.broker = self._cleanup.enter_context(Mosquitto(self.folder / "broker"))
            self.proxy = self._cleanup.enter_context(Proxy(self.broker.port, self.capture_path))
            self.collector = Collector(self.broker.host, self.broker.port, PREFIX)
            self._cleanup.callback(self.collector.close)
            # All is up: from here on __exit__ takes it down.
            self._cleanup = self._cleanup.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._cleanup.close()

    def node(
        self,
        name: str,
        heap_bytes: int | None = None,
        extra: Path | None = None,
        **settings: object,
    ) -> DeskNode:
        """A node called `name`, not started yet, that is gone when the stage is."""
        place = {"server": self.broker.host, "port": self.proxy.port, "prefix": PREFIX}
        settings = {"buffer_size": 128, **settings, **place, "client_id": name}
        node = DeskNode(self.interpreter, self.folder / name, settings, heap_bytes, extra)
        self._cleanup.callback(node.kill)
        return node

    def tell(self, text: str) -> None:
        """Print one line of what happens, with the seconds since the start."""
        at_s = time.monotonic() - self._began_s
        self.progress.console.print(f"[dim]{at_s:5.1f} s[/dim]  {text}", highlight=False)

    def finish(self, node: DeskNode) -> tuple[str, bool]:
        """Ask the node to reset and wait for its last words -> a check of its end."""
        self.tell("node is asked to send what is waiting and to reset")
        self.collector.command(node.folder.name, "reset")
        status = node.wait(60)
        is_empty = node.report is not None and node.report["undelivered"] == 0
        return "node ended in good order, with nothing left to send", is_empty and status == 0

    def accounts(self, node: DeskNode, qos_by_stream: list[int]) -> list[Account]:
        """Compare what the node accepted with what arrived, once nothing more does."""
        self.collector.wait_for_silence(_QUIET_S, _LAST_ARRIVALS_S)
        topic = f"{PREFIX}/{node.folder.name}/reading/"
        arrivals = [one for one in self.collector.arrivals if one.topic.startswith(topic)]
        return balance(qos_by_stream, node.accepted, (one.payload for one in arrivals))
