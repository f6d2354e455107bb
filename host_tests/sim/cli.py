"""Command line of the simulator: campaigns, and one schedule again with its trace."""

import time
from itertools import chain

import click
from rich.console import Console

from . import campaign, faults, script

_SEEDS = 1 << 40


@click.group()
def cli():
    """Run the client against faults at every place, deterministically."""


@cli.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Stop after so long.",
)
@click.option("--seed", default=0, show_default=True, help="First seed of the random schedules.")
def run(seconds, seed):
    """Every single fault, every pair of places, then random schedules."""
    total = campaign.Result()
    start = time.monotonic()
    jobs = campaign.exhaustive_jobs()
    more = campaign.random_jobs(seed, _SEEDS)
    left = len(jobs)
    console = Console()
    with console.status("schedules") as status:
        for result in campaign.run_jobs(chain(jobs, more), seconds):
            total.add(result)
            left -= result.is_exhaustive
            status.update(f"{len(total.schedules):,} schedules")
            if total.failures:
                break
    passed = time.monotonic() - start
    rate = len(total.schedules) / passed
    console.print(
        f"{len(total.schedules):,} distinct fault schedules in {passed:.0f} s, {rate:,.0f}/s"
    )
    if left:
        console.print(f"the exhaustive part is not finished: {left} scripts left")
    if not total.failures:
        console.print("every promise held")
        return
    failure = campaign.shrink(total.failures[0])
    console.print(f"broken: {failure.message}", markup=False)
    console.print("smallest schedule that shows it:")
    console.print(failure.command, markup=False, soft_wrap=True)
    raise SystemExit(1)


@cli.command()
@click.argument("settings")
@click.argument("schedule", default="")
def replay(settings, schedule):
    """Run the script SETTINGS with the faults SCHEDULE and print all that happens.

    For example: replay "up=22 window=2" "close@up37 reset@store4"
    """
    try:
        item = script.parse(settings)
        struck = faults.parse(schedule)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    failure, world = campaign.attempt(item, struck, is_traced=True)
    for line in world.trace or ():
        click.echo(line)
    missed = [str(fault) for fault in struck if fault not in world.struck]
    if missed:
        click.echo(f"never reached: {' '.join(missed)}")
    if failure:
        click.echo(f"broken: {failure.message}")
        raise SystemExit(1)
    passed = (f"{place} {count}" for place, count in world.places().items() if count)
    click.echo("every promise held; places passed: " + ", ".join(passed))
