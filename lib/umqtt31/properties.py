"""MQTT 5 properties: written as new bytes, checked and read in place.

    from umqtt31.properties import encode

    JSON = encode(content_type="application/json", user_property=(("unit", "C"),))

Names are the standard's, in lower case with underscores.  Checking allocates nothing, reading
only what it returns.  MQTT 5 §1.5 and §2.2.2.
"""

from micropython import const  # isort: skip

import umqtt31 as core

# How a value is written: a number in so many bytes, or one of these.
_VARIABLE = const(3)
_BINARY = const(5)
_TEXT = const(6)
_PAIR = const(7)
_FORM = const(7)

_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_ALIAS_INVALID = const(0x94)

_TOPIC_ALIAS = const(35)

# By identifier: the form, and the packets that may bring it: 0x08 CONNACK, 0x10 PUBLISH,
# 0x20 PUBACK and the like, 0x40 DISCONNECT.
RECEIVED = (
    # -  Fmt Exp Typ  -   -   -   -  Rsp Cor  -  Sub  -   -   -   -
    b"\x00\x11\x14\x16\x00\x00\x00\x00\x16\x15\x00\x13\x00\x00\x00\x00"
    # -  SeE Cid KAl  -   -   -  RPI WDe RRI Inf  -  Ref  -   -  Why
    b"\x00\x0c\x0e\x0a\x00\x00\x00\x01\x04\x01\x0e\x00\x4e\x00\x00\x6e"
    # -  RcM AlM Ali QoS Ret Usr Max WSu SId Shr
    b"\x00\x0a\x0a\x02\x09\x09\x7f\x0c\x09\x09\x09"
)
# The same for what a program may give: 0x08 CONNECT, 0x10 PUBLISH, 0x20 will,
# 0x40 DISCONNECT, 0x80 SUBSCRIBE.  MQTT-3.3.4-6: PUBLISH names no subscription.
SENT = (
    b"\x00\x31\x24\x36\x00\x00\x00\x00\x36\x35\x00\x83\x00\x00\x00\x00"
    b"\x00\x44\x00\x00\x00\x00\x00\x09\x24\x09\x00\x00\x00\x00\x00\x46"
    b"\x00\x00\x00\x00\x00\x00\xff\x00\x00\x00\x00"
)

# Each name stands behind its identifier; one that is a part of another one, before that.
_NAMES = (
    "\x01payload_format_indicator\x02message_expiry_interval\x03content_type\x08response_topic"
    "\x09correlation_data\x0bsubscription_identifier\x11session_expiry_interval"
    "\x12assigned_client_identifier\x13server_keep_alive\x17request_problem_information"
    "\x18will_delay_interval\x1aresponse_information\x19request_response_information"
    "\x1cserver_reference\x1freason_string\x21receive_maximum\x22topic_alias_maximum"
    "\x24maximum_qos\x25retain_available\x26user_property\x27maximum_packet_size"
    "\x28wildcard_subscription_available\x29subscription_identifier_available"
    "\x2ashared_subscription_available\0"
)
_CODES = _NAMES.encode()  # a character of a text would be a new object


def number_of(name):
    """-> the identifier of a property, 0 for none."""
    at = _NAMES.find(name)
    if at > 0 and _CODES[at - 1] < 43 > _CODES[at + len(name)]:
        return _CODES[at - 1]
    return 0


# --- writing -------------------------------------------------------------------------


def encode(**values):
    """-> properties as bytes, for `publish(…, properties=…)` and the like.

    Numbers are seconds or bytes, as the standard has them; texts are str or UTF-8 bytes.
    `user_property`: pairs of texts, which may repeat.  Raises ValueError, TypeError.
    """
    out = b""
    for name in sorted(values, key=number_of):
        number = number_of(name)
        if not number:
            raise ValueError("no such property: " + name)
        form = RECEIVED[number] & _FORM
        for one in values[name] if form == _PAIR else (values[name],):
            out += bytes((number,)) + _value(name, form, one)
    return out


def _value(name, form, value):
    if form == _PAIR:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(name + ": no pair of texts")
        return _value(name, _TEXT, value[0]) + _value(name, _TEXT, value[1])
    if form < _BINARY:
        most = 1 if form == 1 else 268435455 if form == _VARIABLE else (1 << 8 * form) - 1
        core.check_range(name, value, form == _VARIABLE, most)
        return variable(value) if form == _VARIABLE else value.to_bytes(form, "big")
    value = bytes(core.as_bytes(name, value))
    # MQTT-3.3.2-14: a topic to answer to has no wildcards.
    n = len(value)
    if n > 65535 or form == _TEXT and not is_text(value, 0, n) or (
        name == "response_topic" and (not value or 35 in value or 43 in value)
    ):  # fmt: skip
        raise ValueError(name + ": not valid")
    return core.string(value)


def variable(number):
    """-> a number as a Variable Byte Integer (§1.5.5)."""
    if number < 128:
        return bytes((number,))
    return bytes((number & 127 | 128,)) + variable(number >> 7)


