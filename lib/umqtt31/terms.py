"""The terms of a connection at level 5: CONNECT, CONNACK and DISCONNECT, and `client.v5`.

Pages of `v5`'s own book, for what happens once in a connection; they may allocate.
MQTT 5 §3.1, §3.2, §3.8.3, §3.14 and §4.13.
"""

from micropython import const, heap_lock

from .errors import MQTTError
from .packet import as_text, size_of, string
from .properties import (
    RECEIVED,
    Properties,
    encode,
    fault_of,
    given,
    number_at,
    take,
    variable,
    width,
)

# The packets, as `properties` asks for them.
_IN_CONNACK = const(0x08)
_TO_CONNECT = const(0x08)
_TO_WILL = const(0x20)
_IN_ANSWER = const(0x20)
_IN_DISCONNECT = const(0x40)
_TO_DISCONNECT = const(0x40)

_VARIABLE = const(3)

# As in `protocol`.
_OWE_PUBREL = const(0x60)
_WAITS = const(0x70)

_PACKET_CONNACK = const(0x20)

_NO_SUBSCRIPTION = const(0x11)
_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_RECEIVE_MAXIMUM_EXCEEDED = const(0x93)

_REFUSED = const(512)
_CLOSED = const(258)
_PROTOCOL = const(259)
_AWAITING_REL = const(264)

_FOR_EVER = const(0xFFFFFFFF)

# Reason codes of CONNACK that levels 3 and 4 have a return code for, and that code; what may
# heal by itself is "unavailable".
_REASONS = b"\x84\x85\x88\x89\x97\x9f\x86\x87"
_CODES = b"\x01\x02\x03\x03\x03\x03\x04\x05"


class Options:
    """`client.v5`: what the next CONNECT says, and what the broker answered.

    `session_expiry`: seconds that the broker is to keep the session without a connection,
    0xFFFFFFFF for ever; None: 0 for a clean session, else for ever.  `receive_maximum`:
    messages of QoS 1 and 2 that the broker may send before they are acknowledged; 0: as
    many as surely find their place.  `maximum_packet_size`: bytes of a packet that the
    broker may send, larger ones it leaves out; None: `buffer_size`, 0: any, so that
    `on_oversize` is told.  `topic_aliases`: so many topics go out as a number from their
    second message on.  `properties`: further ones of CONNECT, `will_properties`: of the
    will, `leave_reason` and `leave_properties`: of the DISCONNECT that `disconnect()`
    writes; properties as `properties.encode()` makes them.

    `assigned_client_id`: the broker's, for a client without; it stays the client's id.
    `connack`, `disconnect`: what the broker's last packets of these kinds said, see
    `properties.Properties`.  `reason`: the reason code of its last refusal or DISCONNECT.
    """

    session_expiry = maximum_packet_size = None
    receive_maximum = topic_aliases = leave_reason = 0
    properties = will_properties = leave_properties = assigned_client_id = b""
    connack = disconnect = Properties(b"")

    def __init__(self):
        self.reason = 0  # a new attribute would allocate


def block(properties):
    """-> properties behind their length."""
    return variable(len(properties)) + properties


def _number(v5, name, most):
    # -> the option of that name.  Raises TypeError, ValueError.
    number = getattr(v5, name)
    if not isinstance(number, int) or not 0 <= number <= most:
        kind = ValueError if isinstance(number, int) else TypeError
        raise kind("v5.%s must be 0 to %d, not %r" % (name, most, number))
    return number


def connect(protocol, head, flags, keepalive, fields):
    """CONNECT as new bytes; see `packet`."""
    v5 = protocol.v5
    _number(v5, "topic_aliases", 65535)  # what they are good for comes later
    _number(v5, "leave_reason", 255)
    expiry = v5.session_expiry
    if expiry is None:
        expiry = 0 if flags & 2 else _FOR_EVER
    protocol.expiry = expiry
    values = {
        "session_expiry_interval": expiry,
        "receive_maximum": v5.receive_maximum or protocol.held.places,
    }
    size = v5.maximum_packet_size
    if size is None and not protocol.framing.on_large:
        size = protocol.framing.size
    if size:
        values["maximum_packet_size"] = size
    if not fields[0]:
        fields[0] = as_text("assigned_client_id", v5.assigned_client_id)
    body = head + bytes((flags, keepalive >> 8, keepalive & 255))
    body += block(encode(**values) + given(v5.properties, _TO_CONNECT))
    for k in range(len(fields)):
        if k == 1 and flags & 4:
            body += block(given(v5.will_properties, _TO_WILL))
        body += string(fields[k])
    return b"\x10" + block(body)


def read_connack(protocol, first):
    """Read CONNACK -> 0 if the broker accepts, else as `protocol.received()`."""
    framing = protocol.framing
    rx = framing.rx
    n = framing.length - 2
    code = framing.field & 255
    if first == _PACKET_CONNACK and not n and code:
        return _REFUSED + code  # by a broker of another level
    end = -_PROTOCOL_ERROR
    if first == _PACKET_CONNACK and n > 0:
        end = take(rx, 0, n, _IN_CONNACK)
    if end != n:
        return protocol.break_with(-end if end < 0 else _MALFORMED)
    v5 = protocol.v5
    v5.connack = Properties(bytes(memoryview(rx)[width(number_at(rx, 0, _VARIABLE)) : n]))
    if code:
        v5.reason = code
        n = _REASONS.find(bytes((code,)))
        return _REFUSED + (code if n < 0 else _CODES[n])
    if framing.field > 0x100 or framing.field and protocol.is_clean:
        return protocol.break_with(_PROTOCOL_ERROR)
    v5.assigned_client_id = v5.connack.assigned_client_identifier or v5.assigned_client_id
    protocol.is_present = framing.field > 0
    _limit(protocol, v5)
    if protocol.is_present and protocol.window < protocol.count:
        _order_releases(protocol)
    return 0


