"""What a board prints, as it comes, until the person stops it or the port stays away."""

import sys
import time

from .errors import BoardError
from .port import check_port, is_port_error, open_port
from .remote import Remote

_CHUNK = 1024
_LOOK_AGAIN_S = 0.1
# A board that resets takes its USB port away for a second or three.
_PATIENCE_S = 10


def _to_stdout(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def monitor(
    port, restart=False, write=_to_stdout, until=lambda: False, on_text=lambda text: None,
    patience_s=_PATIENCE_S,
):  # fmt: skip
    """Hand what the board prints to `write` (default: stdout, unbuffered) as it comes.

    `restart` resets the board first, so that nothing of its start is missed; `until` is
    asked between two reads whether to stop.  When the port goes away, `on_text` is told
    and the port opened again as soon as it is back.  Raises BoardError when it cannot be
    used, or does not come back for `patience_s`.
    """
    for data in _printed(port, restart, until, on_text, patience_s):
        write(data)


def _printed(port, restart, until, on_text, patience_s):
    # What the board prints, piece by piece.
    check_port(port)
    while True:
        try:
            with open_port(port, timeout=0.2) as line:
                if restart:
                    restart = False
                    yield Remote.send_restart(line)
                while not until():
                    data = line.read(max(1, min(line.in_waiting, _CHUNK)))
                    if data:
                        yield data
                return
        except Exception as error:
            if isinstance(error, BoardError) or not is_port_error(error):
                raise
        on_text(f"{port} is gone; waiting for it")
        _wait_for(port, patience_s)


def _wait_for(port, patience_s):
    limit = time.monotonic() + patience_s
    while True:
        try:
            return check_port(port)
        except BoardError:
            if time.monotonic() >= limit:
                raise BoardError(
                    f"{port}: the board is gone; plug it in and start again"
                ) from None
        time.sleep(_LOOK_AGAIN_S)
