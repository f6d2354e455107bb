"""`python -m host_tests.fleet.situations FOLDER [NAME …]` plays the situations and writes their
captures, each into a folder of its own (a site).
"""

import tempfile
from pathlib import Path

import click

from tools.demo.mosquitto import Mosquitto

from . import SITUATIONS, derive
from .recorder import Recorder
from .stage import Stage


def record(folder: Path, names=()) -> list[str]:
    """Record all situations, or some, below `folder` -> the names of those written."""
    chosen = list(names) or [*SITUATIONS, *derive.DERIVED]
    for name in chosen:
        if name in SITUATIONS:
            _play(SITUATIONS[name], folder / name)
    for name in chosen:
        if name in derive.DERIVED:
            derive.write(name, folder)
    return chosen


def _play(situation, target):
    target.mkdir(parents=True, exist_ok=True)
    options = dict(situation.broker)
    with tempfile.TemporaryDirectory() as folder:
        if "acl" in options:
            path = Path(folder) / "acl"
            path.write_text(options.pop("acl") + "\n")
            options["acl_file"] = path
        with Mosquitto(**options) as broker:
            with Recorder(broker.port, target / "traffic.pcap") as recorder:
                stage = Stage(broker, recorder, Path(folder))
                situation.play(stage)
                stage.finish()
    _join(target)


def _join(target):
    # What several recorders wrote, as one capture.
    others = sorted(target.glob("beside-*.pcap"))
    if others:
        path = target / "traffic.pcap"
        header, frames = derive.read(path)
        for other in others:
            frames += derive.read(other)[1]
            other.unlink()
        derive.write_frames(path, header, sorted(frames, key=lambda one: one[0]))


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
def main(folder, names):
    """Record all situations, or the NAMES given, below FOLDER."""
    for name in record(folder, names):
        click.echo(name)


if __name__ == "__main__":
    main()
