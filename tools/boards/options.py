"""Options and progress bars that several commands share."""

import contextlib
import functools
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
ONE = click.IntRange(min=1)  # or more


class Needed(click.Option):
    """An option that must be there; who types `make` hears its name there, too."""

    def __init__(self, *words, **about):
        super().__init__(*words, required=True, **about)

    def get_error_hint(self, ctx):
        return f"{super().get_error_hint(ctx)} (with make: {(self.name or '').upper()}=…)"


def _named_board(context, parameter, value):
    from .profile import board_names

    if not value:
        raise click.UsageError(f"which board? BOARD= is one of: {', '.join(board_names())}")
    return value


board = click.option("--board", callback=_named_board, help="Board name, see `boards list`.")
port = click.option("--port", cls=Needed, help="Serial port, e.g. /dev/ttyUSB0.")
config = click.option("--config", type=FILE, help="The device's device.toml.")
plain = click.option(
    "--debug", "is_plain", type=bool, default=False, is_flag=False, flag_value=True,
    help="The library with its own names and lines.",
)  # fmt: skip
number = click.option(
    "--number",
    type=ONE,
    help="Release number that updates over the air have to exceed; default: when the newest "
    "source was changed.",
)
firmware = click.option(
    "--firmware",
    cls=Needed,
    type=click.Path(path_type=Path),
    help="MicroPython for the board; `boards show` says where to get it.",
)


def count(name, default, about):
    """The option of this name: a whole number, 1 or more."""
    return click.option(name, default=default, type=ONE, show_default=True, help=about)


def check_topic(context, parameter, value):
    from .config import keys

    if not keys.is_allowed("prefix", value):
        raise click.BadParameter(f"allowed: {keys.allowed('prefix')}")
    return value


def topic(name, default, about):
    """The option of this name: a topic, or the first levels of one."""
    return click.option(name, default=default, show_default=True, callback=check_topic, help=about)


prefix = topic("--prefix", "sensors", "First levels of all topics.")


def broker(command):
    """Options that name a broker; the command gets `broker`, a function that connects."""

    @click.option("--server", cls=Needed, help="The broker: HOST, HOST:PORT or [IPv6]:PORT.")
    @click.option("--user", help="User name for the broker.")
    @click.option("--password-file", type=FILE, help="File whose first line is the password.")
    @click.option("--ca", type=FILE, help="CA certificates (PEM); connect with TLS.")
    @click.option("--cert", type=FILE, help="Certificate of ours, if the broker asks for one.")
    @click.option("--cert-key", type=FILE, help="Its key.")
    @functools.wraps(command)
    def with_broker(server, user, password_file, ca, cert, cert_key, **others):
        from .places import read_text
        from .watch import connect

        if cert and not ca:
            raise click.UsageError("--cert goes with --ca")
        if password_file and not user:
            raise click.UsageError("--password-file goes with --user")
        lines = read_text(password_file).splitlines() if password_file else [None]
        if not lines:
            raise click.UsageError(f"{password_file} is empty")
        files = [str(file) if file else None for file in (ca, cert, cert_key)]
        return command(broker=functools.partial(connect, server, user, lines[0], *files), **others)

    return with_broker


def _lines(text, total):
    done = 0

    def advance(name=""):
        nonlocal done
        done += 1
        if total is None:
            if done % 10 == 1:
                click.echo(f"{text} {name}".strip(), err=True)
        elif done == total or done * 10 // total > (done - 1) * 10 // total:
            click.echo(f"{text}: {done} of {total}", err=True)

    return advance


@contextlib.contextmanager
def progress(text, total):
    """A progress bar on stderr -> a function that takes one more finished item's name.

    `total` None: unknown, a spinner.  Without a terminal there are ten lines, or, where
    the total is unknown, one for ten items.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(text, total)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    bar = Progress(*columns, MofNCompleteColumn(), console=console, transient=True)
    with bar:
        task = bar.add_task(text, total=total)

        def advance(name=""):
            bar.update(task, advance=1, description=f"{text} {name}".strip())

        yield advance
