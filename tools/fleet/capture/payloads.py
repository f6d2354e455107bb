"""Fingerprints of payloads, and which payloads are readings.

The fingerprint tells messages apart; it is no protection against forgery.
"""

import hashlib

import numpy as np

from .frames import words

_LONG_BYTES = 256
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xD6E8FEB86659FD93)
MOST_VALUES = 9  # of a reading
_READING_BYTES = 41 + 5 * MOST_VALUES + 4  # at most


def payload_hash(data, start, size):
    """A 64-bit fingerprint (int64) of each `data[start : start + size]`."""
    result = (size.astype(np.uint64) + np.uint64(1)) * _STEP
    # The short ones that are not done: eight bytes a round, of the last word only the bytes that
    # belong to it.
    index = np.flatnonzero((size > 0) & (size <= _LONG_BYTES))
    u64 = words(data, "<u8")
    pos, left, state = start[index], size[index], result[index]
    while len(index):
        word = u64[pos].astype(np.uint64)
        spare = np.maximum(8 - left, 0).astype(np.uint64) * np.uint64(8)
        word = (word << spare) >> spare
        state = (state ^ word) * _STEP
        state ^= state >> np.uint64(31)
        goes_on = left > 8
        if not goes_on.all():
            done = ~goes_on
            last = state[done] * _FINAL
            result[index[done]] = last ^ (last >> np.uint64(32))
            index, pos, left, state = index[goes_on], pos[goes_on], left[goes_on], state[goes_on]
        pos, left = pos + 8, left - 8
    for at in np.flatnonzero(size > _LONG_BYTES).tolist():
        part = data[start[at] : start[at] + size[at]]
        digest = hashlib.blake2b(part, digest_size=8).digest()
        result[at] = int.from_bytes(digest, "little")
    return result.view(np.int64)


def is_reading(data, start, size):
    """Which payloads are readings, by magic, version and length: docs/reference/readings.md."""
    result = (size >= 41) & (size <= _READING_BYTES)
    index = np.flatnonzero(result)
    at = start[index]
    count = data[at + 17].astype(np.int64)
    version = data[at + 1].astype(np.int64)
    is_known = (data[at] == 0x75) & (version >= 1) & (version <= 2) & (count <= MOST_VALUES)
    # Version 2 ends with the time of the measurement, four bytes.
    result[index] = is_known & (size[index] == 37 + 5 * count + 4 * version)
    return result
