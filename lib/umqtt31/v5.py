"""Level 5, MQTT 5.0: what it does differently from levels 3 and 4.

    from umqtt31.v5 import MQTTClient

Properties are checked and read where they stand in the receive buffer.  A PUBLISH is kept with
its properties, but for topic aliases, which mean nothing on the next connection.  AUTH is
refused.  MQTT 5 §2.2.2, §3, §4.3, §4.9 and §4.13.
"""

from micropython import const, heap_lock, heap_unlock  # isort: skip

from builtins import bytes, int
from struct import pack, pack_into

import umqtt31 as core
import umqtt31.properties as codec

# Options of a subscription, to be added to its QoS.
NO_LOCAL = const(0x04)  # not what this client published
RETAIN_AS_PUBLISHED = const(0x08)  # `message.retain` as the publisher gave it
RETAINED_IF_NEW = const(0x10)  # retained messages only if there was no such subscription
NO_RETAINED = const(0x20)  # no retained messages

# The packets, as `properties` asks for them.
_CONNECT = const(0x08)  # CONNACK, too
_IN_PUBLISH = const(0x10)
_ANSWER = const(0x20)  # PUBACK and the like; a will
_DISCONNECT = const(0x40)
_TO_SUBSCRIBE = const(0x80)
# Properties.
_EXPIRY = const(17)
_RECEIVE = const(33)
_SIZE = const(39)
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
# Reasons.
_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_TOO_MANY = const(0x93)
_PACKET_TOO_LARGE = const(0x95)

# Names of the module are found faster than by super().
_handle = core.MQTTClient._handle
_poll = core.MQTTClient.poll
_read = core.Message.read


class Message5(core.Message):
    """A message with its properties, by their names in the standard; `properties`: a copy of
    all of them."""

    def __init__(self, client, buf):
        super().__init__(buf)
        self._client = client

    def read(self, first, at, n):
        """As Message."""
        client = self._client
        if client._held_n + (client._acks_n >> 2) >= client._most_in:
            if first & 6 and not first & _AGAIN:
                client.count()
        is_sound = _read(self, first, at, n)
        if n > client.buffer_size or self.topic_len and not is_sound:
            return is_sound
        n += at
        at += self.topic_len + (4 if first & 6 else 2)
        # MQTT-3.3.2-8: an alias in place of the topic has a reason of its own.
        self._payload = at = client.check(at, n, _IN_PUBLISH) if self._buf[at] else at + 1
        self.payload_len = n - at
        return self.payload_len >= 0 < self.topic_len

    def _start(self):
        # -> where the properties begin; they end where the payload begins.
        at = self._topic + self.topic_len + (2 if self.qos or self.packet_id else 0)
        return codec.behind(self._buf, at)

    def __getattr__(self, name):
        if name == "properties":
            return codec.Properties(bytes(self._buf[self._start() : self._payload]))
        number = codec.number_of(name)
        if number:
            return codec.get(self._buf, self._start(), self._payload, number)
        return super().__getattr__(name)

    def refuse(self, reason):
        """Have it answered with this reason code, 0x80 or more: the broker gives it up.  At
        QoS 0 nobody is told."""
        core.check_range("reason", reason, 128, 255)
        if self.qos:
            self._client.refuse(self.qos, self.packet_id, reason)
            self.keep()

    def property_into(self, number, target):
        """Copy the property with this identifier, a text or binary data, to the start of
        `target` -> bytes copied (what fits), -1 if it is not there.  Allocates nothing."""
        buf = self._buf
        at = codec.find(buf, self._start(), self._payload, number)
        return at if at < 0 else self.copy(at + 2, codec.number_at(buf, at, 2), target)


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
        core.check_range(name, number, 0, most)
        return number

    def note(self, reason, connack=None, disconnect=None):
        """For the client: what the broker said."""
        self.reason = reason
        if connack:
            self.connack = connack
            self.assigned_client_id = connack.value(18) or self.assigned_client_id
        self.disconnect = disconnect or self.disconnect


