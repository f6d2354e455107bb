"""Commands that look at devices or their settings: monitor, watch, journal, advise."""

import contextlib
from pathlib import Path

import click

from . import options
from .places import BUILD, shown, write_private
from .profile import load_profile


@contextlib.contextmanager
def _until_ctrl_c():
    try:
        yield
    except KeyboardInterrupt:
        click.echo()  # the way to end it, so this is no failure


def _say(text):
    # On stderr, as stdout may go to a file.
    click.echo(text, err=True)


@click.command()
@options.port
@click.option("--restart", is_flag=True, help="Reset the board first, to see it start.")
def monitor(port, restart):
    """Show what the board prints, until Ctrl-C."""
    from .monitor import monitor as follow

    with _until_ctrl_c():
        follow(port, restart, on_text=_say)


@click.command()
@options.broker
@options.prefix
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def watch(broker, prefix, as_json):
    """Show readings, health, status and answers of a fleet as they come, until Ctrl-C."""
    from .watch import watch as listen

    with _until_ctrl_c():
        listen(broker(), prefix, click.echo, as_json, on_text=_say)


@click.command()
@options.broker
@options.topic("--topic", "sensors/time", "The time_topic.")
@options.count("--every", 60, "Seconds from one to the next.")
def clock(broker, topic, every):
    """Publish the time for boards that reach no NTP server, until Ctrl-C."""
    from .clock import publish_time

    client = broker(cleared=topic)
    click.echo(f"the time goes to {topic}, every {every} s; Ctrl-C takes it away again")
    with _until_ctrl_c():
        publish_time(client, topic, every)


@click.command()
@options.port
@click.option("--out", type=click.Path(path_type=Path), help="Default: build/journal.img.")
@click.pass_context
def journal(context, port, out):
    """Read the journal area back from the board and show what is in it."""
    from tools.journal.cli import dump

    from .remote import Remote

    out = out or BUILD / "journal.img"
    board = Remote(port)
    with board.stopped():
        data = board.read_journal()
    out.parent.mkdir(parents=True, exist_ok=True)
    write_private(out, data)
    click.echo(f"{shown(out)}: {len(data):,} bytes")
    if set(data) == {0xFF}:
        click.echo("the journal is empty: nothing was written yet")
    else:
        context.invoke(dump, file=out)


@click.command()
@options.board
@options.config
@click.option("--ordered", is_flag=True, help="The client has ordered=True.")
@click.option(
    "--overflow", type=click.Choice(["refuse", "drop_oldest", "latest"]), default="refuse"
)
@click.option("--max-age", is_flag=True, help="Messages have an age limit.")
@click.option("--clean-session", is_flag=True, help="The client connects with a clean session.")
@click.option("--tasks", default=1, show_default=True, help="Tasks or threads that publish.")
def advise(board, config, ordered, overflow, max_age, clean_session, tasks):
    """Say which order receivers can count on, and which rule breaks a stronger one."""
    from . import advise as advice
    from .config import keys, read_config

    profile = load_profile(board)
    settings = keys.complete(
        read_config(config, profile) if config else profile.defaults.model_dump()
    )
    client = advice.Client(ordered, overflow, max_age, clean_session, tasks)
    if wrong := advice.refusals(settings, client):
        raise click.ClickException("; ".join(wrong))
    for one in advice.advise(settings, client):
        click.echo(f"stream {one.stream}, QoS {one.qos}: {advice.ORDERS[one.order]}")
        for rule, what in one.broken:
            click.echo(f"    {rule}: {what}")
    for text in advice.notes(settings, client):
        click.echo(f"  {text}")
    for name, text in advice.load(profile, settings).items():
        click.echo(f"  {name}: {text}")
