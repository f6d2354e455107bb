"""MQTT 5: what level 5 does differently from the protocol of levels 3 and 4.

Loaded by `level=5` only.  Properties are checked and read where they stand in the receive
buffer.  A PUBLISH is kept as it is sent, with its properties, but for topic aliases, which
mean nothing on the next connection.  What the broker refuses is given up as what is too old
is: `find_expired()` names it.  MQTT 5 §2.2.2, §3.3 to §3.11, §4.3 and §4.9.
"""

from struct import pack_into
from time import ticks_diff

from micropython import const, heap_lock, heap_unlock

from .message import Message
from .packet import copy, size_of, write_header, write_number, write_string
from .properties import Properties, find, get, given, number_at, take, width
from .protocol import Protocol
from .terms import (
    Options,
    block,
    check_request,
    connect,
    goodbye,
    read_codes,
    read_connack,
    read_disconnect,
)

# Options of a subscription, to be added to its QoS.
NO_LOCAL = 0x04  # not what this client published
RETAIN_AS_PUBLISHED = 0x08  # `message.retain` as the publisher gave it
RETAINED_IF_NEW = 0x10  # retained messages only if there was no such subscription
NO_RETAINED = 0x20  # no retained messages

# The packets, as `properties` asks for them.
_IN_PUBLISH = const(0x10)
_IN_ANSWER = const(0x20)
_TO_SUBSCRIBE = const(0x80)

_VARIABLE = const(3)
_EXPIRY = const(2)
_TOPIC_ALIAS = const(35)

_PACKET_PUBLISH = const(0x30)

# As in `protocol`.
_ONLINE = const(2)
_HANDLED = const(1)
_WAS_SENT = const(0x01)
_AGED = const(0x08)
_ACKS_BYTES = const(128)
_REFUSAL_BYTES = const(16)
_DONE = const(0x20)  # waits for nothing but to be given up
_OWE_PUBREL = const(0x60)
_WAITS = const(0x70)

_PROTOCOL = const(259)

_MALFORMED = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_PACKET_TOO_LARGE = const(0x95)
_RETAIN_NOT_SUPPORTED = const(0x9A)
_QOS_NOT_SUPPORTED = const(0x9B)


class Message5(Message):
    """A message with its properties; `fault` is why it could not be read: a reason code."""

    def __init__(self, buf):
        Message.__init__(self, buf)
        self.fault = _MALFORMED
        self.reason = 0
        self._properties = 0

    def read(self, first, topic_len, length):
        """As Message."""
        # Not by its own method: the call would be a twentieth of a received message.
        self.qos = qos = first >> 1 & 3
        self.retain = first & 1 > 0
        self.dup = first & 8 > 0
        self.topic_len = start = topic_len
        length -= 2
        packet_id = 0
        if qos:
            start += 2
            if qos == 3 or start >= length:
                return False
            packet_id = self._buf[topic_len] << 8 | self._buf[topic_len + 1]
            if not packet_id:
                return False
        elif start >= length:
            return False
        self.packet_id = packet_id
        if self.reason:
            self.reason = 0
        self._properties = start + 1
        if self._buf[start]:
            start = self._take(start, length)
            if start < 0:
                return False
        else:
            start += 1
        self._start = start
        self.payload_len = length - start
        return topic_len > 0

    def skip(self, first, framing):
        """As Message."""
        self.reason = 0
        return Message.skip(self, first, framing)

    def _take(self, start, length):
        end = take(self._buf, start, length, _IN_PUBLISH)
        if end < 0:
            self.fault = -end
        else:
            self._properties = start + width(number_at(self._buf, start, _VARIABLE))
        return end

    def __getattr__(self, name):
        """As Message; and the properties by their names in the standard, `properties`
        a copy of all of them."""
        if name == "topic" or name == "payload":
            return Message.__getattr__(self, name)
        if name == "properties":
            return Properties(bytes(self._buf[self._properties : self._start]))
        return get(self._buf, self._properties, self._start, name)

    def refuse(self, reason):
        """Have it answered with this reason code, 0x80 or more: the broker gives it up.  At
        QoS 0 nobody is told."""
        if reason >> 7 != 1:
            raise ValueError("not a reason to refuse: %r" % reason)
        self.reason = reason

    def property_into(self, number, target):
        """Copy the property with this identifier, a text or binary data, to the start of
        `target` -> bytes copied (what fits), -1 if it is not there.  Allocates nothing."""
        at = find(self._buf, self._properties, self._start, number)
        if at < 0:
            return -1
        return self._copy(at + 2, number_at(self._buf, at, 2), target)


