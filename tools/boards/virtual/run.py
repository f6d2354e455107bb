"""Serve a virtual board until the person presses Ctrl-C."""

import signal

import click

from tools.micropython import MicroPythonError, choose

from ..errors import BoardError
from ..filesystem import make_filesystem
from .board import VirtualBoard


def blank_flash(profile, files=None):
    """Flash content of a board with nothing but a filesystem with `files`."""
    data = bytearray(b"\xff" * profile.flash.size)
    area = make_filesystem(profile, files or {}).data
    start = profile.filesystem.offset
    data[start : start + len(area)] = area
    return bytes(data)


def serve(profile, image):
    """Power on a virtual board on the flash image `image`, made when missing, and wait.

    Ctrl-C and SIGTERM switch it off.
    """
    if not image.exists():
        image.write_bytes(blank_flash(profile))
    try:
        interpreter = choose(bits=32)
    except MicroPythonError as error:
        raise BoardError(str(error)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with VirtualBoard(profile, image, interpreter) as board:
        click.echo(f"virtual board at {board.port}")
        try:
            signal.pause()
        except KeyboardInterrupt:
            click.echo("switched off")
