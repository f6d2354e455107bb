"""MQTTClient: publish, subscribe, poll; ties session, store and connection together.

Nothing here waits without a deadline, and nothing allocates between two
connections but what its docstring says.  MQTT 3.1 §3.3 to §3.11, §4.
"""

import time

from micropython import const

from . import packet
from .connection import as_bytes, check_range, since
from .errors import AWAITING_REL, BUSY, CLOSED, FULL, PROTOCOL, TIMEOUT, TOO_LARGE, MQTTError
from .message import Message
from .ram import RamStore
from .session import Session
from .subscriber import Subscriber
from .topic import check

_ACK_BYTES = const(32)
_LONGEST_SLEEP_MS = const(86400000)
_MOST_PACKETS = const(64)

# What a broker may send, by packet type: 0 nothing of it, 1 any length, else the
# length of its body plus 2.
#             -  CON ACK PUB  A   REC REL COM SUB ACK UNS ACK PING RSP DIS -
_LENGTHS = b"\x00\x00\x00\x01\x04\x04\x04\x04\x00\x01\x00\x04\x00\x02\x00\x00"
_ANY = const(1)


class MQTTClient(Subscriber):
    """An MQTT 3.1 client in fixed memory; `docs/design.md` says how it works.

    `client_id`: 1 to 23 characters.  `port` 0: 1883, or 8883 with `ssl`, an
    ssl.SSLContext.  `keepalive`, `retry_interval` (0: only on reconnect),
    `await_rel_timeout` and `connect_timeout` in seconds.  `buffer_size`: largest
    packet in bytes, both ways.  `store`: RamStore (default) or Journal.
    `overflow`: "refuse", "drop_oldest" or "latest".  `ordered`: one message at a
    time, all of one QoS above 0, none ever given up.  Raises ValueError.
    """

    on_message = None  # handler(message), allocation-free
    on_drop = None  # handler(message, reason): FULL, TIMEOUT (age) or CLOSED (clean session)
    on_oversize = None  # handler(topic_len, payload_len)

    def __init__(
        self,
        client_id,
        server,
        port=0,
        user=None,
        password=None,
        keepalive=60,
        ssl=None,
        *,
        level=3,
        buffer_size=256,
        store=None,
        max_inflight=4,
        max_mqueue_len=16,
        mqueue_store_qos0=False,
        overflow="refuse",
        max_awaiting_rel=4,
        await_rel_timeout=300,
        retry_interval=30,
        max_subscriptions=8,
        ordered=False,
        connect_timeout=10,
    ):
        super().__init__(
            client_id, server, port, user, password, keepalive, ssl, level, buffer_size
        )
        self._granted = bytearray(max_subscriptions)
        check_range("max_inflight", max_inflight, 1, 65535)
        check_range("max_mqueue_len", max_mqueue_len, 0, 65535 - max_inflight)
        check_range("max_awaiting_rel", max_awaiting_rel, 1, 65535)
        check_range("retry_interval", retry_interval, 0, 3600)
        check_range("await_rel_timeout", await_rel_timeout, 1, 86400)
        check_range("connect_timeout", connect_timeout, 1, 3600)
        if overflow not in ("refuse", "drop_oldest", "latest"):
            raise ValueError('overflow must be "refuse", "drop_oldest" or "latest"')
        if ordered:
            # SIB-NOEXC: nothing is ever skipped.  MQTT-4.6-RM1: one at a time.
            if overflow != "refuse":
                raise ValueError('ordered needs overflow="refuse"')
            max_inflight = 1
        self._store_qos0 = mqueue_store_qos0
        self._overflow = overflow
        self._await_rel_ms = await_rel_timeout * 1000
        self._retry_ms = retry_interval * 1000
        self._timeout_ms = connect_timeout * 1000
        self._ordered = ordered
        self._is_publishing = False
        self._checked = None  # the topic that was found valid last
        self._was_connected = False
        self._acks = bytearray(_ACK_BYTES)
        self._acks_end = 0
        self._message = Message(self._link.rx)
        store = store or RamStore()
        store.open(self._id, max_inflight + max_mqueue_len, buffer_size, max_awaiting_rel)
        self._session = Session(
            store, max_inflight, max_mqueue_len, max_awaiting_rel, level, time.ticks_ms()
        )
        store.recover(self._session)
        self.stats = self._session.stats

    @property
    def inflight(self):
        """Messages sent and not yet acknowledged."""
        return self._session.inflight

    @property
    def queued(self):
        """Messages accepted that wait for the window or a connection."""
        return self._session.count - self._session.inflight

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message, as umqtt.simple."""
        self.on_message = lambda message: f(message.topic, message.payload)

    # --- what a connection needs of its client ---------------------------------------

    def _start_over(self):
        # 31-3.1-CLEAN: the session ends on this side too.
        k = self._session.oldest_before()
        while k >= 0:
            self._give_up(k, CLOSED)
            k = self._session.oldest_before()

    def _start(self):
        session = self._session
        self._acks_end = 0
        if self._clean:
            session.forget_held()
        session.held.is_starved = False
        session.store.online()
        session.rewind(0)  # 31-4.2-RECONNECT
        self._resubscribe()
        self.stats.reconnects += self._was_connected
        self._was_connected = True
        self._send_due(time.ticks_ms())

    def _end(self):
        self._session.store.sync()

    # --- publishing ----------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, *, max_age=0):
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window, QoS 0 only with
        `mqueue_store_qos0`.  `max_age`: seconds after which the message is given up
        if it still waits in the queue, 0 for never (counted anew after a reset).
        Raises ValueError, TypeError; MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0
        offline).  Nothing changes then.
        """
        if not self._ordered:
            return self._publish(topic, msg, retain, qos, max_age)
        # SIB-SINGLE: a second task inside publish() would make the order a guess.
        if self._is_publishing:
            raise MQTTError(BUSY, "ordered: publish() from one task at a time")
        self._is_publishing = True
        try:
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            if not qos or max_age or self._session.newest_qos(qos) != qos:
                raise ValueError("ordered: one QoS, 1 or 2, for all, and no max_age")
            return self._publish(topic, msg, retain, qos, 0)
        finally:
            self._is_publishing = False

    def _publish(self, topic, msg, retain, qos, max_age):
        session = self._session
        link = self._link
        topic = as_bytes(topic)
        msg = as_bytes(msg)
        if topic is not self._checked:
            check(topic)  # 31-3.3-WILD
            self._checked = topic if type(topic) is bytes else None
        check_range("qos", qos, 0, 2)  # 31-2.1-QOS3
        check_range("max_age", max_age, 0, 86400)
        is_online = self.is_connected
        packet_id = session.next_id() if qos else 0
        flags = qos << 1 | bool(retain)
        n = packet.write_publish(link.tx, link.size, flags, topic, msg, packet_id)
        if not n:
            raise MQTTError(TOO_LARGE)
        is_free = is_online and link.flush()
        if not qos:
            if is_free:
                self.stats.sent += 1
                self._write(n, time.ticks_ms())
                return 0
            if not self._store_qos0:
                raise MQTTError(FULL if is_online else CLOSED)
        if not session.has_room(is_online):
            self._make_room(topic)
            packet.write_publish(link.tx, link.size, flags, topic, msg, packet_id)
        is_next = is_free and session.can_send_new()
        if not session.add(link.tx, n, packet_id, qos, is_online):
            raise MQTTError(FULL)
        now = time.ticks_ms()
        if is_next and not session.store.is_deferred:
            session.admit(now)
            try:
                self._write(n, now)
            except MQTTError:
                pass  # it is accepted; poll() tells that the connection is lost
        elif max_age:
            session.limit_age(time.ticks_add(now, max_age * 1000))
        return packet_id

    def _make_room(self, topic):
        k = -1
        if self._overflow == "drop_oldest":
            k = self._session.oldest_queued()
        elif self._overflow == "latest":
            k = self._session.find_topic(topic, self._link.tx)
        if k < 0:
            raise MQTTError(FULL)
        self._give_up(k, FULL)

    def _give_up(self, k, reason):
        # Uses the transmit buffer.
        if self.on_drop:
            buf = self._link.tx
            message = self._message
            message.read_packet(buf, self._session.get(k, buf))
            self.on_drop(message, reason)
        self._session.drop(k)

    # --- the work --------------------------------------------------------------------

    def poll(self, timeout_ms=0):
        """Do all that is due: receive, deliver, acknowledge, send, ping.

        Waits up to `timeout_ms` for a packet -> packets handled.  Raises what a
        handler raises (its message stays unacknowledged), and MQTTError when the
        connection is lost or closed: then call `reconnect()`.
        """
        self._check_free()
        start = time.ticks_ms()
        while True:
            if not self.is_connected:
                raise MQTTError(CLOSED)
            self._is_busy = True
            try:
                handled = self._work()
            finally:
                self._is_busy = False
            if handled or since(start) >= timeout_ms:
                return handled
            time.sleep_ms(1)

    def flush(self, timeout_ms):
        """Poll until nothing is in flight or queued -> is it safe to switch off?"""
        start = time.ticks_ms()
        while self._session.count:
            left_ms = timeout_ms - since(start)
            if left_ms <= 0 or not self.is_connected:
                return False
            self.poll(min(left_ms, 50))
        self._session.store.sync()
        return True

    def next_due_ms(self):
        """How long the program may sleep before poll() or reconnect() has work.

        What arrives meanwhile waits.  At most a day.
        """
        now = time.ticks_ms()
        session = self._session
        if not self.is_connected:
            if self._has_pause and not self._link.is_attached():
                return max(0, time.ticks_diff(self._attempt_at, now))
            return 0
        if self._link.is_stalled() or session.has_work():
            return 0
        due = session.expires_in(now, _LONGEST_SLEEP_MS)
        due = min(due, session.held.expire(now, self._await_rel_ms))
        if self._retry_ms:
            if session.is_waiting():
                due = min(due, session.retry_in(now, self._retry_ms))
            if session.control_id:
                due = min(due, self._control_in(now))
        if self._keepalive:
            due = min(due, self._ping_in(now))
        return max(0, due)

    def check_msg(self):
        """`poll()` by its name in umqtt.simple; never waits."""
        return self.poll()

    def wait_msg(self):
        """Wait for a packet, `connect_timeout` at most."""
        return self.poll(self._timeout_ms)

    def _work(self):
        link = self._link
        now = time.ticks_ms()
        if link.is_stalled():
            if not link.flush():
                if since(self._tx_at) >= self._timeout_ms:
                    link.fail(TIMEOUT)
                return 0
            self._session.touch(now)  # 31-4.2-RETRY: timed from when it was out
        handled = 0
        try:
            # Bounded, so that a flood cannot keep the program from its own work.
            while handled < _MOST_PACKETS and link.is_attached() and not link.is_stalled():
                first = link.receive()
                if not first:
                    break
                handled += 1
                self._handle(first, now)
                if self._acks_end == _ACK_BYTES:
                    self._send_acks()
        finally:
            if link.is_attached():
                self._send_acks()
        if handled:
            self._rx_at = now
            self._tries = 0
        if link.is_attached():
            held = self._session.held
            if held.is_starved and not held.count:
                link.fail(AWAITING_REL)
            if not link.is_stalled():
                self._send_due(now)
        return handled

    def _handle(self, first, now):
        link = self._link
        kind = first >> 4
        length = _LENGTHS[kind]
        if length > _ANY and link.length != length - _ANY - 1 or not length:
            link.fail(PROTOCOL)
        if kind == 3:
            self._on_publish(first, now)
        elif kind == 13:
            self._is_pinging = False
        else:
            packet_id = packet.read_id(link.rx)
            if kind == 6:
                self._session.held.release(packet_id)
                self._ack(packet.PUBCOMP, packet_id)
            elif kind & 9 == 9:
                self._on_control(first, packet_id)
            elif not self._session.on_ack(kind, packet_id) and kind == 5:
                self._ack(packet.PUBREL, packet_id)

    def _on_publish(self, first, now):
        link = self._link
        session = self._session
        message = self._message
        if link.is_oversize:
            packet_id = link.packet_id
            is_valid = (packet_id or not first & 6) and first & 6 != 6
        else:
            is_valid = message.read(first, link.length)
            packet_id = message.packet_id
        if not is_valid:
            link.fail(PROTOCOL)
        if first & 4:
            if session.held.has(packet_id):  # MQTT-4.3.3-10
                self.stats.duplicates += 1
                self._ack(packet.PUBREC, packet_id)
                return
            if not session.held.has_room():
                # RT-AWAITREL: not taken, so the broker has to send it again.
                self.stats.refused += 1
                return
        if link.is_oversize:
            self.stats.oversize += 1
            if self.on_oversize:
                self.on_oversize(link.topic_len, link.payload_len)
        else:
            self.stats.received += 1
            if self.on_message:
                self.on_message(message)
        # MQTT-4.3.2-4, MQTT-4.3.3-8: only now is it ours.
        if first & 4:
            session.held.add(packet_id, now)
            self._ack(packet.PUBREC, packet_id)
        elif first & 2:
            self._ack(packet.PUBACK, packet_id)

    def _ack(self, first, packet_id):
        # MQTT-4.6.0-2, -3: answers leave in the order in which they were caused.
        self._acks_end = packet.write_ack(self._acks, self._acks_end, first, packet_id)

    def _send_acks(self):
        n = self._acks_end
        if n:
            self._session.store.commit()
            self._acks_end = 0
            self._tx_at = time.ticks_ms()
            self._link.write(self._acks, n)

    def _send_due(self, now):
        session = self._session
        link = self._link
        k = session.expired(now)
        while k >= 0:
            self._give_up(k, TIMEOUT)
            k = session.expired(now)
        session.held.expire(now, self._await_rel_ms)
        self._send_control(now)
        if self._retry_ms and session.is_waiting():
            if session.retry_in(now, self._retry_ms) <= 0:
                session.rewind(1)
        if session.has_work():
            session.store.commit()
            while not link.is_stalled():
                n = session.next(link.tx, now)
                if not n:
                    break
                self._write(n, now)
        self._keep_alive(now)
