"""MQTT 5 properties: written as new bytes, checked and read in place.

    from umqtt31.properties import encode

    JSON = encode(content_type="application/json", user_property=(("unit", "C"),))

Names are the standard's, in lower case with underscores.  Checking allocates nothing, reading
only what it returns.  MQTT 5 §1.5 and §2.2.2.
"""

from micropython import const

from . import as_bytes, check_range, string

# How a value is written: a number in so many bytes, or one of these.
_VARIABLE = const(3)
_BINARY = const(5)
_TEXT = const(6)
_PAIR = const(7)
_FORM = const(7)

_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_ALIAS_INVALID = const(0x94)

_SUBSCRIPTION_IDENTIFIER = const(11)
_TOPIC_ALIAS = const(35)
_USER_PROPERTY = const(38)

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

_NAMES = {
    "payload_format_indicator": 1,
    "message_expiry_interval": 2,
    "content_type": 3,
    "response_topic": 8,
    "correlation_data": 9,
    "subscription_identifier": 11,
    "session_expiry_interval": 17,
    "assigned_client_identifier": 18,
    "server_keep_alive": 19,
    "request_problem_information": 23,
    "will_delay_interval": 24,
    "request_response_information": 25,
    "response_information": 26,
    "server_reference": 28,
    "reason_string": 31,
    "receive_maximum": 33,
    "topic_alias_maximum": 34,
    "maximum_qos": 36,
    "retain_available": 37,
    "user_property": 38,
    "maximum_packet_size": 39,
    "wildcard_subscription_available": 40,
    "subscription_identifier_available": 41,
    "shared_subscription_available": 42,
}


# --- writing -------------------------------------------------------------------------


def _number_of(name):
    number = _NAMES.get(name)
    if not number:
        raise ValueError("no such property: %s" % name)
    return number


def encode(**values):
    """-> properties as bytes, for `publish(…, properties=…)` and the like.

    Numbers are seconds or bytes, as the standard has them; texts are str or UTF-8 bytes.
    `user_property`: pairs of texts, which may repeat.  Raises ValueError, TypeError.
    """
    out = b""
    for name in sorted(values, key=_number_of):
        number = _NAMES[name]
        value = values[name]
        for one in value if number == _USER_PROPERTY else (value,):
            out += bytes((number,)) + _value(name, RECEIVED[number] & _FORM, one)
    return out


def _value(name, form, value):
    if form == _PAIR:
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return _value(name, _TEXT, value[0]) + _value(name, _TEXT, value[1])
        raise TypeError("%s must be pairs, not %r" % (name, value))
    if form < _BINARY:
        most = 1 if form == 1 else 268435455 if form == _VARIABLE else (1 << 8 * form) - 1
        check_range(name, value, form == _VARIABLE, most)
        return variable(value) if form == _VARIABLE else value.to_bytes(form, "big")
    value = bytes(as_bytes(name, value))
    # MQTT-3.3.2-14: a topic to answer to has no wildcards.
    if form == _TEXT and not is_text(value, 0, len(value)) or (
        name == "response_topic" and (not value or 35 in value or 43 in value)
    ):
        raise ValueError("%s: not valid" % name)
    return string(value)


def variable(number):
    """-> a number as a Variable Byte Integer (§1.5.5)."""
    out = b""
    while number > 127:
        out += bytes((number & 127 | 128,))
        number >>= 7
    return out + bytes((number,))


def given(properties, kind):
    """`properties` as bytes, if a program may give them to such a packet, see SENT.  Raises
    ValueError, TypeError."""
    properties = bytes(as_bytes("properties", properties or b""))
    if fault_of(SENT, properties, 0, len(properties), kind):
        raise ValueError("properties not valid here: %r" % properties)
    return properties


# --- checking ------------------------------------------------------------------------


def width(number):
    """-> bytes of a number as a Variable Byte Integer."""
    return 1 if number < 128 else 2 if number < 16384 else 3 if number < 2097152 else 4


def number_at(buf, at, form):
    """-> the number there; -1 for a Variable Byte Integer that is malformed."""
    number = 0
    if form != _VARIABLE:
        for at in range(at, at + form):
            number = number << 8 | buf[at]
        return number
    for k in range(min(4, len(buf) - at)):
        number |= (buf[at + k] & 127) << 7 * k
        if buf[at + k] < 128:
            # MQTT-1.5.5-1: the shortest form.
            return number if width(number) == k + 1 else -1
    return -1


def take(buf, at, end, kind):
    """Check the properties whose length stands at `at` of a packet that ends at `end`
    -> where they end, or the negative of a reason code."""
    n = number_at(buf, at, _VARIABLE)
    at += width(n)
    if n < 0 or at + n > end:
        return -_MALFORMED
    return -fault_of(RECEIVED, buf, at, at + n, kind) or at + n


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
        if (
            number != _USER_PROPERTY
            and (number != _SUBSCRIPTION_IDENTIFIER or table is SENT)
            and find(buf, start, at, number) >= 0
        ):
            return _PROTOCOL_ERROR  # there twice
        at = after
    return 0


def _end_of(buf, at, end, form):
    # -> where the value at `at` ends, -1 if that is behind `end` or it is not valid.
    if form == _VARIABLE:
        # What stands behind `end` is no part of it, but there is room for it.
        number = number_at(buf, at, _VARIABLE) if at < end else -1
        at += width(number)
        if number < 0:
            return -1
    elif form < _BINARY:
        at += form
    else:
        for _ in range(1 + (form == _PAIR)):
            if at + 2 > end:
                return -1
            number = at + 2
            at = number + (buf[at] << 8 | buf[at + 1])
            if at > end or form != _BINARY and not is_text(buf, number, at):
                return -1
    return at if at <= end else -1


def is_text(buf, at, end):
    """Is buf[at:end] well-formed UTF-8 without NUL?  MQTT-1.5.4-1, -2."""
    more = 0
    for at in range(at, end):
        c = buf[at]
        if more:
            if not least <= c <= most:
                return False
            least = 0x80
            most = 0xBF
            more -= 1
        elif c > 127:
            if not 0xC2 <= c < 0xF5:
                return False
            # Not a longer form than needed, no surrogate, nothing above U+10FFFF.
            more = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
            least = 0xA0 if c == 0xE0 else 0x90 if c == 0xF0 else 0x80
            most = 0x9F if c == 0xED else 0x8F if c == 0xF4 else 0xBF
        elif not c:
            return False
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


def get(buf, at, end, name):
    """-> a property by its name, None if it is not there: a number, bytes; `user_property`
    is a list of pairs of bytes, `subscription_identifier` a list of numbers."""
    number = _NAMES.get(name)
    if not number:
        raise AttributeError(name)
    form = RECEIVED[number] & _FORM
    at = find(buf, at, end, number)
    if form != _PAIR and form != _VARIABLE:
        if at < 0:
            return None
        return number_at(buf, at, form) if form < _BINARY else _bytes_at(buf, at)
    found = []
    while at >= 0:
        if form == _VARIABLE:
            found.append(number_at(buf, at, form))
        else:
            name = _bytes_at(buf, at)
            found.append((name, _bytes_at(buf, at + 2 + len(name))))
        at = find(buf, _end_of(buf, at, end, form), end, number)
    return found


def _bytes_at(buf, at):
    return bytes(buf[at + 2 : at + 2 + number_at(buf, at, 2)])


class Properties:
    """Properties that were received: `answer.server_reference` and so
    on, None for what it did not say."""

    def __init__(self, data=b""):
        self._data = data

    def __getattr__(self, name):
        return get(self._data, 0, len(self._data), name)
