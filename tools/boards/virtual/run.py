"""Serve a virtual board until the person presses Ctrl-C."""

import signal

import click

from tools.micropython import MicroPythonError, choose

from ..errors import BoardError
from ..filesystem import make_filesystem
from .board import VirtualBoard


def serve(profile, image, heap_bytes):
    """Power on a virtual board on the flash image `image`, made when missing, and wait.

    Ctrl-C and SIGTERM switch it off.
    """
    if not image.exists():
        image.write_bytes(make_filesystem(profile, {}).data)
    try:
        interpreter = choose(bits=32)
    except MicroPythonError as error:
        raise BoardError(str(error)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with VirtualBoard(image, interpreter, profile.filesystem, heap_bytes) as board:
        click.echo(f"virtual board at {board.port}")
        try:
            signal.pause()
        except KeyboardInterrupt:
            click.echo("switched off")
