"""Level 5, MQTT 5.0: what it does differently from levels 3 and 4.

    from umqtt31.v5 import MQTTClient

Properties are checked and read where they stand in the receive buffer.  A PUBLISH is kept with
its properties, but for topic aliases, which mean nothing on the next connection.  AUTH is
refused.  MQTT 5 §2.2.2, §3, §4.3, §4.9 and §4.13.
"""

from micropython import const  # isort: skip

from struct import pack, pack_into

import umqtt31 as core
import umqtt31.properties as codec

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

_SESSION_EXPIRY = const(17)
_SERVER_KEEP_ALIVE = const(19)
_RECEIVE_MAXIMUM = const(33)
_TOPIC_ALIAS_MAXIMUM = const(34)
_TOPIC_ALIAS = const(35)
_MAXIMUM_QOS = const(36)
_RETAIN_AVAILABLE = const(37)
_MAXIMUM_PACKET_SIZE = const(39)

# As in the core.
_MOST_ACKS = const(132)
_PUBACK = const(0x40)
_OWED = const(0x60)
_PUBCOMP = const(0x70)
_AGAIN = const(8)
_SUBSCRIBE = const(0x82)
_ENTRY = const(5)

_CLOSED = const(258)
_PROTOCOL = const(259)
_AWAITING_REL = const(264)

_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_TOO_MANY = const(0x93)
_PACKET_TOO_LARGE = const(0x95)
_NO_RETAIN = const(0x9A)
_NO_QOS = const(0x9B)


class Message5(core.Message):
    """A message with its properties, by their names in the standard; `properties`: a copy of
    all of them."""

    def __init__(self, client, buf):
        super().__init__(buf)
        self._client = client
        self._properties = 0  # where they begin; they end where the payload begins

    def read(self, first, at, n):
        """As Message."""
        # Not by super(), which takes so many arguments from the heap.
        if not core.Message.read(self, first, at, n):
            # MQTT-3.3.2-8: an alias in place of the topic has a reason of its own.
            if not self.topic_len and self.payload_len > 0 and n <= self._client.buffer_size:
                self._client.check(at + n - self.payload_len, at + n, _IN_PUBLISH)
            return False
        if n <= self._client.buffer_size:
            at = self._payload
            n = self._client.check(at, at + self.payload_len, _IN_PUBLISH)
            self._properties = at + codec.width(codec.variable_at(self._buf, at))
            self._payload = n
            self.payload_len += at - n
        if first & 14 in (2, 4):  # one that was not sent before
            self._client.count()
        return True

    def __getattr__(self, name):
        buf = self._buf
        if name == "properties":
            return codec.Properties(bytes(buf[self._properties : self._payload]))
        number = codec.number_of(name)
        if number:
            return codec.get(buf, self._properties, self._payload, number)
        return super().__getattr__(name)

    def refuse(self, reason):
        """Have it answered with this reason code, 0x80 or more: the broker gives it up.  At
        QoS 0 nobody is told."""
        if reason >> 7 != 1:
            raise ValueError("not a reason to refuse: %r" % reason)
        if self.qos:
            self._client.refuse(self.qos, self.packet_id, reason)
            self.keep()

    def property_into(self, number, target):
        """Copy the property with this identifier, a text or binary data, to the start of
        `target` -> bytes copied (what fits), -1 if it is not there.  Allocates nothing."""
        at = codec.find(self._buf, self._properties, self._payload, number)
        return at if at < 0 else self.copy(at + 2, codec.number_at(self._buf, at, 2), target)


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
    connack = disconnect = codec.Properties()

    def __init__(self):
        self.reason = 0  # a new attribute would allocate

    def number(self, name, most, default=None):
        """For the client: -> the option of that name.  Raises TypeError, ValueError."""
        number = getattr(self, name)
        if number is None is not default:
            return default
        core.check_range("v5." + name, number, 0, most)
        return number

    def note(self, reason, connack=None, disconnect=None):
        """For the client: what the broker said."""
        self.reason = reason
        if connack:
            self.connack = connack
            self.assigned_client_id = connack.value(18) or self.assigned_client_id
        self.disconnect = disconnect or self.disconnect


