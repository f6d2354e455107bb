"""PubSub: what a program asks of the broker: publish, subscribe, unsubscribe.

`publish()` never waits: it encodes the packet once, has the session keep it and
writes it if nothing precedes it.  The filters are remembered, since at level 3 a
broker cannot say that it kept the session.  One SUBSCRIBE or UNSUBSCRIBE at a time
waits for its answer.  MQTT 3.1 §3.3, §3.8 to §3.11, §4.3.
"""

import time

from micropython import const

from .connection import Connection, as_bytes, check_range, since
from .errors import MQTTError
from .packet import write_publish, write_strings
from .topic import check

_ONLINE = const(3)
_PACKET_PUBLISH = const(0x30)
_PACKET_SUBSCRIBE = const(0x82)
_PACKET_UNSUBSCRIBE = const(0xA2)
_DUP = const(0x08)
_TIMEOUT = const(257)
_CLOSED = const(258)
_PROTOCOL = const(259)
_TOO_LARGE = const(260)
_FULL = const(261)
_BUSY = const(263)
_MAX_TRIES = const(6)
_WAS_SENT = const(0x08)


# A builtin is found only behind a miss in the module and a linear search.
_str = str
_len = len


def _refuse(*args):
    raise MQTTError(_BUSY)


class PubSub(Connection):
    """The part of a client that publishes and subscribes; the settings are the client's.

    A request is (first byte, filters, their QoS); `_granted` has one byte for each
    filter there may be.
    """

    _filters = ()  # one request for each
    on_drop = None  # handler(packet_id, reason): FULL, TIMEOUT (max_age) or CLOSED (clean session)

    def __init__(self, *args):
        self._publish_by = None  # publish() by other rules than its own
        self._control = None  # the request that waits
        self._control_tries = self._control_at = 0
        self._control_head = bytearray(2)  # its packet id
        self._resubscribed = 0  # filters sent on this connection
        super().__init__(*args)

    def __getattr__(self, name):
        """`is_connected`: is there a connection that the broker accepted?
        `inflight`: messages sent and not yet acknowledged.  `queued`: messages
        accepted that wait for the window or a connection.  `stats`: counters, see
        `session.Stats`."""
        # Not properties: they make MicroPython search all classes at every store
        # to an attribute, which then takes seven times as long.
        if name == "is_connected":
            return self._link.state == _ONLINE
        if name == "inflight":
            return self._session.count - self._session.queued
        if name == "queued":
            return self._session.queued
        if name == "stats":
            return self._session.stats
        raise AttributeError(name)

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message, as umqtt.simple."""
        self.on_message = lambda message: f(message.topic, message.payload)

    def publish(self, topic, msg, retain=False, qos=0, max_age=0):
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window, QoS 0 only with
        `mqueue_store_qos0`.  `max_age`: seconds after which the message is given up
        if it still waits in the queue, 0 for never (never after a reset).
        Raises ValueError, TypeError; MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0
        offline).  Nothing changes then.
        """
        if self._publish_by and max_age is not None:
            return self._publish_by(self, topic, msg, retain, qos, max_age)
        session = self._session
        link = self._link
        if topic is not self._checked:
            name = as_bytes(topic)
            check(name)  # 31-3.3-WILD
            # What cannot change need not be checked again.
            self._checked = topic if topic.__class__ is bytes else self
            self._topic_len = _len(name)
            topic = name
        if msg.__class__ is _str:
            msg = msg.encode()
        if qos and qos != 1 and qos != 2 or max_age and not 0 < max_age <= 86400:  # 31-2.1-QOS3
            raise ValueError("qos must be 0 to 2, max_age 0 to 86400")
        first = _PACKET_PUBLISH | qos << 1
        if retain:
            first |= 1
        topic_len = self._topic_len
        end = topic_len + 4
        n = end + _len(msg)
        # Does nothing precede it?  Then it goes out at once, and needs no slot or this one.
        slot = -1
        tx = None
        packet_id = 0
        is_free = link.state == _ONLINE and (link.pending is None or link.flush())
        if qos:
            n += 2
            packet_id = session.last_id + 1
            if packet_id >= session.id_end:
                packet_id = session.next_id()
            count = session.count
            if is_free and not (session.queued or session.is_due) and count < session.direct:
                slot = session.order[count]
                if session.buffers:
                    tx = session.buffers[slot]  # It is written where it is kept.
        elif is_free and not (self.mqueue_store_qos0 and session.queued):  # 31-4.3-WINDOW
            slot = 0
        buf = tx or link.tx
        if n <= link.short:
            # As write_publish(), without a call: the usual case.
            buf[0] = first
            buf[1] = n - 2
            buf[2] = 0
            buf[3] = topic_len
            buf[4:end] = topic
            if qos:
                buf[end] = packet_id >> 8
                buf[end + 1] = packet_id & 255
                end += 2
            buf[end:n] = msg
        else:
            n = write_publish(buf, link.size, first & 15, topic, msg, packet_id)
            if not n:
                raise MQTTError(_TOO_LARGE)
        if slot < 0:
            return self._enqueue(topic, msg, first & 15, packet_id, n, max_age)
        now = time.ticks_ms()
        if qos:
            # As add() and next() of the session in one.
            if tx:
                session.used[slot] = n
            elif not session.store.put(slot, packet_id, qos, buf, n, True):
                raise MQTTError(_FULL)
            session.last_id = session.ids[slot] = packet_id
            session.state[slot] = qos | _WAS_SENT
            session.when[slot] = now
            session.count = count + 1
        session.stats.sent += 1
        self._tx_at = now
        try:
            done = link.raw.write(buf, 0, n)
        except Exception as error:
            if not qos:
                link.lose(error)
            # It is accepted; poll() tells that the connection is lost.
            link.close()
            link.error = error
            return packet_id
        if done != n:
            if tx:
                link.tx[:] = tx
            link.keep(link.tx, n, done)
        return packet_id

    def _enqueue(self, topic, msg, flags, packet_id, n, max_age):
        # publish(), when something precedes the packet in `tx`, or there is no link.
        session = self._session
        link = self._link
        is_online = link.state == _ONLINE
        if not packet_id and not self.mqueue_store_qos0:
            raise MQTTError(_FULL if is_online else _CLOSED)
        # Is there a place in the queue or, on a connection, in the window?
        room = session.queue
        if is_online:
            room = max(room, session.window - session.count + session.queued)
        if session.queued >= room or session.count >= len(session.ids):
            k = self._find_victim(session, topic, link.tx) if self._find_victim else -1
            if k < 0:
                raise MQTTError(_FULL)
            self._give_up(k, _FULL)
            write_publish(link.tx, link.size, flags, topic, msg, packet_id)
        expiry = time.ticks_add(time.ticks_ms(), max_age * 1000) if max_age else None
        if not session.add(link.tx, n, packet_id, flags >> 1, is_online, expiry):
            raise MQTTError(_FULL)
        return packet_id

    def flush(self, timeout_ms):
        """Poll until nothing is in flight or queued -> is it safe to switch off?"""
        start = time.ticks_ms()
        while self._session.count:
            left_ms = timeout_ms - since(start)
            if left_ms <= 0 or self._link.state != _ONLINE:
                return False
            self.poll(min(left_ms, 50))
        self._session.store.sync()
        return True

    def _give_up(self, k, reason):
        self._session.stats.dropped += 1
        packet_id = self._session.remove(k)
        if self.on_drop:
            # Inside, nothing may change the queue that the caller is about to use.
            was_busy = self._is_busy
            publish_by = self._publish_by
            self._is_busy = True
            self._publish_by = _refuse
            try:
                self.on_drop(packet_id, reason)
            finally:
                self._is_busy = was_busy
                self._publish_by = publish_by

    # --- what a connection needs of its client ---------------------------------------

    def _start_over(self):
        # 31-3.1-CLEAN: the session ends on this side too.
        session = self._session
        if session.count:
            from .giveup import find_old

            while find_old(session) >= 0:
                self._give_up(find_old(session), _CLOSED)
        session.clear_held()
        if not session.count:
            session.store.clear()

    def _start(self):
        session = self._session
        self._acks_end = 0
        if self._clean:
            session.clear_held()
        session.is_starved = False
        session.store.online()
        session.rewind(0)  # 31-4.2-RECONNECT
        # All filters are to be sent again.
        self._control = None
        session.control_id = self._resubscribed = self._attempts = 0
        if self._wake_at is not None:
            session.stats.reconnects += 1
        self._check_timers(self._tx_at)
        if self._link.pending is None:
            self._send_due(self._tx_at)

    # --- subscriptions --------------------------------------------------------------

    def subscribe(self, topic, qos=0):
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Waits for the broker's answer, `connect_timeout` at most.  The filters are
        remembered and sent again on every connection.  Raises ValueError,
        MQTTError: CLOSED, FULL (`max_subscriptions`), TOO_LARGE, TIMEOUT.
        """
        return self._request(
            _PACKET_SUBSCRIBE, topic if isinstance(topic, (list, tuple)) else ((topic, qos),)
        )

    def unsubscribe(self, topic):
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
        self._request(_PACKET_UNSUBSCRIBE, topic if isinstance(topic, (list, tuple)) else (topic,))

    def _request(self, first, topic):
        if self._is_busy:
            raise MQTTError(_BUSY)
        names = []
        levels = bytearray()
        for name in topic:
            qos = 0
            if first == _PACKET_SUBSCRIBE:
                name, qos = name
            check_range("qos", qos, 0, 2)
            name = bytes(as_bytes(name))
            check(name, True)
            names.append(name)
            levels.append(qos)
        if not names:
            raise ValueError("no filter given")
        request = first, names, levels if first == _PACKET_SUBSCRIBE else b""
        if not self._write_request(request):
            raise MQTTError(_TOO_LARGE)
        self._await_control()
        kept = []
        for one in self._filters:
            if one[1][0] not in names:
                kept.append(one)
        if first == _PACKET_SUBSCRIBE:
            if len(kept) + len(names) > len(self._granted):
                raise MQTTError(_FULL, "too many filters: raise max_subscriptions")
            for k in range(len(names)):
                kept.append((first, names[k : k + 1], levels[k : k + 1]))
        self._filters = kept
        self._resubscribed = len(kept)
        self._control = request
        self._wake_at = time.ticks_ms()
        self._await_control()
        return list(self._granted[: len(names)])

    def _write_request(self, request):
        link = self._link
        return write_strings(
            link.tx, link.size, request[0], self._control_head, request[1], request[2]
        )

    def _await_control(self):
        # Poll until no SUBSCRIBE or UNSUBSCRIBE waits any more.
        start = time.ticks_ms()
        while (
            self._link.state != _ONLINE or self._control or self._resubscribed < len(self._filters)
        ):
            if since(start) >= self._timeout_ms:
                self._link.fail(_TIMEOUT)
            self.poll(1)

    def _on_control(self, first, packet_id):
        # SUBACK or UNSUBACK; what answers no request of this connection is stray.
        link = self._link
        control = self._control
        if not control or packet_id != self._session.control_id:
            return
        granted = control[2]
        if (first ^ control[0]) & 0xF0 != 0x10 or link.length - 2 != len(granted):
            link.fail(_PROTOCOL)
        for k in range(len(granted)):
            self._granted[k] = link.rx[k]  # 31-3.9-SUBACK: in order
        self._control = None
        self._session.control_id = 0
        self._wake_at = self._tx_at  # there may be more to send

    def _send_control(self, now):
        session = self._session
        again = session.control_id
        if again:
            if self._control_in(now, 1) > 0:
                return
            self._control_tries = min(self._control_tries + 1, _MAX_TRIES)
        else:
            if not self._control:
                # At level 3 the broker cannot say that it kept them.
                if self._resubscribed == len(self._filters):
                    return
                self._control = self._filters[self._resubscribed]
                self._resubscribed += 1
            session.control_id = session.last_id = packet_id = session.next_id()
            self._control_head[0] = packet_id >> 8
            self._control_head[1] = packet_id & 255
            self._control_tries = 0
        link = self._link
        n = self._write_request(self._control)
        if again:
            link.tx[0] |= _DUP  # 31-2.1-DUP, RT-OBJECTS
        self._control_at = self._tx_at = now
        link.write(link.tx, n)

    def _control_in(self, now, most):
        # Ticks until the request that waits is sent again, `most` at most.
        if not self._session.retry_ms or not self._session.control_id:
            return most
        wait_ms = self._session.retry_ms << self._control_tries
        return min(most, wait_ms - time.ticks_diff(now, self._control_at))