def given(properties, kind):
    """`properties` as bytes, if a program may give them to such a packet, see SENT.  Raises
    ValueError, TypeError."""
    properties = bytes(core.as_bytes("properties", properties or b""))
    if fault_of(SENT, properties, 0, len(properties), kind):
        raise ValueError("properties not valid here: %r" % properties)
    return properties


# --- checking ------------------------------------------------------------------------


def behind(buf, at):
    """-> where the Variable Byte Integer at `at`, which was checked, ends."""
    while buf[at] > 127:
        at += 1
    return at + 1


def number_at(buf, at, n):
    """-> the number of `n` bytes there."""
    number = 0
    for k in range(at, at + n):
        number = number << 8 | buf[k]
    return number


def variable_at(buf, at):
    """-> the Variable Byte Integer there, -1 if it is malformed."""
    number = 0
    for k in range(min(4, len(buf) - at)):
        c = buf[at + k]
        number |= (c & 127) << 7 * k
        if c < 128:
            # MQTT-1.5.5-1: the shortest form.
            return number if c or not k else -1
    return -1


def take(buf, at, end, kind):
    """Check the properties whose length stands at `at` of a packet that ends at `end`
    -> where they end, or the negative of a reason code."""
    n = variable_at(buf, at)
    if n >= 0:
        at = behind(buf, at)
        n += at
        if n <= end:
            return -fault_of(RECEIVED, buf, at, n, kind) or n
    return -_MALFORMED


def fault_of(table, buf, at, end, kind):
    """-> 0 if just these properties may be in such a packet, else the reason code."""
    start = at
    while at < end:
        number = buf[at]
        form = table[number] if number < 43 else 0
        if not form & kind:
            return _ALIAS_INVALID if number == _TOPIC_ALIAS else _MALFORMED
        form &= _FORM
        after = _end_of(buf, at + 1, end, form)
        if after < 0:
            return _MALFORMED
        if form < _BINARY:
            bits = 0
            for k in range(at + 1, after):
                bits |= buf[k]
            # Some are 0 or 1, others must not be 0.
            if form == 1 and bits > 1 or not bits and number in b"\x0b\x21\x27":
                return _PROTOCOL_ERROR
        # User properties may repeat, and subscription identifiers that come.
        if form < _PAIR and (form != _VARIABLE or table is SENT):
            if find(buf, start, at, number) >= 0:
                return _PROTOCOL_ERROR
        at = after
    return 0


def _end_of(buf, at, end, form):
    # -> where the value at `at` ends, -1 if that is behind `end` or it is not valid.
    if form == _VARIABLE:
        if variable_at(buf, at) < 0:
            return -1
        at = behind(buf, at)
    elif form < _BINARY:
        at += form
    else:
        for _ in range(1 + (form == _PAIR)):
            number = at + 2
            if number > end:
                return -1
            at = number + number_at(buf, at, 2)
            if at > end or form != _BINARY and not is_text(buf, number, at):
                return -1
    return at if at <= end else -1


def is_text(buf, at, end):
    """Is buf[at:end] well-formed UTF-8 without NUL?  MQTT-1.5.4-1, -2."""
    more = last = 0
    for k in range(at, end):
        c = buf[k]
        if more:
            # Not a longer form than needed, no surrogate, nothing above U+10FFFF.
            if c >> 6 != 2 or last == 0xE0 and c < 0xA0 or last == 0xED and c > 0x9F or (
                last == 0xF0 and c < 0x90 or last == 0xF4 and c > 0x8F
            ):  # fmt: skip
                return False
            more -= 1
        elif c > 127:
            if not 0xC2 <= c < 0xF5:
                return False
            more = (c > 0xDF) + (c > 0xEF) + 1
        elif not c:
            return False
        last = c
    return not more


# --- reading -------------------------------------------------------------------------


def find(buf, at, end, number):
    """-> where the value of the first such property begins, -1 if there is none.  They
    were checked."""
    while at < end:
        if buf[at] == number:
            return at + 1
        at = _end_of(buf, at + 1, end, RECEIVED[buf[at]] & _FORM)
    return -1


def get(buf, at, end, number):
    """-> a property by its identifier, None if it is not there: a number, bytes; user
    properties are a list of pairs of bytes, subscription identifiers a list of numbers."""
    form = RECEIVED[number] & _FORM
    found = [] if form == _PAIR or form == _VARIABLE else None
    while True:
        at = find(buf, at, end, number)
        if at < 0:
            return found
        if form == _VARIABLE:
            found.append(variable_at(buf, at))
        elif form < _BINARY:
            return number_at(buf, at, form)
        else:
            value = _bytes_at(buf, at)
            if form != _PAIR:
                return value
            found.append((value, _bytes_at(buf, at + 2 + len(value))))
        at = _end_of(buf, at, end, form)


def _bytes_at(buf, at):
    return bytes(buf[at + 2 : at + 2 + number_at(buf, at, 2)])


class Properties:
    """Properties that were received: `answer.server_reference` and so
    on, None for what it did not say."""

    def __init__(self, data=b""):
        self._data = data

    def value(self, number):
        """-> the property with this identifier."""
        return get(self._data, 0, len(self._data), number)

    def __getattr__(self, name):
        number = number_of(name)
        if not number:
            raise AttributeError(name)
        return self.value(number)
