"""Click command of the demo."""

from pathlib import Path

import click
from rich.console import Console

from tools.micropython import Interpreter, MicroPythonError, choose, interpreters
from tools.project import ROOT

from . import acts, audit, verdict
from .broker import BrokerError
from .desk import HEAP_BYTES, DeskError
from .stage import Outcome, Stage

_HELP = """Run the sensor node on this computer and break everything around it.

The node is the firmware of firmware/ under real MicroPython with a board-sized heap,
the broker is mosquitto on a free loopback port, the receiver is Eclipse Paho.  At the
end the fleet pipeline audits the captured packets, which needs Java.
Exit status 0 only if every promise held.
"""


@click.command(help=_HELP, context_settings={"show_default": True})
@click.option(
    "--readings", type=click.IntRange(1, 10_000), default=40,
    help="Readings at each QoS between two faults.",
)  # fmt: skip
@click.option(
    "--kills",
    type=click.IntRange(5, 1000),
    default=20,
    help="How often the node's plug is pulled.",
)
@click.option("--seed", default=1, help="Chooses the moments at which it is pulled.")
@click.option(
    "--bits",
    type=click.Choice(["32", "64"]),
    help="MicroPython's word size.  [default: 32 where there is one, as a board has]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "build" / "demo",
    show_default="build/demo",
    help="Folder for the capture and the logs; emptied first.",
)
def cli(readings: int, kills: int, seed: int, bits: str | None, out: Path) -> None:
    console = Console()
    try:
        smallest = min((one.bits for one in interpreters()), default=64)
        interpreter = choose(bits=int(bits or smallest))
        console.print(_opening(interpreter), highlight=False)
        stage = Stage(out, interpreter, console)
        outcomes = _play(stage, readings, kills, seed)
    except (BrokerError, DeskError, MicroPythonError, TimeoutError) as error:
        raise click.ClickException(str(error)) from None
    for outcome in outcomes:
        verdict.show(console, outcome)
    console.print(
        f"\nEvery packet of the node, for Wireshark: {stage.capture_path}", soft_wrap=True
    )
    is_clean = audit.play(console, stage.capture_path.parent, out / "audit")
    if not (is_clean and all(map(verdict.holds, outcomes))):
        raise click.ClickException(f"a promise was broken; the logs are in {out}")
    console.print("[green]Every promise held.[/green]")


def _play(stage: Stage, readings: int, kills: int, seed: int) -> list[Outcome]:
    with stage:
        return [acts.break_links(stage, readings), acts.pull_plugs(stage, kills, seed)]


def _opening(interpreter: Interpreter) -> str:
    heap_kb = HEAP_BYTES[interpreter.bits] // 1024
    return (
        f"Sensor node: firmware/ under MicroPython {interpreter.release},"
        f" {interpreter.bits} bits, heap {heap_kb} KB\n"
        "Broker: mosquitto.  Receiver: Eclipse Paho."
    )
