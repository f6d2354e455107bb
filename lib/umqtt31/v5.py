"""Level 5, MQTT 5.0: what it does differently from levels 3 and 4.

    from umqtt31.v5 import MQTTClient

Properties are checked and read where they stand in the receive buffer.  A PUBLISH is kept with
its properties, but for topic aliases, which mean nothing on the next connection.  AUTH is
refused.  MQTT 5 §2.2.2, §3, §4.3, §4.9 and §4.13.
"""

from struct import pack_into

from micropython import const

from . import MQTTClient as _Client
from . import Message, MQTTError, as_text, check_range, string
from . import _after, _begin_request, _fail, _id_of, _next_entry, _on_ack, _on_request_ack, _push, _release_one
from .properties import Properties, encode, find, get, given, number_at, take, variable, width

# Options of a subscription, to be added to its QoS.
NO_LOCAL = const(0x04)  # not what this client published
RETAIN_AS_PUBLISHED = const(0x08)  # `message.retain` as the publisher gave it
RETAINED_IF_NEW = const(0x10)  # retained messages only if there was no such subscription
NO_RETAINED = const(0x20)  # no retained messages

# The packets, as `properties` asks for them.
_IN_CONNACK = const(0x08)
_IN_PUBLISH = const(0x10)
_IN_ANSWER = const(0x20)
_IN_DISCONNECT = const(0x40)
_TO_CONNECT = const(0x08)
_TO_WILL = const(0x20)
_TO_DISCONNECT = const(0x40)
_TO_SUBSCRIBE = const(0x80)

_VARIABLE = const(3)
_EXPIRY = const(2)
_TOPIC_ALIAS = const(35)

# As in the core.
_PUBACK = const(0x40)
_OWED = const(0x60)
_SUBSCRIBE = const(0x82)
_ENTRY = const(5)
_ACKS_BYTES = const(148)  # of a refusal there are 12 bytes more than of another answer

_CLOSED = const(258)
_PROTOCOL = const(259)
_AWAITING_REL = const(264)
_REFUSED_FILTER = const(265)

_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_RECEIVE_MAXIMUM = const(0x93)
_PACKET_TOO_LARGE = const(0x95)

_FOR_EVER = const(0xFFFFFFFF)

# Reason codes of CONNACK that levels 3 and 4 have a return code for, and that code; what may
# heal by itself is "unavailable".
_REASONS = b"\x84\x85\x88\x89\x97\x9f\x86\x87"
_CODES = b"\x01\x02\x03\x03\x03\x03\x04\x05"


class Message5(Message):
    """A message with its properties, by their names in the standard; `properties`: a copy of
    all of them."""

    def __init__(self, client, buf):
        super().__init__(buf)
        self._client = client
        self._properties = 0

    def read(self, first, at, n, is_whole):
        """As Message."""
        is_right = super().read(first, at, n, is_whole)
        if is_whole and self.payload_len > 0:
            at = self._payload
            if self._buf[at]:
                end = self._client.take(at, at + self.payload_len, _IN_PUBLISH)
                at += width(end - at - 1)
            else:
                end = at = at + 1
            self._properties = at
            self.payload_len += self._payload - end
            self._payload = end
        elif is_whole:
            return False
        if is_right and first & 6:
            self._client.count(first & 4)
        return is_right

    def __getattr__(self, name):
        if name == "topic" or name == "payload":
            return super().__getattr__(name)
        if name == "properties":
            return Properties(bytes(self._buf[self._properties : self._payload]))
        return get(self._buf, self._properties, self._payload, name)

    def refuse(self, reason):
        """Have it answered with this reason code, 0x80 or more: the broker gives it up.  At
        QoS 0 nobody is told."""
        if reason >> 7 != 1:
            raise ValueError("not a reason to refuse: %r" % reason)
        if self.qos:
            self._client.refuse(self.qos, self.packet_id, reason)
            self.qos = 0  # for the client: it is answered

    def property_into(self, number, target):
        """Copy the property with this identifier, a text or binary data, to the start of
        `target` -> bytes copied (what fits), -1 if it is not there.  Allocates nothing."""
        at = find(self._buf, self._properties, self._payload, number)
        return at if at < 0 else self.copy(at + 2, number_at(self._buf, at, 2), target)


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
    connack = disconnect = Properties()

    def __init__(self):
        self.reason = 0  # a new attribute would allocate

    def number(self, name, most):
        """For the client: -> the option of that name.  Raises TypeError, ValueError."""
        check_range("v5." + name, getattr(self, name), 0, most)
        return getattr(self, name)

    def note(self, reason, connack=None, disconnect=None):
        """For the client: what the broker said."""
        self.reason = reason
        if connack:
            self.connack = connack
            self.assigned_client_id = connack.assigned_client_identifier or self.assigned_client_id
        self.disconnect = disconnect or self.disconnect


