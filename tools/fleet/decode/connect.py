"""The packets of which there are few: CONNECT, SUBSCRIBE, what answers them, DISCONNECT.

Their fields go into the `detail` column as JSON, and so do the properties of a level 5
PUBLISH that decide what becomes of it.  User names and passwords are never copied;
only that they were there.
"""

import json
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ..capture import payloads
from ..capture.frames import padded
from .plausible import header

# Properties of level 5 (§2.2.2.2) that the audit needs, by identifier.
_SESSION_EXPIRY, _CLIENT_ID, _WILL_DELAY, _RECEIVE_MAXIMUM = 0x11, 0x12, 0x18, 0x21
_NAMES = {
    **{0x02: "message_expiry_s", 0x11: "session_expiry_s", 0x12: "client_id"},
    **{0x13: "keep_alive_s", 0x23: "topic_alias", 0x27: "maximum_packet_bytes"},
}
OF_PUBLISH = {0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26}


class _Cursor:
    """Reads fields one after the other; IndexError when the packet is too short."""

    def __init__(self, data):
        self.data = data
        self.pos = 0

    def take(self, size):
        end = self.pos + size
        if end > len(self.data):
            raise IndexError
        part = self.data[self.pos : end]
        self.pos = end
        return part

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def string(self):
        return self.take(self.number(2))

    def varint(self):
        self.pos, end = header(self.data, self.pos - 1, len(self.data))
        if end <= 0:
            raise IndexError
        return end - self.pos

    def properties(self):
        """-> {identifier: value}"""
        size = self.varint()
        inner = _Cursor(self.take(size))
        found = {}
        while inner.pos < size:
            kind = inner.number(1)
            if kind not in _PROPERTIES:
                raise IndexError
            found[kind] = _PROPERTIES[kind](inner)
        return found

    @property
    def is_done(self):
        return self.pos >= len(self.data)


_PROPERTIES: dict[int, Callable] = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), lambda one: one.number(1)),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), lambda one: one.number(2)),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), lambda one: one.number(4)),
    **dict.fromkeys((0x03, 0x08, 0x09, 0x15, 0x16, 0x1A, 0x1C, 0x1F), _Cursor.string),
    **{0x0B: _Cursor.varint, 0x26: lambda one: (one.string(), one.string())},
    _CLIENT_ID: lambda one: text(one.string()),
}


def text(data):
    """Bytes as text, whatever they are."""
    return bytes(data).decode("utf-8", "backslashreplace")


def read(kind, body, level):
    """Fields of a packet of type number `kind`, from its bytes behind the header.

    -> (dict, error or None); what was read before an error is kept.
    """
    fields = {}
    reader = _READERS.get(kind)
    try:
        if reader:
            reader(_Cursor(body), level, fields)
    except IndexError:
        return fields, "packet shorter than its fields"
    return fields, None


def to_json(fields):
    """The `detail` column's text."""
    return _ENCODER.encode(fields)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@lru_cache(4096)
def read_text(kind, body, level):
    """-> (JSON of the fields or None, error or None), as `to_json` of what `read` gives."""
    fields, error = read(kind, body, level)
    return (to_json(fields) if fields else None), error


def _named(properties, *kinds):
    # -> {name: value} of the properties of these kinds that are there.
    return {_NAMES[kind]: properties[kind] for kind in kinds if kind in properties}


def _connect(cursor, level, fields):
    fields["protocol"] = text(cursor.string())
    # The highest bit marks the connection of a bridge between brokers.
    number = cursor.number(1)
    fields["level"] = level = number & 127
    if number > 127:
        fields["is_bridge"] = True
    fields["flags"] = flags = cursor.number(1)
    fields["clean_session"] = bool(flags & 2)
    fields["keep_alive_s"] = cursor.number(2)
    if level == 5:
        properties = cursor.properties()
        fields["session_expiry_s"] = properties.get(_SESSION_EXPIRY, 0)
        fields["receive_maximum"] = properties.get(_RECEIVE_MAXIMUM, 65535)
        fields.update(_named(properties, 0x27))
    fields["client_id"] = text(cursor.string())
    if flags & 4:
        if level == 5:
            fields["will_delay_s"] = cursor.properties().get(_WILL_DELAY, 0)
        fields["will_topic"] = text(cursor.string())
        message = cursor.string()
        fields["will_bytes"] = len(message)
        # As the column `payload_hash` has it.
        place, size = np.zeros(1, np.int64), np.array([len(message)], np.int64)
        fields["will_hash"] = int(payloads.payload_hash(padded(message), place, size)[0])
        fields["will_qos"] = flags >> 3 & 3
        fields["will_retain"] = bool(flags & 32)
    fields["has_user"] = bool(flags & 128)
    fields["has_password"] = bool(flags & 64)


def _connack(cursor, level, fields):
    fields["session_present"] = bool(cursor.number(1) & 1)
    fields["return_code"] = cursor.number(1)
    if level == 5 and not cursor.is_done:
        properties = cursor.properties()
        fields["receive_maximum"] = properties.get(_RECEIVE_MAXIMUM, 65535)
        fields.update(_named(properties, _CLIENT_ID, 0x13, _SESSION_EXPIRY))


def _skip_head(cursor, level):
    cursor.number(2)  # packet id
    if level == 5:
        cursor.properties()


def _subscribe(cursor, level, fields, options=1):
    _skip_head(cursor, level)
    fields["filters"] = filters = []
    while not cursor.is_done:
        filters.append([text(cursor.string()), *cursor.take(options)])


def _suback(cursor, level, fields):
    _skip_head(cursor, level)
    fields["codes"] = list(cursor.take(len(cursor.data) - cursor.pos))


def _disconnect(cursor, level, fields):
    if cursor.is_done:
        return
    fields["reason_code"] = cursor.number(1)
    properties = {} if cursor.is_done else cursor.properties()
    fields.update(_named(properties, _SESSION_EXPIRY))


_READERS: dict[int, Callable] = {
    **{1: _connect, 2: _connack, 8: _subscribe, 9: _suback, 11: _suback, 14: _disconnect},
    10: partial(_subscribe, options=0),
}


def read_publish(properties):
    """Message expiry and topic alias of a level 5 PUBLISH, from its properties' bytes.

    The length in front of them is part of them.  -> dict, empty without either.
    """
    try:
        found = _Cursor(properties).properties()
    except IndexError:
        return {}
    return _named(found, 0x02, 0x23)


def are_of_publish(properties):
    """Can these bytes, the length in front of them included, be the properties of a PUBLISH?"""
    try:
        return _Cursor(properties).properties().keys() <= OF_PUBLISH
    except IndexError:
        return False
