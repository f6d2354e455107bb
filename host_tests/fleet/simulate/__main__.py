"""`python -m host_tests.fleet.simulate OUT [NAME=VALUE …]`: a fleet with known faults.

OUT ends with .pcap or .jsonl; the names are those of `run.Plan`, such as devices=20,
readings=400, fault_rate=0.01, kinds=never_sent,reset.  The truth lies in OUT.truth.json.
"""

import ast
import dataclasses
from pathlib import Path

import click

from .kinds import KINDS
from .run import Plan, write

_NAMES = [field.name for field in dataclasses.fields(Plan)]


@click.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("settings", nargs=-1)
def main(out, settings):
    """Write the traffic of a simulated fleet to OUT."""
    values = dict(_setting(one) for one in settings)
    truth = write(Plan(**values), out)
    click.echo("%s: %d packets, %d readings" % (out, sum(truth.packets.values()), truth.readings))


def _setting(text):
    name, _, value = text.partition("=")
    if name not in _NAMES or not value:
        raise click.BadParameter("%r: write NAME=VALUE, NAME one of %s" % (text, _NAMES))
    if name == "kinds":
        kinds = tuple(value.split(","))
        if not set(kinds) <= set(KINDS):
            raise click.BadParameter("%r: kinds are %s" % (text, ", ".join(KINDS)))
        return name, kinds
    default = getattr(Plan, name)
    try:
        found = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        found = None
    wanted = {float: (int, float), type(None): int}.get(type(default), type(default))
    if not isinstance(found, wanted):
        raise click.BadParameter("%r: write a value such as %r" % (text, default or 0))
    return name, found


if __name__ == "__main__":
    main()