def _limit(protocol, v5):
    # From now on only what this CONNACK allows.
    said = v5.connack
    most = protocol._most_window
    protocol.window = min(most, said.receive_maximum or most)
    protocol._most_bytes = min(65535, said.maximum_packet_size or 65535)
    most = said.maximum_qos
    protocol._most_qos = 2 if most is None else most
    protocol._may_retain = said.retain_available != 0
    most = said.server_keep_alive
    if most is not None:
        protocol.keepalive_ms = most * 1000
    protocol._aliases = None
    most = min(v5.topic_aliases, said.topic_alias_maximum or 0)
    if most:
        from .alias import Aliases

        protocol._aliases = Aliases(most)
    if protocol._direct:
        protocol._direct = protocol.window
    protocol.lock(False)
    if not protocol._short:
        _refuse(protocol)


def _refuse(protocol):
    # What was accepted before, and this broker does not take, is given up.
    from .giveup import packet_of

    for k in range(protocol.count):
        slot = protocol._slot(k)
        # What is released needs no PUBLISH any more, in the same session.
        if protocol._waits[slot] & _WAITS < _OWE_PUBREL or not protocol.is_present:
            buf = packet_of(protocol, slot)
            code = protocol.refusal(size_of(number_at(buf, 1, _VARIABLE)), buf[0] & 7)
            if code:
                protocol.refuse(slot, code)


def _order_releases(protocol):
    # MQTT-3.3.4-8: no PUBREL waits for the window, so they come before what does.
    order = [protocol._slot(k) for k in range(protocol.count)]
    released = [slot for slot in order if protocol._waits[slot] & _WAITS >= _OWE_PUBREL]
    released += [slot for slot in order if slot not in released]
    for k in range(len(released)):
        protocol._order[(protocol.first + k) % protocol._n] = released[k]


def read_disconnect(protocol):
    """Read the broker's DISCONNECT -> the code of the error that it is."""
    framing = protocol.framing
    n = framing.length - 2
    reason = framing.field >> 8 if n > -2 else 0
    if n >= 0:
        # The length of the properties begins in the byte that is not in the buffer.
        begin = framing.field & 255
        if begin > 127:
            begin = begin & 127 | framing.rx[0] << 7
        begin = n - begin
        if begin != (framing.field & 255 > 127):
            return protocol.break_with(_MALFORMED)
        heap_lock()
        fault = fault_of(RECEIVED, framing.rx, begin, n, _IN_DISCONNECT)
        if fault:
            return protocol.break_with(fault)
        protocol.v5.disconnect = Properties(bytes(memoryview(framing.rx)[begin:n]))
    protocol.v5.reason = reason
    return reason if reason > 127 else _CLOSED


def goodbye(protocol, code):
    """The last packet of a connection as bytes: DISCONNECT as the program wants it or,
    after the error `code`, with its reason code; b"" for none."""
    body = b""
    if not code:
        reason = _number(protocol.v5, "leave_reason", 255)
        body = given(protocol.v5.leave_properties, _TO_DISCONNECT)
        # §3.14.2.2.2: a protocol error, for which brokers publish the will.
        if Properties(body).session_expiry_interval and not protocol.expiry:
            raise ValueError("v5.leave_properties: the session has no expiry")
        body = block(body)
    elif protocol.left or not protocol.state:
        return b""
    elif code == _PROTOCOL:
        reason = protocol.message.fault
    elif code == _AWAITING_REL:
        reason = _RECEIVE_MAXIMUM_EXCEEDED
    else:
        return b""
    if not reason and len(body) == 1:
        return b"\xe0\x00"
    return b"\xe0" + block(bytes((reason,)) + body)


# --- SUBSCRIBE and UNSUBSCRIBE -------------------------------------------------------------


def check_request(protocol, request, alone):
    """Raise MQTTError if the broker takes no request of that size; ValueError unless all that
    stand `alone` may have their options: QoS, + 4 no local, + 8 retain as published, + 16 or 32
    retain handling; or if a shared filter lacks a part."""
    code = protocol.refusal(len(request[1]), 0)
    if code:
        raise MQTTError(code)
    for one in alone:
        options = one[1][-1]
        name = one[0][0].split(b"/", 2)
        # MQTT-4.8.2-1, -2: $share, a name, a filter.  MQTT-3.8.3-4: nothing is local to those
        # who share.
        if options & 3 == 3 or (
            name[0] == b"$share"
            and len(name) > 1
            and (options & 4 or len(name) < 3 or name[1] in (b"", b"+") or not name[2])
        ):
            raise ValueError("not valid as filter and options: %r" % ((one[0][0], options),))


def read_codes(protocol, first):
    """SUBACK or UNSUBACK came -> as `received()`."""
    framing = protocol.framing
    request = protocol.request
    at = take(framing.rx, 0, framing.length - 2, _IN_ANSWER)
    if at < 0:
        return protocol.break_with(-at)
    event = protocol._on_request_ack(first, at)
    if request and request is not protocol.request:  # that was its answer
        codes = request[3]
        for k in range(len(codes)):
            if codes[k] == _NO_SUBSCRIPTION:
                codes[k] = 0
            elif codes[k] > 127:
                protocol.v5.reason = codes[k]
    return event
