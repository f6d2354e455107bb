"""Read the journal's flash back from a board, as an image file for `tools.journal`."""

import binascii

from . import device
from .errors import BoardError
from .remote import Remote


def read_area(port):
    """The bytes of the journal area of the board at `port`; BoardError if it has none."""
    lines = Remote(port).execute(device.source("journal_area")).split()
    try:
        size = int(lines[0])
        erased = b"\xff" * size
        blocks = [erased if line == "-" else binascii.a2b_base64(line) for line in lines[1:]]
    except (IndexError, ValueError):
        raise BoardError(f"{port}: the answer was cut short; try again") from None
    if any(len(block) != size for block in blocks):
        raise BoardError(f"{port}: the answer was cut short; try again")
    return b"".join(blocks)
