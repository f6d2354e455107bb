"""The packets of which there are few: CONNECT, SUBSCRIBE and what answers them.

Their fields go into the `detail` column as JSON.  User names and passwords are
never copied; only that they were there.
"""

import json

_CLIENT_ID_PROPERTY = 0x12
# Sizes of level 5 properties by identifier: bytes, or "s" string, "p" pair, "v" varint.
_PROPERTY_SIZES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
    **dict.fromkeys((0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F), "s"),
    0x0B: "v",
    0x26: "p",
}


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
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 21:
                raise IndexError

    def properties(self):
        """-> {identifier: value} of those that matter here."""
        size = self.varint()
        inner = _Cursor(self.take(size))
        found = {}
        while inner.pos < size:
            kind = inner.number(1)
            form = _PROPERTY_SIZES.get(kind)
            if form is None:
                raise IndexError
            if form == "s":
                found[kind] = inner.string()
            elif form == "p":
                inner.string(), inner.string()
            elif form == "v":
                found[kind] = inner.varint()
            else:
                found[kind] = inner.number(form)
        return found

    @property
    def is_done(self):
        return self.pos >= len(self.data)


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
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _connect(cursor, level, fields):
    fields["protocol"] = text(cursor.string())
    fields["level"] = level = cursor.number(1) & 127
    flags = cursor.number(1)
    fields["flags"] = flags
    fields["clean_session"] = bool(flags & 2)
    fields["keep_alive_s"] = cursor.number(2)
    if level == 5:
        properties = cursor.properties()
        fields["session_expiry_s"] = properties.get(0x11, 0)
        fields["receive_maximum"] = properties.get(0x21, 65535)
    fields["client_id"] = text(cursor.string())
    if flags & 4:
        if level == 5:
            cursor.properties()
        fields["will_topic"] = text(cursor.string())
        fields["will_bytes"] = len(cursor.string())
        fields["will_qos"] = flags >> 3 & 3
        fields["will_retain"] = bool(flags & 32)
    fields["has_user"] = bool(flags & 128)
    fields["has_password"] = bool(flags & 64)


def _connack(cursor, level, fields):
    fields["session_present"] = bool(cursor.number(1) & 1)
    fields["return_code"] = cursor.number(1)
    if level == 5 and not cursor.is_done:
        properties = cursor.properties()
        if _CLIENT_ID_PROPERTY in properties:
            fields["client_id"] = text(properties[_CLIENT_ID_PROPERTY])
        if 0x13 in properties:
            fields["keep_alive_s"] = properties[0x13]


def _subscribe(cursor, level, fields):
    cursor.number(2)
    if level == 5:
        cursor.properties()
    fields["filters"] = filters = []
    while not cursor.is_done:
        name = text(cursor.string())
        filters.append([name, cursor.number(1)])


def _unsubscribe(cursor, level, fields):
    cursor.number(2)
    if level == 5:
        cursor.properties()
    fields["filters"] = filters = []
    while not cursor.is_done:
        filters.append([text(cursor.string())])


def _suback(cursor, level, fields):
    cursor.number(2)
    if level == 5:
        cursor.properties()
    fields["codes"] = list(cursor.take(len(cursor.data) - cursor.pos))


def _unsuback(cursor, level, fields):
    # Before level 5 an UNSUBACK is a packet id and nothing else.
    if level == 5:
        _suback(cursor, level, fields)


_READERS = {
    1: _connect,
    2: _connack,
    8: _subscribe,
    9: _suback,
    10: _unsubscribe,
    11: _unsuback,
}
