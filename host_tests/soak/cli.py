"""Command line of the soak, what it breaks, and how it judges a node's heap."""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from host_tests.brokers import BrokerError, Mosquitto
from tools.demo import verdict
from tools.demo.desk import DeskError, DeskNode
from tools.demo.proxy import Proxy
from tools.demo.stage import Outcome, Stage
from tools.demo.tap import BROKER, CLIENT
from tools.micropython import MicroPythonError, choose
from tools.project import ROOT

# With the journal all of the library is loaded, and without ROMFS its code is in the heap.
_HEAP_KB = {"ram": 112, "journal": 128}  # with 32 bits
_QOS = [1, 2]
_TELL_EVERY_S = 30.0
_PROBE = Path(__file__).parent / "device" / "soak_node.py"
_PAUSE_S = (0.2, 3.0)
_HOLD_S = (0.5, 8.0)
_DOWN_S = (0.2, 2.0)
# Between two readings the heap may differ by what is alive at that moment: the text of
# the last error, a socket.  Anything that grows is far beyond it within a short soak.
_TOLERANCE_BYTES = 1024


class Disturber:
    """Breaks link, power and broker at random moments, all from one seed, and counts what.

    `victim` is the node whose plug is pulled; link and broker are those of all nodes.
    """

    def __init__(self, broker: Mosquitto, proxy: Proxy, victim: DeskNode, seed: int):
        self.counts: Counter[str] = Counter()
        self._broker = broker
        self._proxy = proxy
        self._victim = victim
        self._random = random.Random(seed)
        self._acts: dict[str, tuple[int, Callable[[], object]]] = {
            "link cut": (4, proxy.cut),
            "link cut inside a packet of the node": (4, lambda: self._cut_in_packet(CLIENT)),
            "link cut inside a packet of the broker": (4, lambda: self._cut_in_packet(BROKER)),
            "link held still": (2, self._hold),
            "plug pulled": (4, self._pull_plug),
            "broker restarted": (1, self._restart_broker),
        }

    def step(self) -> None:
        """Wait a random while, then break something."""
        self._wait(_PAUSE_S)
        weights = [weight for weight, _ in self._acts.values()]
        (name,) = self._random.choices([*self._acts], weights)
        self._acts[name][1]()
        self.counts[name] += 1

    def _wait(self, least_and_most_s: tuple[float, float]) -> None:
        time.sleep(self._random.uniform(*least_and_most_s))

    def _cut_in_packet(self, sender: int) -> None:
        self._proxy.cut_in_packet(self._random.randrange(400), sender)

    def _hold(self) -> None:
        self._proxy.hold()
        self._wait(_HOLD_S)
        self._proxy.release()

    def _pull_plug(self) -> None:
        self._victim.kill()
        self._victim.start()

    def _restart_broker(self) -> None:
        self._broker.stop()
        self._wait(_DOWN_S)
        self._broker.start()


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="How long things break.",
)
@click.option("--seed", default=1, show_default=True, help="Chooses what breaks when.")
@click.option("--level", type=click.Choice(["3", "4", "5"]), default="3", show_default=True)
@click.option(
    "--interval-ms", default=100, show_default=True, help="Milliseconds between two samples."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "build" / "soak",
    show_default="build/soak",
    help="Folder for logs and capture; emptied first.",
)
def cli(minutes: float, seed: int, level: str, interval_ms: int, out: Path) -> None:
    """Two sensor nodes for MINUTES: one is never killed and has its store in RAM, the
    other is killed again and again and has its journal on flash."""
    console = Console()
    try:
        interpreter = choose(bits=32)
        console.print(
            f"MicroPython {interpreter.release}, MQTT level {level}, seed {seed}, heap"
            f" {_HEAP_KB['ram']} KB with ram, {_HEAP_KB['journal']} KB with journal",
            highlight=False,
        )
        with Stage(out, interpreter, console) as stage:
            steady = _node(stage, "steady", "ram", int(level), interval_ms)
            victim = _node(stage, "killed", "journal", int(level), interval_ms)
            disturber = Disturber(stage.broker, stage.proxy, victim, seed)
            outcomes = _soak(stage, steady, victim, disturber, minutes * 60)
    except (BrokerError, DeskError, MicroPythonError, TimeoutError) as error:
        raise click.ClickException(str(error)) from None
    broken = ", ".join(f"{name} {count}" for name, count in sorted(disturber.counts.items()))
    console.print(f"\nbroken on the way: {broken}", highlight=False)
    for outcome, node in zip(outcomes, (steady, victim), strict=True):
        verdict.show(console, outcome)
        console.print(f"  {_heap(node)} at the end", highlight=False)
    if not all(map(verdict.holds, outcomes)):
        raise click.ClickException(f"a promise was broken; the logs are in {out}")
    console.print("[green]Every promise held.[/green]")


def _node(stage: Stage, name: str, store: str, level: int, interval_ms: int) -> DeskNode:
    return stage.node(
        f"soak-{name}",
        heap_bytes=_HEAP_KB[store] * 1024,
        extra=_PROBE,
        level=level,
        buffer_size=144 if level == 5 else 128,
        streams=_QOS,
        interval_ms=interval_ms,
        max_inflight=4,
        max_mqueue_len=16,
        keepalive=5,
        store=store,
    )


def _soak(
    stage: Stage, steady: DeskNode, victim: DeskNode, disturber: Disturber, seconds: float
) -> list[Outcome]:
    steady.start()
    victim.start()
    end = time.monotonic() + seconds
    told = 0.0
    while time.monotonic() < end:
        disturber.step()
        if time.monotonic() - told > _TELL_EVERY_S:
            told = time.monotonic()
            for node, fate in ((steady, "never killed"), (victim, "killed")):
                accepted = sum(map(node.accepted_in_stream, range(len(_QOS))))
                stage.tell(f"{accepted} readings, {_heap(node)}, {fate}")
    stage.tell("all is left in peace")
    return [_outcome(stage, steady, "Never killed"), _outcome(stage, victim, "Killed at random")]


def _outcome(stage: Stage, node: DeskNode, title: str) -> Outcome:
    probes = node.counts["heap"] + 2  # it has looked at its heap in peace
    node.wait_until(lambda: node.counts["heap"] >= probes, 180, "peace")
    ending = stage.finish(node)
    lives = boots(node.lines)
    is_well = bool(lives) and all(map(is_steady, lives))
    checks = [(f"heap at the end as at the start, in all {len(lives)} boots", is_well), ending]
    return Outcome(title, stage.accounts(node, _QOS), checks)


def _heap(node: DeskNode) -> str:
    lives = boots(node.lines)
    if not lives:
        return "no heap probed yet"
    return f"free heap {lives[-1][-1].free}, largest block {lives[-1][-1].largest}"


class Heap(NamedTuple):
    """Bytes free after a collection, and the largest block among them."""

    free: int
    largest: int


def boots(lines: list[str]) -> list[list[Heap]]:
    """The heap over time, boot by boot, from a node's console."""
    found: list[list[Heap]] = []
    for line in lines:
        word, *values = line.split()
        if word == "boot":
            found.append([])
        elif word == "heap" and found:
            found[-1].append(Heap(*map(int, values)))
    return [boot for boot in found if boot]


def is_steady(boot: list[Heap]) -> bool:
    """Is the heap at the end of a boot as it was once the node was connected?

    The first reading is from before the connection and does not count.
    """
    first, last = (boot[1:] or boot)[0], boot[-1]
    return min(last.free - first.free, last.largest - first.largest) >= -_TOLERANCE_BYTES
