"""What becomes of messages that wait: a full queue, ages, QoS 0 in the queue, strict order.

    from umqtt31.queueing import MQTTClient         # for level 5: extend(v5.MQTTClient)

What is in flight (sent, and not yet answered) is never given up.  What is given up is counted,
and told to on_drop(packet_id, reason): FULL or, by `max_age`, TIMEOUT.  In there publish()
raises BUSY.
"""

# A message that is given up leaves a hole in the ring, which is closed when a new message finds
# no room.  With a store, what waits in the store alone is brought into the ring to be given up
# as the oldest; "latest" looks at the ring only.
#
# Ages are kept in RAM, so that a reset forgets them: _ages has for each packet id (QoS 0 has one
# inside the ring) the milliseconds that were left at _seen, 0 for none.  What is too old is not
# sent, and given up by the next poll() or reconnect(), not in the middle of a write, since
# on_drop may call anything.  Ticks that went backwards say that more than half of their period is
# over, and no message may be so old.  Only a whole period without a call (12 days on boards) would
# be missed; next_due_ms() is a day at most.

from micropython import const, heap_lock  # isort: skip

from time import ticks_diff, ticks_ms

from . import MQTTClient as _Client
from . import (
    MQTTError,
    accept,
    bring,
    check_range,
    complaint,
    entry_after,
    give_back,
    id_of,
    next_entry,
    push,
)  # fmt: skip

_PUBLISH = const(0x30)
_PUBACK = const(0x40)
_PUBCOMP = const(0x70)
_ENTRY = const(5)
_TIMEOUT = const(257)
_FULL = const(261)
_JOURNAL = const(262)
_BUSY = const(263)
_DROPPING = const(2)  # busy inside on_drop
_ORDERED = const(3)  # busy inside publish()
_DAY_MS = const(86400000)


