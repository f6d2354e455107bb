"""What MicroPython has and CPython lacks, so that `import umqtt31` works on a computer.

It stands in for the module `micropython`, which the library imports first, and is never
copied to a board: there the port's own is found before it.  It adds the `ticks` functions,
`sleep_ms`, `asyncio.sleep_ms`, and the stream methods of sockets; what is there already, such as a
test's own, stays.
"""

import asyncio
import io
import socket
import struct
import sys
import time

_PERIOD = 1 << 30  # as on 32-bit boards: ticks wrap after 12.4 days


def const(value):
    """As MicroPython's; and the module that calls it gets MicroPython's BytesIO, pack_into().

    Bytes become a tuple: MicroPython's `in` takes any number for bytes, CPython's only 0 to 255.
    """
    names = sys._getframe(1).f_globals
    if names.get("BytesIO") is io.BytesIO:
        names["BytesIO"] = BytesIO
    if names.get("pack_into") is struct.pack_into:
        names["pack_into"] = pack_into
    return tuple(value) if isinstance(value, bytes) else value


def pack_into(form, buf, at, *values):
    """As MicroPython's, which packs any buffer as "s"."""
    values = [bytes(one) if isinstance(one, memoryview) else one for one in values]
    struct.pack_into(form, buf, at, *values)


def heap_lock():
    """CPython has no heap to lock."""


heap_unlock = heap_lock


class BytesIO:
    """MicroPython's BytesIO: write() takes a part of a buffer, readinto() a number of bytes."""

    def __init__(self, size):
        self._data = bytearray(size)
        self._pos = 0

    def seek(self, pos):
        self._pos = pos

    def write(self, buf, at, n):
        self._data[self._pos : self._pos + n] = memoryview(buf)[at : at + n]
        self._pos += n

    def readinto(self, target, n):
        target[:n] = self._data[self._pos : self._pos + n]
        self._pos += n
        return n


def _ticks_ms():
    return time.monotonic_ns() // 1_000_000 & _PERIOD - 1


def _ticks_add(ticks, delta):
    return ticks + delta & _PERIOD - 1


def _ticks_diff(a, b):
    return (a - b + _PERIOD // 2 & _PERIOD - 1) - _PERIOD // 2


def _readinto(sock, buf, n=None):
    try:
        return sock.recv_into(buf, len(buf) if n is None else n)
    except BlockingIOError:
        return None


def _write(sock, buf, at=0, n=None):
    try:
        return sock.send(memoryview(buf)[at : None if n is None else at + n])
    except BlockingIOError:
        return None


async def _sleep_ms(ms):
    await asyncio.sleep(ms / 1000)


for _owner, _name, _function in (
    (asyncio, "sleep_ms", _sleep_ms),
    (time, "ticks_ms", _ticks_ms),
    (time, "ticks_add", _ticks_add),
    (time, "ticks_diff", _ticks_diff),
    (time, "sleep_ms", lambda ms: time.sleep(ms / 1000)),
    (socket.socket, "readinto", _readinto),
    (socket.socket, "write", _write),
):
    if not hasattr(_owner, _name):
        setattr(_owner, _name, _function)
