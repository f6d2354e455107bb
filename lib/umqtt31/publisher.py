"""Publisher: how a client takes messages in.

`publish()` never waits: it encodes the packet once, has the session keep it and
writes it if nothing precedes it.  What happens when there is no room is a policy.
MQTT 3.1 §3.3, §4.3.
"""

import time

from micropython import const

from . import packet
from .connection import as_bytes
from .errors import BUSY, CLOSED, FULL, TOO_LARGE, MQTTError
from .subscriber import Subscriber
from .topic import check

_ONLINE = const(3)

# A builtin is found only behind a miss in the module and a linear search.
_type = type
_str = str


class Publisher(Subscriber):
    """The part of a client that publishes; the settings are the client's."""

    on_drop = None  # handler(packet_id, reason): FULL, TIMEOUT (max_age) or CLOSED (clean session)

    def publish(self, topic, msg, retain=False, qos=0, *, max_age=0):
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window, QoS 0 only with
        `mqueue_store_qos0`.  `max_age`: seconds after which the message is given up
        if it still waits in the queue, 0 for never (never after a reset).
        Raises ValueError, TypeError; MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0
        offline).  Nothing changes then.
        """
        if self._ordered and max_age is not None:
            return self._publish_ordered(topic, msg, retain, qos, max_age)
        session = self._session
        link = self._link
        if topic is not self._checked:
            topic = self._checked_topic(topic)
        if _type(msg) is _str:
            msg = msg.encode()
        if not 0 <= qos <= 2 or max_age and not 0 < max_age <= 86400:  # 31-2.1-QOS3
            raise ValueError("qos must be 0 to 2, max_age 0 to 86400")
        is_online = link.state == _ONLINE
        is_free = is_online and (link.pending is None or link.flush())
        packet_id = 0
        if qos:
            packet_id = session.last_id + 1
            if session.free_ids <= 0 or packet_id > 65535:
                packet_id = session.next_id()
        flags = qos << 1 | 1 if retain else qos << 1
        n = packet.write_publish(link.tx, link.size, flags, topic, msg, packet_id)
        if not n:
            raise MQTTError(TOO_LARGE)
        now = time.ticks_ms()
        if not qos:
            # 31-4.3-WINDOW: not past one that waits.
            if is_free and not (self._store_qos0 and session.inflight < session.count):
                session.stats.sent += 1
                self._tx_at = now
                link.write(link.tx, n)
                return 0
            if not self._store_qos0:
                raise MQTTError(FULL if is_online else CLOSED)
        is_next = session.cursor == session.count < session.window and not session.owed
        if not (is_online and is_next) and not session.has_room(is_online):
            self._make_room(topic)
            packet.write_publish(link.tx, link.size, flags, topic, msg, packet_id)
        expiry = time.ticks_add(now, max_age * 1000) if max_age else None
        is_next = is_next and is_free and not session.store.is_deferred
        if not session.add(link.tx, n, packet_id, qos, is_online, expiry, now, is_next):
            raise MQTTError(FULL)
        if is_next:
            self._tx_at = now
            try:
                link.write(link.tx, n)
            except MQTTError:
                pass  # it is accepted; poll() tells that the connection is lost
        return packet_id

    def _publish_ordered(self, topic, msg, retain, qos, max_age):
        # SIB-SINGLE: a second task inside publish() would make the order a guess.
        if self._is_publishing:
            raise MQTTError(BUSY, "ordered: publish() from one task at a time")
        self._is_publishing = True
        try:
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            other = self._session.newest_qos()
            if not qos or max_age or other is not None and other != qos:
                raise ValueError("ordered: one QoS, 1 or 2, for all, and no max_age")
            return self.publish(topic, msg, retain, qos, max_age=None)
        finally:
            self._is_publishing = False

    def _checked_topic(self, topic):
        name = as_bytes(topic)
        check(name)  # 31-3.3-WILD
        # What cannot change need not be checked again.
        self._checked = topic if type(topic) is bytes else None
        return name

    def _make_room(self, topic):
        k = -1
        session = self._session
        if self._overflow == "latest":
            k = session.find_topic(topic, self._link.tx)
        elif self._overflow == "drop_oldest" and session.inflight < session.count:
            k = session.inflight  # what is in flight is never given up
        if k < 0:
            raise MQTTError(FULL)
        self._give_up(k, FULL)

    def _give_up(self, k, reason):
        self.stats.dropped += 1
        packet_id = self._session.remove(k)
        if self.on_drop:
            self.on_drop(packet_id, reason)
