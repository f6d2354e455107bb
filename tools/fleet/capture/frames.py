"""What a capture file yields: frames in a buffer, and a tally of what it held.

A reader hands out `Frames`, some megabytes at a time, so that memory does not
grow with the file.  `Tally` counts everything that did not become a segment and
remembers the first error with its byte, for the operator.
"""

from dataclasses import dataclass, field

import numpy as np

PAD_BYTES = 64  # readable behind every buffer, so that header reads need no bounds check
CHUNK_BYTES = 16 << 20


@dataclass
class Frames:
    """A run of frames of one file, in file order.

    `data` is a uint8 array with `PAD_BYTES` zeros behind the last frame; `base` the
    file offset of `data[0]`; `start`, `size`, `ts` (microseconds, UTC) and `link`
    (link type number) have one entry for each frame.
    """

    data: np.ndarray
    base: int
    start: np.ndarray
    size: np.ndarray
    ts: np.ndarray
    link: np.ndarray | int


@dataclass
class Tally:
    """Counters of one capture file, its errors as (byte offset, text), why it was not read.

    `is_growing`: somebody writes to the file, so that its end may be cut short; `is_cut`: that it
    is, was noted; `last_ts` is the time of the last frame that was read.
    """

    counts: dict = field(default_factory=dict)
    errors: list = field(default_factory=list)
    unread: list = field(default_factory=list)
    is_growing: bool = False
    is_cut: bool = False
    last_ts: int | None = None

    def add(self, name, number=1):
        """Count `number` more of `name`; nothing is kept for 0."""
        if number:
            self.counts[name] = self.counts.get(name, 0) + int(number)

    def error(self, offset, text):
        """Note an error; the first hundred are kept, all are counted."""
        self.add("errors")
        if len(self.errors) < 100:
            self.errors.append((int(offset), text))

    def cut_short(self, offset, text):
        """Note, once, that the file ends in the middle of something: an error, unless it grows."""
        if self.is_growing:
            self.add("unfinished")
        elif not self.is_cut:
            self.error(offset, text)
        self.is_cut = True

    def not_read(self, text):
        """The file was passed over, and why."""
        self.unread.append(text)


class CaptureError(Exception):
    """A file that is no capture at all: `args` are byte offset and text."""


def refill(stream, rest, chunk_bytes):
    """A new buffer with `rest` and up to `chunk_bytes` more of `stream` -> (array, end).

    `PAD_BYTES` zeros stand behind `end`.
    """
    kept = len(rest)
    array = np.empty(kept + chunk_bytes + PAD_BYTES, np.uint8)
    array.data[:kept] = memoryview(rest)
    got = stream.readinto(array.data[kept : kept + chunk_bytes])
    end = kept + got
    array[end : end + PAD_BYTES] = 0
    return array[: end + PAD_BYTES], end


def padded(data):
    """A uint8 array of `data` (bytes) with `PAD_BYTES` zeros behind it."""
    return np.frombuffer(b"".join((data, bytes(PAD_BYTES))), np.uint8)


def words(data, dtype):
    """Every position of the uint8 array `data` read as `dtype`, aligned or not."""
    size = np.dtype(dtype).itemsize
    return np.ndarray((len(data) - size + 1,), dtype, data, strides=(1,))


def varints(data, at):
    """MQTT's variable byte integers at these places -> (their values, the places behind them).

    One of five bytes and more ends nowhere (31-2.1-LEN): its value is larger than any file.
    """
    value, goes_on = np.zeros(len(at), np.int64), np.ones(len(at), bool)
    for shift in (0, 7, 14, 21):
        byte = data[np.minimum(at, len(data) - 1)].astype(np.int64)
        value += np.where(goes_on, (byte & 127) << shift, 0)
        at = at + goes_on
        goes_on &= byte > 127
    value[goes_on] = 1 << 40
    return value, at
