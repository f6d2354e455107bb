"""The sensor node with a probe of its heap among the sensors; runs on the desk.

Every so many samples it prints `heap FREE LARGEST`: bytes that are free after a
collection, and the longest run of free bytes, found by trying.
"""

import gc

import board
from health import largest_block
from micropython import heap_lock, heap_unlock
from start import start

_SAMPLES = 64


def _is_locked():
    try:
        bytearray(1)
        return False
    except MemoryError:
        return True


class HeapProbe:
    """A sensor that adds no value."""

    def __init__(self):
        self._count = 0

    def measure(self, reading):
        """Called with the heap locked while the node is connected."""
        if self._count % _SAMPLES == 0:
            was_locked = _is_locked()
            if was_locked:
                heap_unlock()
            gc.collect()
            print("heap", gc.mem_free(), largest_block(gc.mem_free(), 16))
            if was_locked:
                heap_lock()
        self._count += 1


_sensors = board.sensors
board.sensors = lambda: _sensors() + [HeapProbe()]
start(board)