def extend(base):
    """-> the class of clients that are as those of `base`, and queue as this page says.  For
    asyncio, give it to aio.extend().

    On MicroPython super() is the base in the class line, so a class with two such bases would
    leave one of them out.
    """

    class MQTTClient(base):
        """`overflow`: what publish() does with no room, "refuse", "drop_oldest", or "latest",
        which gives up one that waits with the same topic.  `mqueue_store_qos0`: QoS 0 waits,
        too.  `ordered`: one message at a time, all of one QoS above 0, none is given up."""

        # super() with more than four arguments allocates.
        _publish = base.publish
        _refuse_last = base._refuse

        def __init__(
            self, *args, overflow="refuse", mqueue_store_qos0=False, ordered=False, **options
        ):
            if ordered:
                options["max_inflight"] = 1  # MQTT-4.6-RM1
            is_victim = {"drop_oldest": _is_any, "latest": _has_topic}.get(overflow)
            # SIB-NOEXC: nothing is ever skipped.
            if overflow != "refuse" and (ordered or not is_victim):
                raise complaint("overflow")
            super().__init__(*args, **options)
            self._is_victim = is_victim
            self._order = ordered and 3  # the QoS of all messages, 3 if it is not known yet
            if ordered and self._store:
                self._commit = self._store.sync  # MQTT-4.6-RM1: what is done stays so, too
            self._may_go = self._check_age
            if mqueue_store_qos0:
                self._keep = self._keep_qos0
            # A dictionary keeps the room that it once needed.
            self._ages = ages = dict.fromkeys(range(self._window + self._most_queued))
            while ages:
                ages.popitem()
            self._least = _DAY_MS  # of these above 0
            self._age = self._seen = 0

        def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=None):
            """As before; a message that still waits after `max_age` seconds, up to a day, is
            given up, 0 for never."""
            busy = self._is_busy
            if busy > 1:
                raise MQTTError(_BUSY, self._order and _ONE_TASK)
            if self._order:
                self._check_order(qos, max_age)
                self._is_busy = _ORDERED
            if max_age != 0:
                check_range("max_age", max_age, 0, 86400)
                self._expire()
            if self._keep and not qos:
                if self._left or self._acks_n:
                    push(self)  # if it fails, this message is kept
                while bring(self) >= 0:  # older messages go out first
                    pass
            self._age = max_age
            try:
                give_back(self)
                # 31-2.4-ID: others were given up, so ids may have come round to the oldest.
                if qos and id_of(self, self._head) == self._id % 65535 + 1:
                    raise MQTTError(_FULL)
                if self.level > 4:
                    packet_id = self._publish(topic, msg, retain, qos, max_age, properties)
                else:
                    packet_id = self._publish(topic, msg, retain, qos)
            finally:
                self._is_busy = busy
            if self._order:
                self._order = qos
            elif max_age and (qos and self.level > 4 or self.queued and (qos or self._keep)):
                max_age = self._passed() + max_age * 1000
                self._ages[packet_id or self._id] = max_age
                self._least = min(self._least, max_age)
            return packet_id

        def _check_order(self, qos, max_age):
            if self._order > 2:  # what did an earlier life leave?
                at = self._head
                if at == self._tail or not self._ring[at]:
                    at = next_entry(self)
                if at >= 0 and self._ring[at] & 0xF0:  # else it is spoilt
                    self._order = 1 if self._ring[at] & 0xF0 == _PUBACK else 2
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            if not qos or max_age != 0 or qos != self._order < 3:
                raise complaint("ordered")

        def _keep_qos0(self, at, after):
            # A hook: QoS 0 that cannot go out now stands at `at`.
            if self.queued >= self._most():
                return -_FULL
            if self._age:
                self._id = packet_id = self._id % 65535 + 1
                self._ring[at + 3] = packet_id >> 8
                self._ring[at + 4] = packet_id & 255
            self._tail = after
            self.queued += 1
            return 0

        # --- no room ------------------------------------------------------------------------

        def _refuse(self, code, topic, msg, flags):
            n = 0  # the room that it needs in the ring
            if not (flags & 6 and self._store):
                n = len(topic) + len(msg) + self._extra + self.buffer_size + 12
            while (
                code == _FULL
                and (flags & 6 or self._keep)
                and (self._expire() or self._make_room(topic, n))
            ):
                heap_lock()
                code = -accept(self, topic, msg, flags)
            if code > 0:
                self._refuse_last(code, topic, msg, flags)
            return -code

        def _most(self):
            # -> how many messages may wait.
            return max(self._most_queued, self.is_connected and self._window - self.inflight)

        def _make_room(self, topic, n):
            # Close holes, or give up one message -> may there be room now?
            most = self._most()
            if n and self._behind:
                return False
            if n and self.queued < most and self._squeeze():
                return True
            is_it = self._is_victim
            if not (is_it and most) or is_it is _has_topic and self.queued > most:
                return False
            at = self._look_for(is_it, topic)
            # Nothing is given up for a message that is refused all the same.
            if at < 0 or n and n > self._room_without(at, topic):
                return False
            self.give_up(at, _FULL, True)
            return True

        def _room_without(self, at, topic):
            # -> bytes that find room, as in _place(), without all that may go from `at` on.
            if self._is_fixed():
                at = self._tail
            head = self._head
            to = at
            while at != self._tail:
                after = entry_after(self, at)
                if self._ring[at] and not self._is_victim(self, at, topic):
                    if to == head:  # all before it is given back
                        head = to = at
                    n = (after or self._wrap) - at
                    if to > at and to + n > self._size:
                        to = 0
                    to += n
                at = after
            if to == head:
                return self._size
            return head - 1 - to if to < head else max(self._size - to, head - 1)

        def _is_fixed(self):
            # Does QoS 0 that is half written stand between what waits?
            if not self._left or self._out is not self._ring:
                return False
            at, size = self._next, self._size
            return (self._at - at) % size < (self._tail - at) % size

        def _squeeze(self):
            # Close the holes between what waits -> were there any?
            give_back(self)
            if self._is_fixed():
                return False
            ring = self._ring
            at = to = self._next
            tail = self._tail
            wrap = -1 if tail < at else self._wrap
            while at != tail:
                after = entry_after(self, at)
                if ring[at]:
                    n = (after or self._wrap) - at
                    if to > at and to + n > self._size:
                        wrap = to
                        to = 0
                        if self._rec == wrap:
                            self._rec = 0
                        if self._next == wrap:
                            self._next = 0
                    for k in range(n):
                        ring[to + k] = ring[at + k]
                    to += n
                at = after
            self._wrap = wrap
            self._tail = to
            return to != tail

        def _look_for(self, is_it, topic):
            # -> the oldest entry that waits and is it, -1 for none.
            in_flight = self._again
            at = self._next
            while True:
                if at == self._tail:
                    if is_it is _has_topic or not self._behind:
                        return -1
                    if self._squeeze():
                        return self._look_for(is_it, topic)
                    at = bring(self)
                    if at < 0:
                        if in_flight or is_it is not _is_any:
                            return at
                        # There is no room for it: it is read to be given up.
                        at = self._size
                        self._store.fetch(self._ring, at)
                        self._behind -= 1
                        self._old -= self._old > 0
                        return at
                # What is released early is in flight.
                state = self._ring[at]
                if state and (state != _PUBCOMP or not self.is_connected):
                    if in_flight:
                        in_flight -= 1
                    elif is_it(self, at, topic):
                        return at
                at = entry_after(self, at)

        def _tell_drop(self, at, packet_id, reason):
            # Nothing else is published or given up meanwhile.
            self._ages.pop(packet_id, 0)
            if reason != _JOURNAL and not self._ring[at + _ENTRY] & 6:
                packet_id = 0
            busy = self._is_busy
            self._is_busy = _DROPPING
            try:
                super()._tell_drop(at, packet_id, reason)
            finally:
                self._is_busy = busy

        # --- ages ---------------------------------------------------------------------------

        def _check_age(self, at):
            # A hook: is the entry there, whose turn it is, to go out?
            left = 0
            packet_id = id_of(self, at)
            if packet_id in self._ages:
                left = self._ages[packet_id] - self._passed()
                if left <= 0 and not self._again:
                    self._least = 0
                    return False
                left = max(1, left)
            if self.level > 4 and not self._fits(at, left):
                return False
            # At level 5 it is said again with each repetition, until the answer has come.
            if left and (self.level < 5 or self._ring[at] == _PUBLISH):
                del self._ages[packet_id]
            return True

        def _passed(self):
            # -> milliseconds since _seen, a day for all that is more than half of a period.
            passed = ticks_diff(ticks_ms(), self._seen)
            return _DAY_MS if passed < 0 else passed

        def _expire(self):
            # Give up what waits and is too old -> was there any?
            return not self._age_in() and self._is_busy < 2 and self._give_up_old()

        def _give_up_old(self):
            passed = self._passed()
            self._seen = ticks_ms()
            ages = self._ages
            self._least = 0
            least = _DAY_MS
            for k in ages:
                ages[k] = left = max(0, ages[k] - passed)
                if left:
                    least = min(least, left)
            k = self.stats.dropped
            while True:
                at = self._look_for(_is_old, None)
                if at < 0:
                    self._least = least
                    return self.stats.dropped != k
                self.give_up(at, _TIMEOUT, True)

        def _age_in(self):
            return max(0, self._least - self._passed())

        def next_due_ms(self):
            """As before."""
            return min(super().next_due_ms(), self._age_in())

        def poll(self, timeout_ms=0):
            """As before; returns when a message has become too old, too."""
            handled = super().poll(min(timeout_ms, self._age_in()))
            while self._expire():
                push(self)  # what stood behind it
            return handled

        check_msg = poll

        def _rest(self):
            super()._rest()
            self._expire()

    return MQTTClient


_ONE_TASK = "ordered: publish() from one task at a time"


def _is_any(client, at, topic):
    return True


def _has_topic(client, at, topic):
    ring = client._ring
    at += 9 + (ring[at + 6] >> 7)  # behind one or two bytes of length
    n = ring[at - 2] << 8 | ring[at - 1]
    if n != len(topic):
        return False
    while n and ring[at + n - 1] == topic[n - 1]:  # find() takes no memoryview
        n -= 1
    return not n


def _is_old(client, at, topic):
    return not client._ages.get(id_of(client, at), 1)


MQTTClient = extend(_Client)
