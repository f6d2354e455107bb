"""MQTT 5 properties: written as new bytes, checked and read in place.

    from umqtt31.properties import encode

    JSON = encode(content_type="application/json", user_property=(("unit", "C"),))

Names are the standard's, in lower case with underscores.  Checking allocates nothing,
reading only what it returns.  Loaded by level 5 only.  MQTT 5 §1.5 and §2.2.2.
"""

from micropython import const, heap_lock, heap_unlock

from . import as_bytes, string
check_topic = None

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
_RECEIVE_MAXIMUM = const(33)
_TOPIC_ALIAS = const(35)
_USER_PROPERTY = const(38)
_MAXIMUM_PACKET_SIZE = const(39)
_RESPONSE_TOPIC = const(8)
_IN_PUBLISH = const(0x10)

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


def number_of(name):
    """-> the identifier of a property.  Raises ValueError."""
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
    for name in sorted(values, key=number_of):
        number = number_of(name)
        value = values[name]
        for one in value if number == _USER_PROPERTY else (value,):
            out += bytes((number,)) + _value(name, RECEIVED[number] & _FORM, one)
    return out


def _value(name, form, value):
    if form == _PAIR and isinstance(value, (tuple, list)) and len(value) == 2:
        return _value(name, _TEXT, value[0]) + _value(name, _TEXT, value[1])
    if form == _BINARY or form == _TEXT:
        value = bytes(as_bytes(name, value))
        if len(value) > 65535 or form == _TEXT and not is_text(value, 0, len(value)):
            raise ValueError("%s: not valid" % name)
        if name == "response_topic":
            check_topic(value)  # MQTT-3.3.2-14
        return string(value)
    if form == _PAIR or not isinstance(value, int):
        raise TypeError("%s cannot be %r" % (name, value))
    most = 1 if form == 1 else 268435455 if form == _VARIABLE else (1 << 8 * form) - 1
    least = name == "subscription_identifier"
    if not least <= value <= most:
        raise ValueError("%s must be %d to %d, not %r" % (name, least, most, value))
    return variable(value) if form == _VARIABLE else value.to_bytes(form, "big")


def variable(number):
    """-> a number as a Variable Byte Integer (§1.5.5)."""
    out = b""
    while number > 127:
        out += bytes((number & 127 | 128,))
        number >>= 7
    return out + bytes((number,))


def given(properties, kind):
    """`properties` if a program may give them to such a packet, see SENT.  Raises
    ValueError, TypeError."""
    properties = bytes(as_bytes("properties", properties))  # a number would be so many zeros
    heap_lock()
    fault = fault_of(SENT, properties, 0, len(properties), kind)
    if fault:
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
        form += at
        while at < form:
            number = number << 8 | buf[at]
            at += 1
        return number
    form = at
    while True:
        number |= (buf[at] & 127) << 7 * (at - form)
        at += 1
        if buf[at - 1] < 128:
            # MQTT-1.5.5-1: the shortest form.
            return number if width(number) == at - form else -1
        if at - form > 3:
            return -1


def take(buf, at, end, kind):
    """Check the properties whose length stands at `at` of a packet that ends at `end`
    -> where they end, or the negative of a reason code."""
    n = number_at(buf, at, _VARIABLE)
    at += width(n)
    if n < 0 or at + n > end:
        return -_MALFORMED
    end = at + n
    heap_lock()
    n = fault_of(RECEIVED, buf, at, end, kind)
    return -n if n else end


def fault_of(table, buf, at, end, kind):
    """-> 0 if just these properties may be in such a packet, else the reason code.  Entered
    with the heap locked, which it unlocks: see `client` on frames."""
    heap_unlock()
    seen = more = 0
    while at < end:
        number = buf[at]
        form = table[number] if number < 43 else 0
        if not form & kind:
            return _ALIAS_INVALID if number == _TOPIC_ALIAS else _MALFORMED
        form &= _FORM
        begin = at + 1
        heap_lock()
        at = _end_of(buf, begin, end, form)
        if at < 0:
            return _MALFORMED
        # Numbers that must not be 0, and those that are 0 or 1.
        if (
            form == _VARIABLE or number == _RECEIVE_MAXIMUM or number == _MAXIMUM_PACKET_SIZE
        ) and not _has_bits(buf, begin, at):
            return _PROTOCOL_ERROR
        if form == 1 and buf[begin] > 1:
            return _PROTOCOL_ERROR
        if number == _USER_PROPERTY or number == _SUBSCRIPTION_IDENTIFIER and kind == _IN_PUBLISH:
            continue
        # No number of more than 30 bits: on some ports it would be a big one.
        if number < 30:
            if seen >> number & 1:
                return _PROTOCOL_ERROR
            seen |= 1 << number
        else:
            if more >> number - 30 & 1:
                return _PROTOCOL_ERROR
            more |= 1 << number - 30
    return 0


def _has_bits(buf, at, end):
    while at < end:
        if buf[at]:
            return True
        at += 1
    return False


def _end_of(buf, at, end, form):
    # -> where the value at `at` ends, -1 if that is behind `end` or it is not valid.
    # Entered with the heap locked.
    heap_unlock()
    if form == _VARIABLE:
        if at >= end:
            return -1
        number = number_at(buf, at, _VARIABLE)
        at = -1 if number < 0 else at + width(number)
    elif form < _BINARY:
        at += form
    else:
        for _ in range(2 if form == _PAIR else 1):
            if at + 2 > end:
                return -1
            number = at + 2
            at = number + (buf[at] << 8 | buf[at + 1])
            if at > end or form != _BINARY and not is_text(buf, number, at):
                return -1
    return at if at <= end else -1


def is_text(buf, at, end):
    """Is buf[at:end] well-formed UTF-8 without NUL?  MQTT-1.5.4-1, -2."""
    while at < end:
        c = buf[at]
        at += 1
        if 0 < c < 128:
            continue
        more = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
        if not 0xC2 <= c < 0xF5 or at + more > end:
            return False
        # Not a longer form than needed, no surrogate, nothing above U+10FFFF.
        least = 0xA0 if c == 0xE0 else 0x90 if c == 0xF0 else 0x80
        most = 0x9F if c == 0xED else 0x8F if c == 0xF4 else 0xBF
        while more:
            if not least <= buf[at] <= most:
                return False
            least = 0x80
            most = 0xBF
            at += 1
            more -= 1
    return True


# --- reading -------------------------------------------------------------------------


def find(buf, at, end, number):
    """-> where the value of the first such property begins, -1 if there is none.  They
    were checked."""
    while at < end:
        if buf[at] == number:
            return at + 1
        heap_lock()
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
        heap_lock()
        at = _end_of(buf, at, end, form)
        at = find(buf, at, end, number)
    return found


def _bytes_at(buf, at):
    n = at + 2 + (buf[at] << 8 | buf[at + 1])
    return bytes(memoryview(buf)[at + 2 : n])


class Properties:
    """Properties that were received: `answer.server_reference` and so
    on, None for what it did not say."""

    def __init__(self, data=b""):
        self._data = data

    def __getattr__(self, name):
        return get(self._data, 0, len(self._data), name)