def _block(properties, kind, head=b""):
    # -> what a program gives, behind the length of all.
    properties = head + codec.given(properties, kind)
    return codec.variable(len(properties)) + properties


class MQTTClient(core.MQTTClient):
    """As the core's, at level 5; `v5` has its Options.

    `subscribe()` takes options added to a QoS.  `on_drop(packet_id, reason)` is told the
    broker's reason code, too.
    """

    _levels = {5: (b"\x00\x04MQTT\x05", 65535, 0)}
    _message_class = Message5
    _most_options = 47
    _request_section = b"\0"
    _ages = {}  # of a subclass: by packet id
    _fault = _MALFORMED

    def __init__(self, *args, **options):
        options.setdefault("level", 5)
        super().__init__(*args, **options)
        core.check_range("retry_interval at level 5", self._retry_ms // 1000, 0, 0)  # MQTT-4.4.0-1
        self.v5 = Options()
        self._message = self._message_class(self, self._rx)
        # A refusal has 12 bytes more than another answer.
        self._acks = self._out = bytearray(148)
        self._asked = self._identity, self.keepalive, self._window
        self._most_bytes = 65535
        # Of the message that is published: seconds, properties, and what may get an alias.
        self._age = self._msg = self._socket = 0
        self._more = b""
        self._unfit = 0  # why the next entry is to be given up
        self._extra = 1
        self._denied = 0  # bits of PUBLISH that the broker does not take
        self._topics = self._unasked = ()  # that have an alias; filters that it does not know
        self._most_in = 0  # messages that may be unanswered
        self._expiry = 0  # seconds of the session, as CONNECT said
        self._may_go = self._fits  # made here, as making it allocates

    # --- connecting ----------------------------------------------------------------------

    def _make_connect(self, clean):
        v5 = self.v5
        (begin, client_id, user, password), self.keepalive, _ = self._asked
        if not client_id:
            client_id = core.as_text("assigned_client_id", v5.assigned_client_id)
        self._identity = begin, client_id, user, password
        v5.number("topic_aliases", 65535)  # what they are good for comes later
        v5.number("leave_reason", 255)
        most = 0xFFFFFFFF
        self._expiry = v5.number("session_expiry", most, 0 if clean else most)
        most_in = v5.number("receive_maximum", 65535)
        # Unless it is set there may be as many as at level 4: mosquitto 2.0 sends more at QoS 2.
        self._most_in = most_in or self._places
        size = v5.number("maximum_packet_size", most, self.buffer_size)
        said = pack(
            ">BIBHBI",
            _SESSION_EXPIRY, self._expiry,
            _RECEIVE_MAXIMUM, most_in or len(self._held) // 3,
            _MAXIMUM_PACKET_SIZE, size,
        )  # fmt: skip
        self._connect_section = _block(v5.properties, _TO_CONNECT, said if size else said[:8])
        self._will_section = _block(v5.will_properties, _TO_WILL)
        return super()._make_connect(clean)

    def _on_accept(self, first, at, n):
        # CONNACK, or what came in place of it.
        code = self._rx[at + 1]
        flags = self._rx[at]
        self._fault = _PROTOCOL_ERROR
        if first != 0x20 or n < 3:
            # A broker of another level refuses by two bytes.
            core.fail(self, first == 0x20 and n == 2 and code or _PROTOCOL)
        v5 = self.v5
        said = self._said(at + 2, at + n, _IN_CONNACK)
        v5.note(code or v5.reason, said)
        said = said.value
        if code:
            # What levels 3 and 4 have a return code for; what may heal is "unavailable".
            n = b"\x84\x85\x88\x89\x97\x9f\x86\x87".find(bytes((code,)))
            core.fail(self, code if n < 0 else b"\1\2\3\3\3\3\4\5"[n])
        self._window = min(self._asked[2], said(_RECEIVE_MAXIMUM) or 65535)
        self._most_bytes = said(_MAXIMUM_PACKET_SIZE) or 65535
        n = said(_MAXIMUM_QOS)
        self._denied = (0 if n is None else 6 - 2 * n) | (said(_RETAIN_AVAILABLE) == 0)
        n = said(_SERVER_KEEP_ALIVE)
        if n is not None:
            self.keepalive = n
        n = min(v5.topic_aliases, said(_TOPIC_ALIAS_MAXIMUM) or 0)
        self._topics = [None] * n
        if n:
            from .alias import shorten

            self._shorten = shorten
            self._buf = bytearray(2 * self.buffer_size + 9)
        if flags:
            self._release_early()
        self._was_clean = False  # that the session is present is what counts
        self._unasked = self._filters
        self._filters = ()
        try:
            self._on_connack(flags << 8)
        finally:
            self._filters = self._unasked
        self._fault = _MALFORMED
        self._most_in += self._held_n  # what an earlier connection left counts no more
        if self._is_told:
            self._unasked = ()
        self._ask_next()

    def _said(self, at, end, kind):
        # -> the properties there, copied.
        if self.check(at, end, kind) != end:
            self._break(_MALFORMED)
        rx = self._rx
        return codec.Properties(bytes(rx[at + codec.width(codec.variable_at(rx, at)) : end]))

    def _release_early(self):
        # MQTT-3.3.4-8: no PUBREL waits for the window.
        core.give_back(self)
        first = at = self._head
        ring = self._ring
        while at != self._tail:  # what went out early on the connection before
            if ring[at] == _PUBCOMP:
                ring[at] |= _AGAIN
            at = core.entry_after(self, at)
        for _ in range(self.inflight if self._window < self.inflight else 0):
            at = core.next_entry(self)
            if at < 0:
                break
            self._next = after = core.entry_after(self, at)
            if ring[at] >= _OWED and self._acks_n < _MOST_ACKS:
                self._again -= 1
                core.release_one(self, at)
                if at == first:
                    first = after
        self._next = first

    @property
    def _goodbye(self):
        # DISCONNECT as the program wants it.
        v5 = self.v5
        reason = v5.number("leave_reason", 255)
        said = codec.given(v5.leave_properties, _TO_DISCONNECT)
        # §3.14.2.2.2: a protocol error, for which brokers publish the will.
        if codec.get(said, 0, len(said), _SESSION_EXPIRY) and not self._expiry:
            raise ValueError("v5.leave_properties: the session has no expiry")
        if reason or said:
            return self._packet(0xE0, bytes((reason,)) + codec.variable(len(said)) + said)
        return b"\xe0\0"

    # --- what comes ----------------------------------------------------------------------

    def _handle(self, first, at, n):
        if not self.is_connected:
            return self._on_accept(first, at, n)
        rx = self._rx
        kind = first >> 4
        end = at + n
        code = rx[at + 2]
        if first & 15 != (kind == 6) * 2:  # MQTT-2.1.3-1
            self._break(_MALFORMED)
        if kind == 13:
            return super()._handle(first, at, n)
        if kind == 14:
            code = rx[at] if n else 0
            self.v5.note(code, None, self._said(at + 1, end, _IN_DISCONNECT) if n > 1 else None)
            core.fail(self, code if code > 127 else _CLOSED)
        if kind >> 2 != 1 and kind & 13 != 9:
            self._break(_PROTOCOL_ERROR)
        if n < 2 or n > 3 and kind < 8 and self.check(at + 3, end, _IN_ANSWER) != end:
            self._break(_MALFORMED)
        number = rx[at] << 8 | rx[at + 1]
        if kind > 7:
            self._on_codes(first, number, self.check(at + 2, end, _IN_ANSWER))
        elif n > 2 and code > 127 and kind < 6:
            self._on_refusal(first, number, code)
        else:
            super()._handle(first, at, 2)
            if kind & 1 == kind >> 1 & 1:  # PUBACK, PUBCOMP
                self._ages.pop(number, 0)

    def _on_codes(self, first, number, at):
        request = self._request
        core.on_request_ack(self, first, number, at)
        if request and not self._request:
            codes = request[1]
            for k in range(len(codes)):
                if codes[k] == 0x11:  # there was no such subscription
                    codes[k] = 0
                elif codes[k] > 127:
                    self.v5.note(codes[k])
            self._is_told = not self._unasked
            if self._unasked:
                self._ask_next()  # which allocates

    def _on_refusal(self, first, packet_id, reason):
        # MQTT-4.3.3-5, MQTT-4.4.0-2: the flow ends here.
        ring = self._ring
        at = self._head
        while at != self._next:
            if ring[at] == first and core.id_of(self, at) == packet_id:
                ring[at] = _PUBACK
                core.on_ack(self, _PUBACK, packet_id)
                self.v5.note(reason)
                self.stats.dropped += 1
                self._is_busy = True
                self._tell_drop(at, packet_id, reason)
                self._is_busy = False
                return
            at = core.entry_after(self, at)
        self.stats.strays += 1

    # --- what ends the connection --------------------------------------------------------

    def check(self, at, end, kind):
        """For the message: check the properties there -> where they end."""
        at = codec.take(self._rx, at, end, kind)
        if at < 0:
            self._break(-at)
        return at

    def _break(self, reason):
        # The broker broke the protocol.
        self._fault = reason
        core.fail(self, _PROTOCOL)

    def _farewell(self, code):
        # Before an error closes the connection: DISCONNECT with a reason, if that helps.
        reason = self._fault
        self._fault = _MALFORMED
        if code == _AWAITING_REL:
            reason = _TOO_MANY
        elif code != _PROTOCOL:
            return
        if not self._left:
            pack_into("BBB", self._piece, 0, 0xE0, 1, reason)
            try:
                self._stream.write(self._piece, 0, 3)
            except (OSError, ValueError):
                pass

    # --- messages in ---------------------------------------------------------------------

    def count(self):
        """For the message: one more came that is to be answered.  MQTT-3.3.4-9"""
        n = self._held_n
        # At QoS 1 those are unanswered whose PUBACK is not out.
        acks = self._acks
        at = self._at if self._out is acks else 0
        while at < self._acks_n:
            n += not at & 3 and acks[at] == _PUBACK
            at += 1
        if n >= self._most_in:
            self._break(_TOO_MANY)

    def refuse(self, qos, packet_id, reason):
        """For the message: answer it with this reason, as long as four answers are."""
        # MQTT-4.3.3-9: it is not held.
        n = self._acks_n
        pack_into(
            ">BBHB11s", self._acks, n, qos + 3 << 4, 14, packet_id, reason, b"\x0a\x1f\0\7refused"
        )
        if self._stream:  # else the handler closed it
            self._acks_n = n + 16

    # --- messages out --------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=b""):
        """As the core's; `properties`: what `properties.encode()` made.  `max_age`: the seconds
        after which the broker drops it, 0 for never; with `queueing` this client does so, too."""
        core.check_range("max_age", max_age, 0, 86400)
        self._age = max_age
        if properties is not self._more:
            self._more = codec.given(properties, _IN_PUBLISH)
        self._extra = self._length(0)
        if self._topics:
            self._msg = msg = core.as_bytes("msg", msg)
        try:
            return core.MQTTClient.publish(self, topic, msg, retain, qos)
        finally:
            if self._stream is self:
                self._stream = self._socket

    def _length(self, alias):
        # -> bytes of the properties of the message that is published, their length included.
        n = len(self._more) + (5 if self._age else 0) + (3 if alias else 0)
        return n + codec.width(n)

    def _add(self, at, n):
        # To the entry that publish() makes there its properties, from `n` on.
        ring = self._ring
        if self.is_connected:
            code = self._refusal(at)
            if code:
                raise core.MQTTError(code)
            if self._topics and self._valid is not self and not (
                self._left or self._acks_n or self._first or self._again or self.queued
                or ring[at] > 0x30 and self.inflight >= self._window
            ):  # fmt: skip
                self._socket = self._stream
                self._stream = self  # for the one write() that follows
        self._put(ring, n, self._extra, 0)

    def _put(self, buf, at, n, alias):
        if n > 128:
            n -= 1
            buf[at] = n - 1 & 127 | 128
            n = (n - 1 >> 7) + 1
            at += 1
        buf[at] = n - 1
        at += 1
        if self._age:
            pack_into(">BI", buf, at, 2, self._age)
            at += 5
        if alias:
            pack_into(">BH", buf, at, _TOPIC_ALIAS, alias)
            at += 3
        for n in self._more:
            buf[at] = n
            at += 1

    def write(self, ring, at, size):
        """As a stream, for a message that publish() sends: have it go out with an alias."""
        self._stream = stream = self._socket
        buf = self._buf
        end = self._shorten(self, self._topics, buf, ring, at, size)
        if not end:
            return stream.write(ring, at, size)
        at = 5 + (stream.write(buf, 5, end - 5) or 0)
        if at < end:
            self._out = buf
            self._at = at
            self._left = end - at
            self._wake = self._now = core.ticks_ms()
        return size

    def close(self):
        """As a stream, if that message fails before it is written."""
        self._socket.close()

    def _refusal(self, at):
        # -> the reason why the broker does not take the entry there, 0 if it does.
        ring = self._ring
        if ring[at] >= _OWED:
            return 0
        if ring[at + 1] << 8 | ring[at + 2] > self._most_bytes:  # MQTT-3.2.2-15
            return _PACKET_TOO_LARGE
        at = ring[at + _ENTRY] & self._denied  # MQTT-3.2.2-11, MQTT-3.2.2-14
        return _NO_QOS if at > 1 else _NO_RETAIN if at else 0

    def _fits(self, at, left_ms=0):
        # May the entry there, whose turn it is, go out?  `left_ms`: of its age, 0 if it has none.
        # What was accepted before, and this broker does not take, is given up by poll().
        self._unfit = self._refusal(at)
        ring = self._ring
        if left_ms and ring[at] < _OWED:
            at += _ENTRY
            first = ring[at]
            at += 2 + (ring[at + 1] > 127)
            at += 2 + codec.number_at(ring, at, 2) + (2 if first & 6 else 0)
            at += codec.width(codec.variable_at(ring, at))
            pack_into(">BI", ring, at, 2, max(1, (left_ms + 999) // 1000))
        return not self._unfit

    def poll(self, timeout_ms=0):
        """As the core's."""
        handled = super().poll(timeout_ms)
        while self._unfit:
            at = core.next_entry(self)
            self._unfit = at >= 0 and self._refusal(at)
            if self._unfit:
                self.give_up(at, self._unfit)
                core.push(self)
        return handled

    check_msg = poll

    # --- subscriptions -------------------------------------------------------------------

    def subscribe(self, topic, qos=0, properties=b""):
        """As the core's; the properties hold for all filters of this call."""
        if not isinstance(topic, (list, tuple)):
            topic = ((topic, qos),)
        return self._ask(_SUBSCRIBE, (_block(properties, _TO_SUBSCRIBE), topic))

    def _make_request(self, first, topics):
        if first == _SUBSCRIBE:
            self._request_section, topics = topics
        try:
            request = super()._make_request(first, topics)
        finally:
            self._request_section = b"\0"
        if len(request[0]) > self._most_bytes:
            raise core.MQTTError(_PACKET_TOO_LARGE)
        for name, part, _ in request[2] if first == _SUBSCRIBE else ():
            options = part[-1]
            # MQTT-4.8.2-1, -2: $share, a name, a filter.  MQTT-3.8.3-4: nothing is local to
            # those who share.
            if options & 3 == 3 or name[:7] == b"$share/" and (
                options & 4 or not 7 < name.find(b"/", 7) < len(name) - 1 or name[7] == 43
            ):  # fmt: skip
                raise ValueError("filter %r cannot have options %d" % (name, options))
        return request

    def _all_filters(self, pairs):
        pass  # they go out in as many packets as they need

    def _ask_next(self):
        # Subscribe to what the broker does not know, as far as it fits into one packet.
        body = section = b""
        n = 0
        later = []
        for one in self._unasked:
            _, part, its_section = one
            if not n:
                section = its_section
                body = b"\0\0" + section
            size = len(body) + len(part)
            if section == its_section and size + 1 + codec.width(size) <= min(
                self._most_bytes, self.buffer_size
            ):
                body += part
                n += 1
            elif n:
                later.append(one)
            else:  # MQTT-3.2.2-15: this broker took it once, or another one
                self.v5.note(_PACKET_TOO_LARGE)
        self._unasked = later
        if n:
            core.begin_request(self, (self._packet(_SUBSCRIBE, body), bytearray(n)))