def _block(properties):
    return variable(len(properties)) + properties


class MQTTClient(_Client):
    """As the core's, at level 5; `v5` has its Options.

    `subscribe()` takes options added to a QoS.  `on_drop(packet_id, reason)` is told the
    broker's reason code, too.
    """

    _levels = {5: (b"\x00\x04MQTT\x05", 65535, 0)}
    _most_options = 47
    _request_section = b"\0"
    _extra = 1
    _is_unfit = False  # is the next entry to be given up?
    _age = 0  # seconds, of the message that is published
    _properties = b""  # the same
    _fault = _MALFORMED
    _topics = ()

    def __init__(self, *args, level=5, retry_interval=0, **options):
        check_range("retry_interval", retry_interval, 0, 0)  # MQTT-4.4.0-1
        super().__init__(*args, level=level, retry_interval=0, **options)
        self.v5 = Options()
        self._message = Message5(self, self._rx)
        self._acks = self._out = bytearray(_ACKS_BYTES)
        self._asked = self._identity, self.keepalive, self._window
        self._most_bytes = 65535
        self._most_qos = 4
        self._may_retain = 1
        self._expiry = 0  # seconds of the session, as CONNECT said
        self._most_unreleased = 0  # our receive maximum
        self._unreleased = 0  # QoS 2 messages of this connection that were not released
        self._unasked = ()
        self._may_go = self._fits  # made here, as making it allocates

    # --- connecting ----------------------------------------------------------------------

    def _make_connect(self, clean):
        v5 = self.v5
        (begin, client_id, user, password), self.keepalive, self._window = self._asked
        if not client_id:
            client_id = as_text("assigned_client_id", v5.assigned_client_id)
        self._identity = begin, client_id, user, password
        v5.number("topic_aliases", 65535)  # what they are good for comes later
        v5.number("leave_reason", 255)
        values = {}
        if v5.session_expiry is None:
            expiry = 0 if clean else _FOR_EVER
        else:
            expiry = v5.number("session_expiry", _FOR_EVER)
        self._expiry = expiry
        self._most_unreleased = v5.number("receive_maximum", 65535) or len(self._held) // 3
        self._unreleased = 0
        size = v5.maximum_packet_size
        if size is None and not self.on_oversize:
            size = self.buffer_size
        if size:
            values["maximum_packet_size"] = size
        self._connect_section = _block(
            encode(
                session_expiry_interval=expiry,
                receive_maximum=self._most_unreleased,
                **values
            ) + given(v5.properties, _TO_CONNECT)
        )
        self._will_section = _block(given(v5.will_properties, _TO_WILL))
        return super()._make_connect(clean)

    def _on_accept(self, first, at, n):
        # CONNACK, or what came in place of it.
        rx = self._rx
        code = rx[at + 1]
        self._fault = _PROTOCOL_ERROR
        if first != 0x20 or n < 3:
            # A broker of another level refuses by two bytes.
            _fail(self, code if first == 0x20 and n == 2 and code else _PROTOCOL)
        said = self._read(at + 2, at + n, _IN_CONNACK)
        self.v5.note(code or self.v5.reason, said)
        if code:
            n = _REASONS.find(bytes((code,)))
            _fail(self, code if n < 0 else _CODES[n])
        self._window = min(self._window, said.receive_maximum or 65535)
        self._most_bytes = min(65535, said.maximum_packet_size or 65535)
        self._most_qos = 2 if said.maximum_qos else 4 if said.maximum_qos is None else 0
        self._may_retain = 1 if said.retain_available is None else said.retain_available
        if said.server_keep_alive is not None:
            self.keepalive = said.server_keep_alive
        n = min(self.v5.topic_aliases, said.topic_alias_maximum or 0)
        self._topics = [None] * n
        if n:
            self._aliased = bytearray(self.buffer_size + 5)
        self._was_clean = False  # that the session is present is what counts
        if rx[at] and self._window < self.inflight:
            self._order_releases()
        filters = self._filters
        self._filters = ()
        super()._on_connack(rx[at] << 8)
        self._filters = filters
        self._fault = _MALFORMED
        if not self._is_told:
            self._unasked = filters
            self._ask_next()

    def _read(self, at, end, kind):
        # -> the properties there, copied.
        if self.take(at, end, kind) != end:
            self._break(_MALFORMED)
        return Properties(bytes(self._rx[at + width(number_at(self._rx, at, _VARIABLE)) : end]))

    def _order_releases(self):
        # MQTT-3.3.4-8: no PUBREL waits for the window, so they come before what does.
        for _ in range(self.inflight):
            at = _next_entry(self)
            if at < 0:
                break
            self._next = _after(self, at)
        ring = self._ring
        released = others = b""
        at = self._head
        while at != self._tail:
            one = ring[at : at + (ring[at + 1] << 8 | ring[at + 2]) + _ENTRY]
            if ring[at] >= _OWED:
                released += one
            else:
                others += one
            at = _after(self, at)
        self._tail = at = len(released + others)
        ring[:at] = released + others
        self._head = self._next = self._rec = 0
        self._wrap = -1
        self._limit = self._size
        while self._next < len(released) and self._acks_n < 132:
            _release_one(self, self._next)
            self._next = _after(self, self._next)
            self._again -= 1

    @property
    def _goodbye(self):
        # DISCONNECT as the program wants it.
        reason = self.v5.number("leave_reason", 255)
        said = given(self.v5.leave_properties, _TO_DISCONNECT)
        # §3.14.2.2.2: a protocol error, for which brokers publish the will.
        if Properties(said).session_expiry_interval and not self._expiry:
            raise ValueError("v5.leave_properties: the session has no expiry")
        if reason or said:
            return b"\xe0" + _block(bytes((reason,)) + _block(said))
        return b"\xe0\0"

    # --- what comes ----------------------------------------------------------------------

    def _handle(self, first, at, n):
        if not self.is_connected:
            return self._on_accept(first, at, n)
        rx = self._rx
        kind = first >> 4
        end = at + n
        if first & 15 != (2 if kind == 6 else 0):  # MQTT-2.1.3-1
            self._break(_MALFORMED)
        if kind == 14:
            self._on_disconnect(at, n)
        if kind == 13:
            return super()._handle(first, at, n)
        if kind >> 2 != 1 and kind & 13 != 9:
            self._break(_PROTOCOL_ERROR)
        if n < 2:
            self._break(_MALFORMED)
        number = rx[at] << 8 | rx[at + 1]
        if kind > 7:
            self._on_codes(first, number, self.take(at + 2, end, _IN_ANSWER), end)
            return
        if n > 3 and self.take(at + 3, end, _IN_ANSWER) != end:
            self._break(_MALFORMED)
        if n > 2 and rx[at + 2] > 127 and kind < 6:
            self._on_refusal(first, number, rx[at + 2])
            return
        if kind == 6 and self._unreleased:
            self._unreleased -= 1
        super()._handle(first, at, 2)

    def _on_codes(self, first, number, at, end):
        request = self._request
        _on_request_ack(self, first, number, at, end - at)
        if request and not self._request:
            codes = request[2]
            for k in range(len(codes)):
                if codes[k] == 0x11:  # there was no such subscription
                    codes[k] = 0
                elif codes[k] > 127:
                    self.v5.note(codes[k])
            self._is_told = not self._unasked
            self._ask_next()

    def _on_refusal(self, first, packet_id, reason):
        # MQTT-4.3.3-5, MQTT-4.4.0-2: the flow ends here.
        ring = self._ring
        at = self._head
        while at != self._next:
            if ring[at] == first and _id_of(self, at) == packet_id:
                ring[at] = _PUBACK
                _on_ack(self, _PUBACK, packet_id)
                self.v5.note(reason)
                self.stats.dropped += 1
                self._is_busy = True
                self._tell_drop(at, packet_id, reason)
                self._is_busy = False
                return
            at = _after(self, at)
        self.stats.strays += 1

    def _on_disconnect(self, at, n):
        reason = self._rx[at] if n else 0
        self.v5.note(reason, None, self._read(at + 1, at + n, _IN_DISCONNECT) if n > 1 else None)
        _fail(self, reason if reason > 127 else _CLOSED)

    # --- what ends the connection --------------------------------------------------------

    def take(self, at, end, kind):
        """For the message: check the properties there -> where they end."""
        at = take(self._rx, at, end, kind)
        if at < 0:
            self._break(-at)
        return at

    def _break(self, reason):
        # The broker broke the protocol.
        self._fault = reason
        _fail(self, _PROTOCOL)

    def _farewell(self, code):
        # Before an error closes the connection: DISCONNECT with a reason, if that helps.
        reason = _RECEIVE_MAXIMUM if code == _AWAITING_REL else self._fault
        self._fault = _MALFORMED
        if code in (_PROTOCOL, _AWAITING_REL) and not self._left:
            pack_into("BBB", self._piece, 0, 0xE0, 1, reason)
            try:
                self._stream.write(self._piece, 0, 3)
            except (OSError, ValueError):
                pass

    # --- messages in ---------------------------------------------------------------------

    def count(self, is_exact):
        """For the message: one of QoS 1, or of QoS 2, came.  MQTT-3.3.4-9"""
        self._unreleased += is_exact > 0
        n = self._unreleased + (not is_exact)
        acks = self._acks
        for at in range(self._at if self._out is acks else 0, self._acks_n):
            if not at & 3 and acks[at] == _PUBACK:
                n += 1
        if n > self._most_unreleased:
            self._break(_RECEIVE_MAXIMUM)

    def refuse(self, qos, packet_id, reason):
        """For the message: answer it with this reason, as long as four answers are."""
        # MQTT-4.3.3-9: it is not held.
        n = self._acks_n
        pack_into(
            ">BBHB11s", self._acks, n, qos + 3 << 4, 14, packet_id, reason, b"\x0a\x1f\0\7refused"
        )
        self._acks_n = n + 16
        if qos == 2 and self._unreleased:
            self._unreleased -= 1

    # --- messages out --------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=b""):
        """As the core's; `properties`: what `properties.encode()` made.  `max_age`: the seconds
        after which the broker drops it, 0 for never; with `queueing` this client does so, too."""
        if max_age:
            check_range("max_age", max_age, 0, 86400)
        self._age = max_age
        if properties is not self._properties:
            self._properties = given(properties, _IN_PUBLISH)
        n = len(self._properties) + (5 if max_age else 0)
        self._extra = n + width(n)
        try:
            return super().publish(topic, msg, retain, qos)
        finally:
            if self._stream is self:
                self._stream = self._socket

    def _add(self, at, n):
        # To the entry that publish() makes there its properties, from `n` on.
        ring = self._ring
        if self.is_connected:
            code = self._refusal(at)
            if code:
                raise MQTTError(code)
            if self._topics and self._valid is not self and not (
                self._left or self._acks_n or self._first or self._again or self.queued
                or ring[at] > 0x30 and self.inflight >= self._window
            ):  # fmt: skip
                self._socket = self._stream
                self._stream = self  # for the one write() that follows
        more = self._extra - 1
        if more:
            if more > 128:
                more -= 1
                ring[n] = more & 127 | 128
                more >>= 7
                n += 1
            ring[n] = more
            n += 1
            if self._age:
                pack_into(">BI", ring, n, _EXPIRY, self._age)
                n += 5
            for more in self._properties:
                ring[n] = more
                n += 1

    def _refusal(self, at):
        # -> the reason why the broker does not take the entry there, 0 if it does.
        ring = self._ring
        first = ring[at + _ENTRY]
        if ring[at + 1] << 8 | ring[at + 2] > self._most_bytes:  # MQTT-3.2.2-15
            return _PACKET_TOO_LARGE
        if first & 6 > self._most_qos:  # MQTT-3.2.2-11
            return 0x9B
        return 0x9A if first & 1 > self._may_retain else 0  # MQTT-3.2.2-14

    def _fits(self, at, left_ms=0):
        # May the entry there, whose turn it is, go out?  `left_ms`: of its age, 0 if it has none.
        ring = self._ring
        if ring[at] < _OWED:
            # What was accepted before, and this broker does not take, is given up by poll().
            self._is_unfit = self._refusal(at) > 0
            if self._is_unfit:
                return False
            if left_ms:
                at += _ENTRY
                first = ring[at]
                at += 2 + (ring[at + 1] > 127)
                at += 2 + number_at(ring, at, 2) + (2 if first & 6 else 0)
                at += width(number_at(ring, at, _VARIABLE))
                pack_into(">BI", ring, at, _EXPIRY, max(1, (left_ms + 999) // 1000))
        return True

    def poll(self, timeout_ms=0):
        """As the core's."""
        handled = super().poll(timeout_ms)
        while self._is_unfit:
            self._is_unfit = False
            at = _next_entry(self)
            if at >= 0 and self._refusal(at):
                self.give_up(at, self._refusal(at))
                _push(self, self._now)
        return handled

    check_msg = poll

    def write(self, ring, at, size):
        """As a stream, for a message that publish() sends: have it go out with an alias."""
        self._stream = stream = self._socket
        topics = self._topics
        topic = self._valid
        k = 0
        while k < len(topics) and topics[k] and topics[k] != topic:
            k += 1
        # MQTT-3.3.2-9, MQTT-3.2.2-17: 1 up to what both sides want.
        known = len(topic) if k < len(topics) and topics[k] else 0
        if k == len(topics) or min(self._most_bytes, self.buffer_size) - size + known < 5:
            return stream.write(ring, at, size)
        topics[k] = topic
        short = self._aliased
        end = at + size
        first = ring[at]
        at += 1 + (ring[at + 1] > 127)
        middle = at + len(topic) + (5 if first & 6 else 3)
        n = 3
        if known:
            at += len(topic) + 2
            short[3] = short[4] = 0
            n = 5
        for at in range(at + 1, middle):
            short[n] = ring[at]
            n += 1
        more = number_at(ring, middle, _VARIABLE)
        middle += width(more)
        more += 3
        if more > 127:
            short[n] = more & 127 | 128
            more >>= 7
            n += 1
        pack_into(">BBH", short, n, more, _TOPIC_ALIAS, k + 1)
        n += 4
        for at in range(middle, end):
            short[n] = ring[at]
            n += 1
        more = n - 3
        at = more < 128
        if at:
            pack_into("BB", short, 1, first, more)
        else:
            pack_into("BBB", short, 0, first, more & 127 | 128, more >> 7)
        n -= at
        more = stream.write(short, at, n) or 0
        if more < n:
            self._out = short
            self._at = at + more
            self._left = n - more
            self._wake = self._now
        return size

    # --- subscriptions -------------------------------------------------------------------

    def subscribe(self, topic, qos=0, properties=b""):
        """As the core's; the properties hold for all filters of this call."""
        self._request_section = _block(given(properties, _TO_SUBSCRIBE))
        try:
            return super().subscribe(topic, qos)
        finally:
            self._request_section = b"\0"

    def _make_request(self, first, topics):
        whole, n, codes, pairs = super()._make_request(first, topics)
        if len(whole) > self._most_bytes:
            raise MQTTError(_PACKET_TOO_LARGE)
        if first == _SUBSCRIBE:
            for name, part in pairs:
                # MQTT-4.8.2-1, -2: $share, a name, a filter.  MQTT-3.8.3-4: nothing is local to
                # those who share.
                options = part[-1]
                parts = name.split(b"/", 2)
                if options & 3 == 3 or (
                    parts[0] == b"$share"
                    and len(parts) > 1
                    and (options & 4 or len(parts) < 3 or parts[1] in (b"", b"+") or not parts[2])
                ):
                    raise ValueError("not valid as filter and options: %r" % ((name, options),))
        section = self._request_section
        return whole, n, codes, [(name, part, section) for name, part in pairs]

    def _all_filters(self, pairs):
        pass  # they go out in as many packets as they need

    def _ask_next(self):
        # Subscribe to what the broker does not know, as far as it fits into one packet.
        body = b""
        section = None
        n = 0
        later = []
        for one in self._unasked:
            if section in (None, one[2]):
                longer = (body or b"\0\0" + one[2]) + one[1]
                if len(longer) + 1 + width(len(longer)) <= min(self._most_bytes, self.buffer_size):
                    body = longer
                    section = one[2]
                    n += 1
                    continue
                if section is None:  # MQTT-3.2.2-15: this broker took it once, or another one
                    self.v5.note(_PACKET_TOO_LARGE)
                    continue
            later.append(one)
        self._unasked = later
        if body:
            _begin_request(self, (self._packet(_SUBSCRIBE, body), len(body), bytearray(n)))
