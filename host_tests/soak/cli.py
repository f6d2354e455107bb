"""Command line of the soak."""

import time
from pathlib import Path

import click
from rich.console import Console

from host_tests.brokers import BrokerError
from tools.demo import verdict
from tools.demo.desk import DeskError, DeskNode
from tools.demo.stage import Outcome, Stage
from tools.micropython import Interpreter, MicroPythonError, choose
from tools.project import ROOT

from . import heap
from .disturber import Disturber

# With the journal all of the library is loaded, and without ROMFS its code is in the heap.
_HEAP_KB = {"ram": {32: 112, 64: 208}, "journal": {32: 128, 64: 240}}
_STORES = {"steady": "ram", "killed": "journal"}
_QOS = [1, 2]
_TELL_EVERY_S = 30.0
_PROBE = Path(__file__).parent / "device" / "soak_node.py"


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="How long things break.",
)
@click.option("--seed", default=1, show_default=True, help="Chooses what breaks when.")
@click.option("--bits", type=click.Choice(["32", "64"]), default="32", show_default=True)
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
def cli(minutes: float, seed: int, bits: str, level: str, interval_ms: int, out: Path) -> None:
    """Two sensor nodes for MINUTES: one is never killed and has its store in RAM, the
    other is killed again and again and has its journal on flash."""
    console = Console()
    try:
        interpreter = choose(bits=int(bits))
        console.print(_opening(interpreter, int(level), seed), highlight=False)
        with Stage(out, interpreter, console) as stage:
            steady, victim = (_node(stage, name, int(level), interval_ms) for name in _STORES)
            disturber = Disturber(stage.broker, stage.proxy, victim, seed)
            outcomes = _soak(stage, steady, victim, disturber, minutes * 60)
    except (BrokerError, DeskError, MicroPythonError, TimeoutError) as error:
        raise click.ClickException(str(error)) from None
    broken = ", ".join(f"{name} {count}" for name, count in sorted(disturber.counts.items()))
    console.print(f"\nbroken on the way: {broken}", highlight=False)
    for outcome, node in zip(outcomes, (steady, victim), strict=True):
        verdict.show(console, outcome)
        _show_heap(console, node)
    if not all(map(verdict.holds, outcomes)):
        raise click.ClickException(f"a promise was broken; the logs are in {out}")
    console.print("[green]Every promise held.[/green]")


def _opening(interpreter: Interpreter, level: int, seed: int) -> str:
    bits = interpreter.bits
    sizes = (f"{_HEAP_KB[store][bits]} KB with {store}" for store in _STORES.values())
    return (
        f"MicroPython {interpreter.release}, {bits} bits, MQTT level {level}, heap"
        f" {', '.join(sizes)}, seed {seed}"
    )


def _node(stage: Stage, name: str, level: int, interval_ms: int) -> DeskNode:
    store = _STORES[name]
    return stage.node(
        f"soak-{name}",
        heap_bytes=_HEAP_KB[store][stage.interpreter.bits] * 1024,
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
            stage.tell(f"{_accepted(steady)} readings, {_heap(steady)}, never killed")
            stage.tell(f"{_accepted(victim)} readings, {_heap(victim)}, killed")
    stage.tell("all is left in peace")
    for node in (steady, victim):
        _settle(node)
    return [_outcome(stage, steady, "Never killed"), _outcome(stage, victim, "Killed at random")]


def _settle(node: DeskNode) -> None:
    # Until the node has looked at its heap in peace.
    probes = node.counts["heap"] + 2
    node.wait_until(lambda: node.counts["heap"] >= probes, 180, "peace")


def _outcome(stage: Stage, node: DeskNode, title: str) -> Outcome:
    ending = stage.finish(node)
    boots = heap.boots(node.lines)
    is_steady = bool(boots) and all(map(heap.is_steady, boots))
    checks = [(f"heap at the end as at the start, in all {len(boots)} boots", is_steady), ending]
    return Outcome(title, stage.accounts(node, _QOS), checks)


def _accepted(node: DeskNode) -> int:
    return sum(node.accepted_in_stream(stream) for stream in range(len(_QOS)))


def _heap(node: DeskNode) -> str:
    boots = heap.boots(node.lines)
    if not boots:
        return "no heap probed yet"
    return f"free heap {boots[-1][-1].free}, largest block {boots[-1][-1].largest}"


def _show_heap(console: Console, node: DeskNode) -> None:
    longest = max(heap.boots(node.lines), key=len, default=[])
    for one in longest[:1] + longest[-1:]:
        text = f"  free heap at an end of its longest boot: {one.free}, largest {one.largest}"
        console.print(text, highlight=False)
