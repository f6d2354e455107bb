"""`python -m host_tests virtual`: serve a virtual board until the person presses Ctrl-C."""

import signal
from pathlib import Path

import click

from tools.boards.errors import BoardError
from tools.boards.filesystem import make_filesystem
from tools.boards.profile import load_profile
from tools.micropython import MicroPythonError, choose

from .board import VirtualBoard


def blank_flash(profile, files=None):
    """Flash content of a board with nothing but a filesystem with `files`."""
    data = bytearray(b"\xff" * profile.flash.size)
    area = make_filesystem(profile, files or {}).data
    start = profile.filesystem.offset
    data[start : start + len(area)] = area
    return bytes(data)


@click.command()
@click.option("--board", default="desk", show_default=True, help="The board to stand in for.")
@click.argument("image", type=click.Path(path_type=Path, dir_okay=False))
def cli(board, image):
    """Run a virtual board on the flash image IMAGE, made when missing, until Ctrl-C."""
    profile = load_profile(board)
    if not image.exists():
        image.write_bytes(blank_flash(profile))
    try:
        interpreter = choose(bits=32)
    except MicroPythonError as error:
        raise BoardError(str(error)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with VirtualBoard(profile, image, interpreter) as running:
        click.echo(f"virtual board at {running.port}")
        try:
            signal.pause()
        except KeyboardInterrupt:
            click.echo("switched off")
