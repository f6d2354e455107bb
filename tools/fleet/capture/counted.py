"""Readings as JSON objects: a device, a counter, values (docs/reference/readings.md).

What the audit needs of one, it is told in the form of the binary envelope, with a magic byte of
its own: whether its counter counts, only many of them show (`audit.readings`).
"""

import hashlib
import json
import re
import struct
import zlib

MAGIC = 0x4A
# Names of fields, the first one that is there; a counter of another name is named by --counter.
COUNTERS = ("sequence", "sequence_number", "seq", "counter", "count", "n", "nr", "msg_id")
_DEVICES = ("device", "device_id", "dev", "client_id", "id", "name")
_BOOTS, _FIRMWARES = ("boot", "boots", "boot_count"), ("firmware", "fw", "version")
_HEADER = struct.Struct(">BBHIIIBB23sI")
_NAME_BYTES = 23


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
    # A long one is cut, and told from others that begin alike.
    name = text.encode("utf-8", "replace")
    if len(name) > _NAME_BYTES:
        name = name[-14:] + b"~" + hashlib.blake2b(name, digest_size=4).hexdigest().encode()
        name = name.decode("utf-8", "ignore").encode()
    return name
