"""Fingerprints of payloads, and readings among them (docs/reference/readings.md).

The fingerprint tells messages apart; it is no protection against forgery.  A reading that is a
JSON object gets the form of the binary envelope, with a magic byte of its own: whether its
counter counts, only many of them show (`audit.readings`).
"""

import hashlib
import json
import re
import struct
import zlib

import numpy as np

from .frames import words

_LONG_BYTES = 256
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xD6E8FEB86659FD93)
MOST_VALUES = 9  # of a reading
_READING_BYTES = 41 + 5 * MOST_VALUES + 4  # at most

MAGIC = 0x4A
# Names of fields: the first that is there counts.  --counter adds names of counters.
COUNTERS = ("sequence", "sequence_number", "seq", "counter", "count", "n", "nr", "msg_id")
_DEVICES = ("device", "device_id", "dev", "client_id", "id", "name")
_BOOTS, _FIRMWARES = ("boot", "boots", "boot_count"), ("firmware", "fw", "version")
_HEADER = struct.Struct(">BBHIIIBB23sI")
_NAME_BYTES = 23


def payload_hash(data, start, size):
    """A 64-bit fingerprint (int64) of each `data[start : start + size]`."""
    result = (size.astype(np.uint64) + np.uint64(1)) * _STEP
    # The short ones that are left: eight bytes a round, and of the last word only its own bytes.
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


def envelope(payload, topic, counters=COUNTERS):
    """The envelope of a JSON payload, or None where it has no counter."""
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    number = _number(fields, counters) if isinstance(fields, dict) else None
    if number is None:
        return None
    device = next((fields[name] for name in _DEVICES if isinstance(fields.get(name), str)), topic)
    boot = _number(fields, _BOOTS) or 0
    stream = _number(fields, ("stream",), 255)
    if stream is None:
        stream = zlib.crc32((topic or "").encode()) & 0xFF
    uptime = _number(fields, ("uptime_s", "uptime")) or 0
    text = next((str(fields[name]) for name in _FIRMWARES if name in fields), "")
    found = re.match(r"v?(\d{1,2})\.(\d{1,2})", text)
    firmware = int(found[1]) << 8 | int(found[2]) if found else 0
    head = (MAGIC, 2, firmware, boot, number, uptime, stream, 0, _name(device or ""))
    return _HEADER.pack(*head, _number(fields, ("time",)) or 0)


def _number(fields, names, most=0xFFFFFFFF):
    for name in names:
        value = fields.get(name)
        if type(value) is int and 0 <= value <= most:
            return value
    return None


def _name(text):
    # A long name is cut, and gets a mark that tells it from others with the same beginning.
    name = text.encode("utf-8", "replace")
    if len(name) > _NAME_BYTES:
        name = name[-14:] + b"~" + hashlib.blake2b(name, digest_size=4).hexdigest().encode()
        name = name.decode("utf-8", "ignore").encode()
    return name