class Protocol5(Protocol):
    """One client's side of MQTT 5; `v5` is what the program sees of it."""

    # Bases are called by their names: by super() each call takes five bytes more.
    _new_message = Message5
    _acks_bytes = _ACKS_BYTES + _REFUSAL_BYTES - 4  # with room for the rest of a refusal
    _aliases = None

    def __init__(self, store, window, queue, size, level, filters):
        Protocol.__init__(self, store, window, queue, size, level, filters)
        self.v5 = Options()
        self._most_window = window
        # What the broker allows: bytes of a packet, QoS, retained messages.
        self._most_bytes = 65535
        self._most_qos = 2
        self._may_retain = True
        self._extra = b""  # properties of the PUBLISH that is made
        self._age = self._alias = 0  # 0: none; an age is in seconds
        self._has_ages = False
        self.expiry = 0  # seconds of the session, as CONNECT said

    # --- connections -------------------------------------------------------------------------

    connect_packet = connect

    def begin(self, is_clean, connect, now):
        """As Protocol."""
        Protocol.begin(self, is_clean, connect, now)
        self.message.fault = _MALFORMED

    def write_first(self, packet):
        """As Protocol; DISCONNECT says what the program wants."""
        Protocol.write_first(self, goodbye(self, 0) if packet[0] == 0xE0 else packet)

    def goodbye(self, code):
        """After this error: is there a DISCONNECT with its reason to write?  It is next."""
        packet = goodbye(self, code)
        if packet:
            Protocol.write_first(self, packet)
            self.is_due = False
        return packet

    def break_with(self, fault):
        """The broker broke the protocol: the reason code to tell it -> PROTOCOL."""
        self.message.fault = fault
        return _PROTOCOL

    def _accept(self, first):
        code = read_connack(self, first)
        self.was_clean = False  # that the session is present is what counts
        return code or self._begin_session()

    # --- what comes --------------------------------------------------------------------------

    def _handle(self, first):
        framing = self.framing
        kind = first >> 4
        n = framing.length - 2
        if kind == 3:
            return self._on_publish(first)
        if first & 15 != (2 if kind == 6 else 0):  # MQTT-2.1.3-1
            return _PROTOCOL
        if kind == 14:
            return read_disconnect(self)
        if kind == 13 and n == -2:
            self.is_pinging = False
            return _HANDLED
        if n < 0 and kind < 15:
            return _PROTOCOL
        if kind == 9 or kind == 11:
            return read_codes(self, first)
        if kind >> 2 != 1:  # 4 to 7 acknowledge
            return self.break_with(_PROTOCOL_ERROR)
        if n > 1 and take(framing.rx, 1, n, _IN_ANSWER) != n:
            return _PROTOCOL
        if kind == 6:
            return self._on_pubrel(framing.field)
        if n and framing.rx[0] > 127 and kind < 6:
            self._on_refusal(first, framing.field, framing.rx[0])
        else:
            self.on_ack(first, framing.field)
        return _HANDLED

    def _on_refusal(self, first, packet_id, reason):
        # MQTT-4.3.3-5, MQTT-4.4.0-2: the flow ends here.
        slot = self._find(packet_id)
        if slot >= 0 and self._waits[slot] & (_WAITS | _WAS_SENT) == first | _WAS_SENT:
            self.v5.reason = reason
            self.refuse(slot, reason)
            self.has_moved = True
        else:
            self.stats.strays += 1

    def acknowledge(self, qos, packet_id, now):
        """As Protocol, unless the handler refused the message."""
        if not self.message.reason:
            # As Protocol; its call would be a twenty-fifth of a received message.
            if qos == 2:
                self.held.add(packet_id, now)
                self.store.hold(packet_id)
            self._answer(qos + 3 << 4, packet_id)
        else:
            heap_lock()
            self._answer_refusal(qos + 3 << 4, packet_id)

    def _answer_refusal(self, first, packet_id):
        # Entered with the heap locked.
        heap_unlock()
        # MQTT-4.3.3-9: it is not held.  With a reason string it is as long as four answers.
        n = _ACKS_BYTES - self.room
        pack_into(
            ">BBHB11s",
            self._acks,
            n,
            first,
            _REFUSAL_BYTES - 2,
            packet_id,
            self.message.reason,
            b"\x0a\x1f\x00\x07refused",
        )
        self.message.reason = 0
        self.room -= _REFUSAL_BYTES
        self.is_due = True
        self._fast = 0

    # --- subscriptions -----------------------------------------------------------------------

    def ask(self, request, filters, known):
        """As Protocol; raises what `check_request()` does."""
        check_request(self, request, filters[known:])
        Protocol.ask(self, request, filters, known)

    def _ask_next(self):
        # MQTT-3.2.2-15: this broker took larger packets once, or another one did.
        while self._asked < len(self.filters) and self.refusal(
            len(self.filters[self._asked][1]), 0
        ):
            self._asked += 1
            self.v5.reason = _PACKET_TOO_LARGE
        Protocol._ask_next(self)

    # --- publishing --------------------------------------------------------------------------

    def prepare(self, properties, max_age):
        """As Protocol; with a `max_age` of None -> what stands before the filters of a
        request, as bytes."""
        Protocol.prepare(self, None, max_age)
        if max_age is None:
            return block(given(properties or b"", _TO_SUBSCRIBE))
        if self._is_locked:
            return 0x100  # will be refused; what is prepared is the message that waits for room
        if properties is not self._extra:
            self._extra = given(properties or b"", _IN_PUBLISH)
        self._age = max_age
        self._has_ages |= max_age > 0
        self._fast = 0  # the fast way knows nothing of it; next() opens that again
        return 0x100

    def lock(self, is_locked):
        """As Protocol."""
        Protocol.lock(self, is_locked)
        if (
            self._aliases
            or self._most_bytes < self._size
            or self._most_qos < 2
            or not self._may_retain
        ):
            self._short = 0

    def _accept_slowly(self, topic, msg, flags):
        heap_unlock()
        if flags > 255:
            flags &= 255
        elif not self._is_locked:
            self._extra = b""
            self._age = 0
        n = size_of(self._length_of(msg, flags))
        if self.state == _ONLINE and n <= self._size:
            n = self.refusal(n, flags)
            if n:
                return -n
        count = self.count
        if count < self._n:
            self._expiry[self._slot(count)] = 0
        is_free = self._aliases and not self.left
        heap_lock()
        packet_id = Protocol._accept_slowly(self, topic, msg, flags)
        # Is what is about to be written just this message?
        if is_free and packet_id >= 0 and self.left and not self.unsent:
            if packet_id or self.count == count:
                heap_lock()
                self._aliases.shorten(self, msg, flags, packet_id)
        return packet_id

    def refusal(self, n, flags):
        """-> the reason code if the broker takes no PUBLISH of `n` bytes with these flags,
        else 0."""
        if n > self._most_bytes:  # MQTT-3.2.2-15
            return _PACKET_TOO_LARGE
        if (flags >> 1 & 3) > self._most_qos:  # MQTT-3.2.2-11
            return _QOS_NOT_SUPPORTED
        if flags & 1 and not self._may_retain:  # MQTT-3.2.2-14
            return _RETAIN_NOT_SUPPORTED
        return 0

    def _length_of(self, msg, flags):
        n = self._properties_length()
        return Protocol._length_of(self, msg, flags) + n + width(n)

    def _properties_length(self):
        return len(self._extra) + (5 if self._age else 0) + (3 if self._alias else 0)

    def _encode(self, buf, length, topic, msg, flags, packet_id):
        # Entered with the heap locked.
        heap_unlock()
        pos = write_header(buf, _PACKET_PUBLISH | flags, length)
        pos = write_string(buf, pos, topic)
        if packet_id:
            pos = write_number(buf, pos, packet_id)
        n = self._properties_length()
        while n > 127:
            buf[pos] = n & 127 | 128
            n >>= 7
            pos += 1
        buf[pos] = n
        pos += 1
        if self._age:
            pack_into(">BI", buf, pos, _EXPIRY, self._age)
            pos += 5
        if self._alias:
            buf[pos] = _TOPIC_ALIAS
            pos = write_number(buf, pos + 1, self._alias)
        return copy(buf, copy(buf, pos, self._extra), msg)

    # --- what leaves next --------------------------------------------------------------------

    def _send(self, slot):
        waits = self._waits[slot] & _WAITS
        if waits >= _OWE_PUBREL:
            return Protocol._send(self, slot)
        if waits == _DONE or waits and self.count - self.unsent >= self.window:
            self.is_due = waits == _DONE  # MQTT-3.3.4-7, MQTT-4.9.0-2
            return False
        if not Protocol._send(self, slot):
            return False
        if self._has_ages:
            heap_lock()
            self._write_age(self.out, self._expiry[slot])
        return True

    # --- ages --------------------------------------------------------------------------------

    def expire_at(self, packet_id, ticks):
        """As Protocol; what is left is also said when the message goes out."""
        ticks = ticks or 1
        slot = self._find(packet_id)
        if slot >= 0:
            self._expiry[slot] = ticks
        Protocol.expire_at(self, packet_id, ticks)

    def _write_age(self, buf, ticks):
        # MQTT-4.3.3-7: what went out before is sent again, however old it is.  Entered
        # with the heap locked.
        heap_unlock()
        at = 1 + width(number_at(buf, 1, _VARIABLE))
        at += 2 + number_at(buf, at, 2)  # the topic
        if buf[0] & 6:
            at += 2
        n = number_at(buf, at, _VARIABLE)
        at += width(n)
        if ticks and n and buf[at] == _EXPIRY:
            n = (ticks_diff(ticks, self.now) + 999) // 1000 if ticks > 0 else 1
            if n < 1:
                n = 1
            pack_into(">BI", buf, at, _EXPIRY, n)

    def drowse(self, now):
        """As Protocol."""
        Protocol.drowse(self, now)
        for k in range(self.count if self._has_ages else 0):
            slot = self._slot(k)
            ticks = self._expiry[slot]
            if ticks > 0 and not self._waits[slot] & _AGED and ticks_diff(ticks, now) <= 0:
                self._expiry[slot] = -1  # or it would seem young again after some days
