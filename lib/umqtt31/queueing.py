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
# Ages are kept in RAM, so that a reset forgets them: _left has for each packet id (QoS 0 has one
# inside the ring) the milliseconds that were left at _seen, 0 if none.  What is too old is not
# sent, and given up by the next poll() or reconnect(), not in the middle of a write, since
# on_drop may call anything.  Ticks that went backwards say that more than half of their period is
# over, and no message may be so old.  Only a whole period without a call (12 days on boards) would
# be missed; next_due_ms() is a day at most.

from micropython import const, heap_lock  # isort: skip

from time import ticks_diff, ticks_ms

from . import MQTTClient as _Client
from . import (
    MQTTError,
    _accept,
    _after,
    _bring,
    _complaint,
    _drop,
    _id_of,
    _next_entry,
    _push,
    check_range,
)

_PUBACK = const(0x40)
_ENTRY = const(5)
_TIMEOUT = const(257)
_FULL = const(261)
_BUSY = const(263)
_DROPPING = const(2)  # busy inside on_drop
_ORDERED = const(3)  # busy inside publish()
_DAY_MS = const(86400000)


def extend(base):
    """-> the class of clients that are as those of `base`, and queue as this page says.

    To MicroPython super() is what stands in the class line, so that a class of two such bases
    would leave one of them out.
    """

    class MQTTClient(base):
        """`overflow`: what publish() does with no room, "refuse", "drop_oldest", or "latest",
        which gives up one that waits with the same topic.  `mqueue_store_qos0`: QoS 0 waits,
        too.  `ordered`: one message at a time, all of one QoS above 0, none is given up."""

        def __init__(
            self, *args, overflow="refuse", mqueue_store_qos0=False, ordered=False, **options
        ):
            if ordered:
                options["max_inflight"] = 1  # MQTT-4.6-RM1
            # SIB-NOEXC: nothing is ever skipped.
            if overflow not in ("refuse", "drop_oldest", "latest")[: 1 if ordered else 3]:
                raise _complaint("overflow", overflow)
            super().__init__(*args, **options)
            self._overflow = overflow
            self._qos = 0  # of all messages, once it is known
            self._is_ordered = ordered
            if ordered and self._store:
                self._commit = self._store.sync  # MQTT-4.6-RM1: what is done stays so, too
            if mqueue_store_qos0:
                self._keep = self._keep_qos0
            # A dictionary keeps the room that it once needed.
            self._left_ms = {k: 0 for k in range(self._window + self._most_queued)}
            while self._left_ms:
                self._left_ms.popitem()
            self._first_ms = _DAY_MS  # the least of these above 0
            self._age = self._seen = 0

        def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=None):
            """As before; a message that still waits after `max_age` seconds, up to a day, is
            given up, 0 for never."""
            was_busy = self._is_busy
            if was_busy > 1:
                raise MQTTError(_BUSY, self._is_ordered and _ONE_TASK)
            if max_age != 0:
                check_range("max_age", max_age, 0, 86400)
                self._expire()
            if self._is_ordered:
                self._check_order(qos, max_age)
                self._is_busy = _ORDERED
            elif self._keep and not qos and (self._left or self._acks_n):
                _push(self, ticks_ms())  # if it fails, this message is kept
            self._age = max_age
            try:
                if properties is not None or self.level > 4:
                    packet_id = super().publish(topic, msg, retain, qos, max_age, properties)
                else:
                    packet_id = super().publish(topic, msg, retain, qos)
            finally:
                self._is_busy = was_busy
            self._qos = qos
            if max_age and self.queued and (qos or self._keep):
                max_age = ticks_diff(ticks_ms(), self._seen) + max_age * 1000
                self._left_ms[packet_id or self._id] = max_age
                self._first_ms = min(self._first_ms, max_age)
            return packet_id

        def _check_order(self, qos, max_age):
            ring = self._ring
            if not self._qos:  # what did an earlier life leave?
                at = self._head
                if at == self._tail or not ring[at]:
                    at = _next_entry(self)
                if at >= 0:
                    self._qos = 1 if ring[at] & 0xF0 == _PUBACK else 2
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            if not qos or max_age != 0 or 0 < self._qos != qos:
                raise _complaint("ordered", None)

        def _keep_qos0(self, at, after):
            # A hook: QoS 0 that cannot go out now stands at `at`.
            if self.queued >= self._most_waiting():
                return -_FULL
            if self._age:
                self._id = packet_id = self._id % 65535 + 1
                self._ring[at + 3] = packet_id >> 8
                self._ring[at + 4] = packet_id & 255
            self._tail = after
            self.queued += 1
            return 0

        # --- no room ------------------------------------------------------------------------

        def _refuse(self, code, topic, msg, retain, qos):
            n = 0  # the room that it takes in the ring
            if not (qos and self._store):
                n = len(topic) + len(msg) + len(self._section) + self.buffer_size + 12
            while (
                code == _FULL
                and (qos or self._keep)
                and (self._expire() or self._make_room(topic, n))
            ):
                heap_lock()
                code = -_accept(self, topic, msg, retain, qos)
            if code > 0:
                super()._refuse(code, topic, msg, retain, qos)
            return -code

        def _most_waiting(self):
            if self.is_connected:
                return max(self._most_queued, self._window - self.inflight)
            return self._most_queued

        def _make_room(self, topic, n):
            # Close holes or give up one message -> may there be room now?
            has_room = n <= self._room_at(self._tail)
            if not has_room:
                if self._left:  # it may be half of an entry that is written
                    return False
                if self._squeeze():
                    return True
            most = self._most_waiting()
            is_latest = self._overflow == "latest"
            if self._overflow == "refuse" or not most or is_latest and self.queued > most:
                return False
            at = self._look_for(_has_topic if is_latest else None, topic)
            if at < 0:
                return False
            # Nothing is given up for a message that is refused all the same.
            if not has_room and n > (
                _after(self, at) - at + self.buffer_size
                if is_latest
                else n if at == self._head else self._room_at(at)
            ):
                return False
            self.give_up(at, _FULL, True)
            return True

        def _room_at(self, at):
            # -> so many bytes find room where the ring is free from `at` on, as in _place().
            _drop(self)
            head = self._head
            return head - 1 - at if at < head else max(self._size - at, head - 1)

        def _squeeze(self):
            # Close the holes between what waits -> were there any?
            ring = self._ring
            at = to = self._next
            tail = self._tail
            wrap = -1
            while at != tail:
                after = _after(self, at)
                if ring[at]:
                    n = (ring[at + 1] << 8 | ring[at + 2]) + _ENTRY
                    if to > at and to + n > self._size:
                        wrap = to
                        to = 0
                    for k in range(n):
                        ring[to + k] = ring[at + k]
                    to += n
                at = after
            if tail < self._next:
                self._wrap = wrap
            self._tail = to
            return to != tail

        def _look_for(self, is_it, topic):
            # -> the oldest entry that waits and is it, or at all; -1 for none.
            ring = self._ring
            in_flight = self._again
            at = self._next
            while True:
                if at == self._tail:
                    if is_it or not self._behind:
                        return -1
                    at = _bring(self)
                    if at < 0:
                        return -1
                if ring[at]:
                    if in_flight:
                        in_flight -= 1
                    elif not is_it or is_it(self, at, topic):
                        return at
                at = _after(self, at)

        def _tell_drop(self, at, packet_id, reason):
            # Nothing else is published or given up meanwhile.
            self._left_ms.pop(packet_id, 0)
            if not self._ring[at + _ENTRY] & 6:
                packet_id = 0
            was_busy = self._is_busy
            self._is_busy = _DROPPING
            try:
                super()._tell_drop(at, packet_id, reason)
            finally:
                self._is_busy = was_busy

        # --- ages ---------------------------------------------------------------------------

        def _may_go(self, at):
            # A hook: is the entry there, whose turn it is, to go out?
            if not self._again:
                left_ms = self._left_ms.get(_id_of(self, at), _DAY_MS)
                if left_ms <= self._passed_ms():
                    self._first_ms = 0
                    return False
                if base._may_go and not base._may_go(self, at):
                    return False
                self._left_ms.pop(_id_of(self, at), 0)
            return True

        def _passed_ms(self):
            passed_ms = ticks_diff(ticks_ms(), self._seen)
            return _DAY_MS if passed_ms < 0 else passed_ms

        def _expire(self):
            # Give up what waits and is too old -> was there any?
            passed_ms = self._passed_ms()
            if passed_ms < self._first_ms or self._is_busy > 1:
                return False
            self._seen = ticks_ms()
            left = self._left_ms
            self._first_ms = 0
            first = _DAY_MS
            for k in left:
                left[k] = left_ms = max(0, left[k] - passed_ms)
                if 0 < left_ms < first:
                    first = left_ms
            is_any = False
            while True:
                k = self._look_for(_is_old, None)
                if k < 0:
                    self._first_ms = first
                    return is_any
                is_any = True
                self.give_up(k, _TIMEOUT, True)

        def _age_in(self):
            return max(0, self._first_ms - self._passed_ms())

        def next_due_ms(self):
            """As before."""
            return min(super().next_due_ms(), self._age_in())

        def poll(self, timeout_ms=0):
            """As before; returns when a message has become too old, too."""
            handled = super().poll(min(timeout_ms, self._age_in()))
            while self._expire():
                _push(self, self._now)  # what stood behind it
            return handled

        check_msg = poll

        def _rest(self):
            super()._rest()
            self._expire()

    return MQTTClient


_ONE_TASK = "ordered: publish() from one task at a time"


def _has_topic(client, at, topic):
    ring = client._ring
    at += _ENTRY + 1
    while ring[at] & 128:
        at += 1
    n = ring[at + 1] << 8 | ring[at + 2]
    return n == len(topic) and ring.find(topic, at + 3, at + 3 + n) == at + 3


def _is_old(client, at, topic):
    return not client._left_ms.get(_id_of(client, at), 1)


MQTTClient = extend(_Client)