def _check_qos(qos):
    core.check_range("qos", qos, 0, 2)


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
    _accept = core.accept
    _most_bytes = 65535
    _fault = _MALFORMED

    def __init__(self, *args, **options):
        options.setdefault("level", 5)
        super().__init__(*args, **options)
        core.check_range("retry_interval at level 5", self._retry_ms // 1000, 0, 0)  # MQTT-4.4.0-1
        self.v5 = Options()
        self._message = Message5(self, self._rx)
        # A refusal has 12 bytes more than another answer.
        self._acks = self._out = bytearray(148)
        self._asked = self._identity, self.keepalive, self._window
        self._unfit = 0  # why the next entry is to be given up
        # Of the message that is published: seconds, payload, properties, bytes of their section.
        self._age, self._msg, self._more, self._extra = 0, None, b"", 1
        self._ages = None  # of an option: by packet id
        # Made here, as making them allocates.
        self._may_go = self._fits
        self._accept = self._accept

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
        n = v5.number("maximum_packet_size", most, self.buffer_size)
        said = pack(
            ">BIBHBI", _EXPIRY, self._expiry, _RECEIVE, most_in or len(self._held) // 3, _SIZE, n
        )
        self._connect_section = _block(v5.properties, _CONNECT, said if n else said[:8])
        self._will_section = _block(v5.will_properties, _ANSWER)
        return super()._make_connect(clean)

    def _on_accept(self, first, at, n):
        # CONNACK, or what came in place of it.
        flags, code = self._rx[at], self._rx[at + 1]
        self._fault = _PROTOCOL_ERROR
        if first != 0x20 or n < 3:
            # A broker of another level refuses by two bytes.
            core.fail(self, first == 0x20 and n == 2 and code or _PROTOCOL)
        v5 = self.v5
        said = self._said(at + 2, at + n, _CONNECT)
        v5.note(code or v5.reason, said)
        said = said.value
        if code:
            self._at = 0  # CONNECT changed nothing
            # What levels 3 and 4 have a return code for; what may pass is "unavailable".
            n = b"\x84\x85\x86\x87\x88\x89\x97\x9f".find(bytes((code,)))
            core.fail(self, code if n < 0 else b"\1\2\4\5\3\3\3\3"[n])
        self._window = min(self._asked[2], said(_RECEIVE) or 65535)
        self._most_bytes = said(_SIZE) or 65535
        n = said(36)  # maximum QoS; 37: may messages be retained?
        self._denied = (0 if n is None else 6 - 2 * n) | (said(37) == 0)
        n = said(19)
        self.keepalive = self.keepalive if n is None else n
        n = min(v5.topic_aliases, said(34) or 0)
        self._topics = [None] * n
        self._is_less = n or self._denied or self._most_bytes < self.buffer_size
        if self._is_less:
            self._accept, self._socket = self._less, None
        if n:
            from .alias import shorten

            self._shorten = shorten
            self._buf = bytearray(2 * self.buffer_size + 9)
        if flags:
            self._release()
        self._was_clean = False  # that the session is present is what counts
        filters, self._filters = self._filters, ()
        try:
            self._on_connack(flags << 8)
        finally:
            self._filters = filters
        self._fault = _MALFORMED
        self._most_in += self._held_n  # what an earlier connection left counts no more
        self._missing = False  # does the broker lack a filter that it was asked for?
        self._unasked = iter(() if self._is_told else self._requests(filters))
        self._ask_next()

    def _said(self, at, end, kind):
        # -> the properties there, copied.
        if self.check(at, end, kind) != end:
            self._break(_MALFORMED)
        rx = self._rx
        return codec.Properties(bytes(rx[codec.behind(rx, at) : end]))

    def _release(self):
        # MQTT-3.3.4-8: no PUBREL waits for the window.
        core.give_back(self)
        first, ring = self._head, self._ring
        for _ in range(self.inflight):
            at = core.next_entry(self)
            if at < 0:
                break
            self._next = after = core.entry_after(self, at)
            if ring[at] == _PUBCOMP:  # it went out early on the connection before
                ring[at] |= _AGAIN
            if self._window < self.inflight and ring[at] >= _OWED and self._acks_n < _MOST_ACKS:
                self._again -= 1
                core.release_one(self, at)
                if at == first:
                    first = after
        self._next = first

    def disconnect(self):
        """As the core's."""
        try:
            if self.is_connected:
                self._farewell(0)
        finally:
            super().disconnect()

    def _handle(self, first, at, n):
        if n != 2 or first not in b"\x40\x50\x62\x70" or not self.is_connected:
            return self._on_other(first, at, n)
        number = self._rx[at] << 8 | self._rx[at + 1]
        n = self.inflight
        _handle(self, first, at, 2)
        if self._ages and self.inflight < n:
            self._ages.pop(number, 0)

    def _on_other(self, first, at, n):
        if not self.is_connected:
            return self._on_accept(first, at, n)
        rx, kind, end = self._rx, first >> 4, at + n
        if first & 15 != (kind == 6) * 2:  # MQTT-2.1.3-1
            self._break(_MALFORMED)
        if kind == 13:
            return _handle(self, first, at, n)
        if kind == 14:
            code = rx[at] if n else 0
            self.v5.note(code, None, self._said(at + 1, end, _DISCONNECT) if n > 1 else None)
            core.fail(self, code if code > 127 else _CLOSED)
        if kind >> 2 != 1 and kind & 13 != 9:
            self._break(_PROTOCOL_ERROR)
        number, code = rx[at] << 8 | rx[at + 1], rx[at + 2]
        if n < 2 or kind < 8 and (not number or n > 3 and self.check(at + 3, end, _ANSWER) != end):
            self._break(_MALFORMED)
        if kind > 7:
            self._on_codes(first, number, self.check(at + 2, end, _ANSWER))
        elif n > 2 and code > 127 and kind < 6:
            self._on_refusal(first, number, code)
        else:
            self._handle(first, at, 2)

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
            self._missing |= not self._is_told
            self._is_told = not self._missing
            self._ask_next()

    def _on_refusal(self, first, packet_id, reason):
        # MQTT-4.3.3-5, MQTT-4.4.0-2: the flow ends here.
        ring, at = self._ring, self._head
        while at != self._next:
            if ring[at] == first and core.id_of(self, at) == packet_id:
                if self._store:
                    self._store.note(_PUBACK, packet_id)
                self.v5.note(reason)
                self._again += 1  # as one that is to go out again
                self._is_busy = True
                self.give_up(at, reason)
                self._is_busy = False
                return
            at = core.entry_after(self, at)
        self.stats.strays += 1

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
        # DISCONNECT with a reason.  `code`: what closes the connection; 0: only make the packet.
        reason, self._fault = self._fault, _MALFORMED
        if not code:
            self._goodbye = b""  # if what the program wants is wrong
            reason = self.v5.number("leave_reason", 255)
            said = _block(self.v5.leave_properties, _DISCONNECT)
            # §3.14.2.2.2: a protocol error, for which brokers publish the will.
            if not self._expiry and codec.get(said, codec.behind(said, 0), len(said), _EXPIRY):
                raise ValueError("leave_properties: the session has no expiry")
            said = bytes((reason,)) + said if reason or said != b"\0" else b""
            self._goodbye = self._packet(0xE0, said)
        elif (code == _PROTOCOL or code == _AWAITING_REL) and not self._left:
            reason = reason if code == _PROTOCOL else _TOO_MANY
            pack_into(">BH", self._piece, 0, 0xE0, 0x100 | reason)
            try:
                self._stream.write(self._piece, 0, 3)
            except (OSError, ValueError):
                pass

    def count(self):
        """For the message: one more came that is to be answered.  MQTT-3.3.4-9"""
        # At QoS 1 those are unanswered whose PUBACK is not out.
        n, acks = self._held_n, self._acks
        for at in range(self._at + 3 & ~3 if self._out is acks else 0, self._acks_n, 4):
            n += acks[at] == _PUBACK
        if n >= self._most_in:
            self._break(_TOO_MANY)

    def refuse(self, qos, packet_id, reason):
        """For the message: answer it with this reason, in the room of four.  MQTT-4.3.3-9"""
        n = self._acks_n
        said = b"\n\x1f\0\7refused"
        pack_into(">BBHB11s", self._acks, n, qos + 3 << 4, 14, packet_id, reason, said)
        if self._stream:  # else the handler closed it
            self._acks_n = n + 16

    # --- messages out --------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=b""):
        """As the core's; `properties`: what `properties.encode()` made.  `max_age`: the seconds
        after which the broker drops it, 0 for never; with `queueing` this client does so, too."""
        if max_age != 0 or properties or self._extra > 1:
            self._attach(max_age, properties)
        # One word more, and this frame would come from the heap, which takes longer than all else
        # here: so `qos` becomes the flags, `max_age` what is called, `retain` the answer.
        if topic is not self._valid:
            topic = core.check_topic(self, topic)
        if msg.__class__ is not bytes:
            msg = core.as_bytes("msg", msg)
        if qos.__class__ is not int or not 0 <= qos < 3:
            _check_qos(qos)
        qos = (not not retain) | qos << 1
        max_age = self._accept
        heap_lock()
        retain = max_age(topic, msg, qos)
        if retain < 0:
            self._msg = msg
            qos |= retain << 4  # the code, for the same reason
            retain = self._refused(topic, qos)
        return retain

    def _attach(self, max_age, properties):
        core.check_range("max_age", max_age, 0, 86400)
        if properties is not self._more:
            self._more = codec.given(properties, _IN_PUBLISH)
        self._age = max_age
        n = len(self._more) + (5 if max_age else 0)
        self._extra = n + 1 + (n > 127)

    def _refused(self, topic, code):
        return self._refuse(-(code >> 4), topic, self._msg, code & 15)

    def _less(self, topic, msg, flags):
        # As accept(), for a broker that takes less than this client, or topics by alias.
        heap_unlock()
        self._msg = msg
        n = len(topic) + len(msg) + self._extra + (4 if flags & 6 else 2)
        n += 2 + (n > 127)
        if self._stream is self:  # on_drop publishes, in the middle of another one
            self._stream = self._socket
        if self.is_connected and n <= self.buffer_size:
            n = self._refusal(n, flags)
            if n:
                return -n
            if self._topics and self._valid is not self:
                self._socket, self._stream = self._stream, self
        try:
            heap_lock()
            n = core.accept(self, topic, msg, flags)
        finally:
            if self._stream is self:
                self._stream = self._socket
        return n

    def _add(self, buf, n, alias=0, size=0):
        # Write the properties to the entry that publish() makes, so that they end at `n`.  With an
        # alias they go to `buf`, and have `size` bytes.
        if not alias:
            buf, size = self._ring, self._extra
        at = n - size
        size -= 1
        if size > 127:
            size -= 1
            buf[at] = size & 127 | 128
            size >>= 7
            at += 1
        buf[at] = size
        at += 1
        if self._age:
            pack_into(">BI", buf, at, 2, self._age)
            at += 5
        if alias:
            pack_into(">BH", buf, at, 35, alias)
            at += 3
        for n in self._more:
            buf[at] = n
            at += 1

    def write(self, ring, at, size):
        """As a stream, in publish(): a packet that nothing precedes may go out with an alias."""
        buf = self._buf
        if not self._left:
            end = self._shorten(self, self._topics, buf, ring, at, size)
            if end:
                at = 5 + (self._socket.write(buf, 5, end - 5) or 0)
                if at < end:
                    self._out, self._at, self._left = buf, at, end - at
                    self._wake = self._now = core.ticks_ms()
                return size
        return self._socket.write(ring, at, size)

    def close(self):
        """As a stream, if publish() fails."""
        self._socket.close()

    def _refusal(self, size, flags):
        # -> the reason why the broker does not take such a packet, 0 if it does.
        if size > self._most_bytes:  # MQTT-3.2.2-15
            return _PACKET_TOO_LARGE
        flags &= self._denied  # MQTT-3.2.2-11, MQTT-3.2.2-14
        return flags and 0x9A + (flags > 1)  # for retain, QoS

    def _fits(self, at, left_ms=0):
        # May the entry there, whose turn it is, go out?  `left_ms`: of its age, 0 if it has none.
        # poll() gives up what was accepted before and this broker does not take.
        ring = self._ring
        self._unfit = 0
        if ring[at] < _OWED:
            if self._is_less:
                self._unfit = self._refusal(ring[at + 1] << 8 | ring[at + 2], ring[at + _ENTRY])
            if left_ms:
                self._set_age(at + _ENTRY, left_ms)
        return not self._unfit

    def _set_age(self, at, left_ms):
        ring = self._ring
        first = ring[at]
        at += 2 + (ring[at + 1] > 127)
        at += 2 + codec.number_at(ring, at, 2) + (2 if first & 6 else 0)
        at = codec.behind(ring, at)
        pack_into(">BI", ring, at, 2, max(1, (left_ms + 999) // 1000))

    def poll(self, timeout_ms=0):
        """As the core's."""
        timeout_ms = _poll(self, timeout_ms)
        while self._unfit:
            at = core.next_entry(self)
            if at < 0 or self._fits(at):
                break
            self.give_up(at, self._unfit)
            core.push(self)
        return timeout_ms

    check_msg = poll

    # --- subscriptions -------------------------------------------------------------------

    def subscribe(self, topic, qos=0, properties=b""):
        """As the core's; the properties hold for all filters of this call."""
        if not isinstance(topic, (list, tuple)):
            topic = ((topic, qos),)
        return self._ask(_SUBSCRIBE, (_block(properties, _TO_SUBSCRIBE), topic))

    def _make_request(self, first, topics):
        self._request_section, topics = topics if first == _SUBSCRIBE else (b"\0", topics)
        request = super()._make_request(first, topics)
        if len(request[0]) > self._most_bytes:
            raise core.MQTTError(_PACKET_TOO_LARGE)
        for name, part, _ in request[2] if first == _SUBSCRIBE else ():
            options = part[-1]
            # MQTT-4.8.2-1, -2: $share, a name, a filter.  MQTT-3.8.3-4: nothing is local to
            # those who share.
            if options & 3 == 3 or name[:7] == b"$share/" and (
                options & 4 or not 7 < name.find(b"/", 7) < len(name) - 1 or name[7] == 43
            ):  # fmt: skip
                raise ValueError("wrong options of %r: %d" % (name, options))
        return request

    def _all_filters(self, topics):
        pass  # they go out in as many packets as they need

    def _requests(self, filters):
        # -> those that subscribe to these, as far as each fits into one packet.
        found = []
        while filters:
            section = filters[0][2]
            body = b"\0\0" + section
            n, later = 0, []
            for one in filters:
                size = len(body) + len(one[1])
                size += 2 + (size > 127)
                if one[2] == section and size <= min(self._most_bytes, self.buffer_size):
                    body += one[1]
                    n += 1
                elif n or one[2] != section:
                    later.append(one)
                else:  # MQTT-3.2.2-15: this broker took it once, or another one
                    self.v5.note(_PACKET_TOO_LARGE)
                    self._missing = True
            filters = later
            if n:
                found.append((self._packet(_SUBSCRIBE, body), bytearray(n)))
        return found

    def _ask_next(self):
        for request in self._unasked:
            self._is_told = False
            core.begin_request(self, request)
            break
