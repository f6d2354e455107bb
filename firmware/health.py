"""How the node itself is, as values of a reading on a stream of its own.

Written at each start and once a day; docs/readings.md has the kinds.  Allocates.
"""

import gc

from reading import FREE_HEAP, SIGNAL

STREAM = 255
EVERY_S = 86400

CAUSE = 16  # 1 power, 2 reset, 3 watchdog, 4 deep sleep, 5 soft reset, 0 unknown
LARGEST_BLOCK = 17  # bytes
RECONNECTS = 18
DROPS = 19  # messages given up and readings refused
FILL = 20  # 0.01 % of the room for messages in use
CORRUPT_PAGES = 21


def measure(reading, client, network, cause, refused, room, store):
    """Fill `reading`; `room` is how many messages the client takes."""
    gc.collect()
    reading.clear()
    reading.add(CAUSE, cause)
    if hasattr(gc, "mem_free"):
        reading.add(FREE_HEAP, gc.mem_free())
        reading.add(LARGEST_BLOCK, _largest_block(gc.mem_free()))
    reading.add(RECONNECTS, client.stats.reconnects)
    reading.add(DROPS, client.stats.dropped + refused)
    reading.add(FILL, 10000 * (client.inflight + client.queued) // room)
    reading.add(CORRUPT_PAGES, getattr(store, "corrupt_pages", 0))
    rssi = network.rssi()
    if rssi is not None:
        reading.add(SIGNAL, rssi)


def _largest_block(free):
    # Found by trying, to 1/64 of what is free: MicroPython has no better way.
    low, high = 0, free
    while high - low > max(16, free >> 6):
        middle = (low + high) // 2
        try:
            bytearray(middle)
            low = middle
        except MemoryError:
            high = middle
        gc.collect()
    return low
