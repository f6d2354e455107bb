"""MQTTClient: ties session, stream and store together; keep alive, reconnect.

The one module with a clock.  Nothing here waits without a deadline, and nothing
allocates between two connections but what its docstring says.  MQTT 3.1.
"""

import random
import time

from micropython import const

from . import packet
from .errors import (
    AWAITING_REL,
    BUSY,
    CLOSED,
    FULL,
    NETWORK,
    PROTOCOL,
    REFUSED_UNAVAILABLE,
    TIMEOUT,
    TOO_LARGE,
    MQTTError,
)
from .message import Message
from .ram import RamStore
from .session import Session
from .stream import Link, open_socket
from .subscriptions import Subscriptions
from .topic import check

_CLOSED = const(0)
_OPENING = const(1)  # CONNECT is on its way
_WAIT_CONNACK = const(2)
_ONLINE = const(3)

_ACK_BYTES = const(32)
_FIRST_PAUSE_MS = const(1000)
_LAST_PAUSE_MS = const(120000)
_LONGEST_SLEEP_MS = const(86400000)

# What a broker may send, by packet type: 0 nothing of it, 1 any length, else the
# length of its body plus 2.
#             -  CON ACK PUB  A   REC REL COM SUB ACK UNS ACK PING RSP DIS -
_LENGTHS = b"\x00\x00\x00\x01\x04\x04\x04\x04\x00\x01\x00\x04\x00\x02\x00\x00"
_ANY = const(1)
_MOST_PACKETS = const(64)


def _as_bytes(text):
    return text.encode() if isinstance(text, str) else text


def _since(start):
    return time.ticks_diff(time.ticks_ms(), start)


def _check_range(name, value, low, high):
    if not low <= value <= high:
        raise ValueError("%s must be %d to %d, not %r" % (name, low, high, value))


class MQTTClient:
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
    last_error = None  # why the last attempt of reconnect() failed: an MQTTError

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
        client_id = _as_bytes(client_id)
        if level not in packet.PROTOCOLS:
            raise ValueError("level must be 3 (MQTT 3.1), not %r" % level)
        # 31-3.1-CLIENTID: 1 to 23 characters, before a socket is opened.
        _check_range("length of client_id", len(client_id.decode()), 1, 23)
        _check_range("keepalive", keepalive, 0, 65535)
        _check_range("buffer_size", buffer_size, 16, 65535)
        _check_range("max_inflight", max_inflight, 1, 65535)
        _check_range("max_mqueue_len", max_mqueue_len, 0, 65535 - max_inflight)
        _check_range("max_awaiting_rel", max_awaiting_rel, 1, 65535)
        _check_range("retry_interval", retry_interval, 0, 3600)
        _check_range("await_rel_timeout", await_rel_timeout, 1, 86400)
        _check_range("connect_timeout", connect_timeout, 1, 3600)
        if password is not None and user is None:
            raise ValueError("password without user")  # 31-2.2-USER
        if overflow not in ("refuse", "drop_oldest", "latest"):
            raise ValueError('overflow must be "refuse", "drop_oldest" or "latest"')
        if ordered:
            # SIB-NOEXC: nothing is ever skipped.  MQTT-4.6-RM1: one at a time.
            if overflow != "refuse":
                raise ValueError('ordered needs overflow="refuse"')
            max_inflight = 1
        self._client_id = client_id
        self._server = server
        self._port = port or (8883 if ssl else 1883)
        self._user = user
        self._password = password
        self._keepalive = keepalive
        self._ssl = ssl
        self._level = level
        self._size = buffer_size
        self._store_qos0 = mqueue_store_qos0
        self._overflow = overflow
        self._await_rel_ms = await_rel_timeout * 1000
        self._retry_ms = retry_interval * 1000
        self._timeout_ms = connect_timeout * 1000
        self._ordered = ordered
        self._will = None
        self._clean = False
        self._phase = _CLOSED
        self._is_busy = self._is_publishing = False
        self._checked = None  # the topic that was found valid last
        self._tries = 0  # attempts to connect since one succeeded
        self._was_connected = False
        self._has_pause = False
        self._link = Link(buffer_size)
        self._acks = bytearray(_ACK_BYTES)
        self._acks_end = 0
        self._message = Message(self._link.rx)
        store = store or RamStore()
        store.open(client_id, max_inflight + max_mqueue_len, buffer_size, max_awaiting_rel)
        self._session = Session(
            store, max_inflight, max_mqueue_len, max_awaiting_rel, level, time.ticks_ms()
        )
        store.recover(self._session)
        self._subscriptions = Subscriptions(self._session, max_subscriptions)
        self.stats = self._session.stats

    # --- what a program sets and reads -----------------------------------------

    @property
    def is_connected(self):
        """Is there a connection that the broker accepted?"""
        return self._phase == _ONLINE and self._link.is_attached()

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

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost (§3.1 Will)."""
        if not self._keepalive:
            # Without keep alive a broker may never notice, so the will never comes.
            raise ValueError("a will needs keepalive > 0")
        name = _as_bytes(topic)
        msg = _as_bytes(msg)
        check(name)
        _check_range("qos", qos, 0, 2)
        for byte in msg:
            if byte > 127:
                raise ValueError("a will message is 7-bit ASCII")  # 31-3.1-WILL
        self._will = name, msg, 4 | qos << 3 | bool(retain) << 5

    # --- connecting --------------------------------------------------------------

    def connect(self, clean_session=True, stream=None):
        """Connect now -> session present (False at level 3, which cannot tell).

        A clean session gives up what is in flight or was accepted before the last
        reset.  `stream`: any MicroPython stream, instead of a socket.  Allocates.
        Raises MQTTError within `connect_timeout`.
        """
        self._check_free()
        self._link.close()
        if clean_session:  # 31-3.1-CLEAN
            k = self._session.oldest_before()
            while k >= 0:
                self._give_up(k, CLOSED)
                k = self._session.oldest_before()
        self._begin(clean_session, stream)
        while not self._advance():
            time.sleep_ms(1)
        return self._is_present

    def reconnect(self, timeout_ms=0):
        """Connect, or go on connecting, in at most `timeout_ms` -> connected?

        Waits before each attempt a random time of up to 1 s, 2 s, 4 s … 120 s.
        Raises MQTTError only if the broker refuses for good; else `last_error`
        is why it is not connected yet.  Allocates.
        """
        self._check_free()
        start = time.ticks_ms()
        while not self.is_connected:
            pause_ms = 1
            try:
                pause_ms = self._try_connect()
            except MQTTError as error:
                self.last_error = error
                if error.code < NETWORK and error.code != REFUSED_UNAVAILABLE:
                    raise
            left_ms = timeout_ms - _since(start)
            if left_ms <= 0:
                break
            time.sleep_ms(min(max(pause_ms, 1), left_ms))
        return self.is_connected

    def disconnect(self):
        """Say goodbye, so that no will is published, and close (§3.14)."""
        link = self._link
        if self.is_connected:
            try:
                if self._drain():
                    self._send_acks()
                    if self._drain():
                        self._send_two(packet.DISCONNECT)
                        self._drain()
            except MQTTError:
                pass  # it is closed either way
        link.close()
        self._session.store.sync()

    def _drain(self):
        # Wait until what was written is out -> is it?
        start = time.ticks_ms()
        while not self._link.flush():
            if _since(start) >= self._timeout_ms:
                return False
            time.sleep_ms(1)
        return True

    def _try_connect(self):
        # One step of reconnecting -> ticks until the next is due.
        if self._link.is_attached():
            self._advance()
            return 1
        now = time.ticks_ms()
        if not self._has_pause:
            # Full jitter, from the first attempt on: a fleet that lost its broker
            # must not come back in one moment.
            most = min(_FIRST_PAUSE_MS << min(self._tries, 7), _LAST_PAUSE_MS)
            self._attempt_at = time.ticks_add(now, random.getrandbits(24) % (most + 1))
            self._has_pause = True
            self._tries += 1
        wait_ms = time.ticks_diff(self._attempt_at, now)
        if wait_ms > 0:
            return wait_ms
        self._has_pause = False
        self._begin(self._clean, None)
        return 1

    def _begin(self, clean, stream):
        flags = clean << 1
        fields = [self._client_id]
        if self._will:
            fields.extend(self._will[:2])
            flags |= self._will[2]
        for bit, text in ((0x80, self._user), (0x40, self._password)):
            if text is not None:
                flags |= bit
                fields.append(_as_bytes(text))
        link = self._link
        n = packet.write_connect(
            link.tx, self._size, self._level, flags, self._keepalive, fields
        )
        if not n:
            raise MQTTError(TOO_LARGE)
        self._clean = clean
        self._phase = _OPENING
        self._tx_at = time.ticks_ms()
        if stream is None:
            try:
                stream = open_socket(self._server, self._port, self._ssl)
            except OSError as error:
                text = "cannot reach %s port %d: %s" % (self._server, self._port, error)
                raise MQTTError(NETWORK, text)
        link.attach(stream)
        link.write(link.tx, n)

    def _advance(self):
        # Go on with an open connection -> did the broker accept it?
        link = self._link
        if self._phase == _OPENING and link.flush():
            self._phase = _WAIT_CONNACK
        if self._phase == _WAIT_CONNACK:
            first = link.receive()
            if first:
                if first >> 4 != 2 or link.length != 2:
                    link.fail(PROTOCOL)  # 31-3.2-CONNACK
                if link.rx[1]:
                    link.fail(link.rx[1])  # 31-2.2-RC
                self._start()
                return True
        if _since(self._tx_at) >= self._timeout_ms:
            link.fail(TIMEOUT)  # 31-3.1-CONNACK
        return False

    def _start(self):
        session = self._session
        now = time.ticks_ms()
        self._is_present = self._level > 3 and bool(self._link.rx[0] & 1)
        self._phase = _ONLINE
        self._tx_at = self._rx_at = now
        self._is_pinging = False
        self._acks_end = 0
        if self._clean:
            session.forget_held()
        session.is_starved = False
        session.store.online()
        session.rewind(0)  # 31-4.2-RECONNECT
        self._subscriptions.restart()
        self.stats.reconnects += self._was_connected
        self._was_connected = True
        self._send_due(now)

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
        topic = _as_bytes(topic)
        msg = _as_bytes(msg)
        if topic is not self._checked:
            check(topic)  # 31-3.3-WILD
            self._checked = topic if type(topic) is bytes else None
        _check_range("qos", qos, 0, 2)  # 31-2.1-QOS3
        _check_range("max_age", max_age, 0, 86400)
        is_online = self.is_connected
        packet_id = session.next_id() if qos else 0
        flags = qos << 1 | bool(retain)
        n = packet.write_publish(link.tx, self._size, flags, topic, msg, packet_id)
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
            packet.write_publish(link.tx, self._size, flags, topic, msg, packet_id)
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

    # --- subscribing ---------------------------------------------------------------

    def subscribe(self, topic, qos=0):
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Waits for the broker's answer, `connect_timeout` at most.  The filters are
        remembered and sent again on every connection.  Raises ValueError,
        MQTTError: CLOSED, FULL (`max_subscriptions`), TOO_LARGE, TIMEOUT.
        """
        entries = []
        for name, qos in topic if isinstance(topic, (list, tuple)) else ((topic, qos),):
            _check_range("qos", qos, 0, 2)
            entries.append(self._entry(name, qos))
        self._await_control()
        self._check_fits(packet.SUBSCRIBE, entries)
        if not self._subscriptions.add(entries):
            raise MQTTError(FULL, "too many filters: raise max_subscriptions")
        self._await_control()
        return [entry[2] for entry in entries]

    def unsubscribe(self, topic):
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
        names = topic if isinstance(topic, (list, tuple)) else (topic,)
        entries = [self._entry(name, 0) for name in names]
        self._await_control()
        self._check_fits(packet.UNSUBSCRIBE, entries)
        self._subscriptions.remove(entries)
        self._await_control()

    def _entry(self, name, qos):
        name = bytes(_as_bytes(name))
        check(name, True)
        return [name, qos, None]

    def _check_fits(self, first, entries):
        if not entries:
            raise ValueError("no filter given")
        if not packet.write_filters(
            bytearray(self._size + packet.SLACK), self._size, first, 0, entries, 0, len(entries)
        ):
            raise MQTTError(TOO_LARGE)

    def _await_control(self):
        # Poll until no SUBSCRIBE or UNSUBSCRIBE waits any more.
        start = time.ticks_ms()
        while not self._subscriptions.is_idle() or not self.is_connected:
            if _since(start) >= self._timeout_ms:
                self._link.fail(TIMEOUT)
            self.poll(1)

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
            if handled or _since(start) >= timeout_ms:
                return handled
            time.sleep_ms(1)

    def flush(self, timeout_ms):
        """Poll until nothing is in flight or queued -> is it safe to switch off?"""
        start = time.ticks_ms()
        while self._session.count:
            left_ms = timeout_ms - _since(start)
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
        due = min(due, session.release_old(now, self._await_rel_ms))
        if self._retry_ms:
            if session.is_waiting():
                due = min(due, session.retry_in(now, self._retry_ms))
            if self._subscriptions.is_waiting():
                due = min(due, self._subscriptions.retry_in(now, self._retry_ms))
        if self._keepalive:
            due = min(due, self._ping_in(now))
        return max(0, due)

    def check_msg(self):
        """`poll()` by its name in umqtt.simple; never waits."""
        return self.poll()

    def wait_msg(self):
        """Wait for a packet, `connect_timeout` at most."""
        return self.poll(self._timeout_ms)

    def ping(self):
        """Send PINGREQ now; poll() raises if no answer comes in time."""
        if not self.is_connected:
            raise MQTTError(CLOSED)
        if self._drain():
            self._ping(time.ticks_ms())

    def _check_free(self):
        if self._is_busy:
            raise MQTTError(BUSY)

    def _work(self):
        link = self._link
        now = time.ticks_ms()
        if link.is_stalled():
            if not link.flush():
                if _since(self._tx_at) >= self._timeout_ms:
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
            if self._session.is_starved and not self._session.held_count:
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
                self._session.release(packet_id)
                self._ack(packet.PUBCOMP, packet_id)
            elif kind == 9:
                if not self._subscriptions.on_suback(packet_id, link.rx, link.length):
                    link.fail(PROTOCOL)
            elif kind == 11:
                self._subscriptions.on_unsuback(packet_id)
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
            if session.is_held(packet_id):  # MQTT-4.3.3-10
                self.stats.duplicates += 1
                self._ack(packet.PUBREC, packet_id)
                return
            if not session.can_hold():
                # RT-AWAITREL: not taken, so the broker has to send it again.
                self.stats.refused += 1
                session.is_starved = True
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
            session.hold(packet_id, now)
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
        session.release_old(now, self._await_rel_ms)
        n = self._subscriptions.next(link.tx, self._size, now, self._retry_ms)
        if n:
            self._write(n, now)
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
        if self._keepalive and not link.is_stalled() and self._ping_in(now) <= 0:
            if self._is_pinging:
                link.fail(TIMEOUT, "no PINGRESP: connection lost, reconnect()")
            self._ping(now)

    def _ping_in(self, now):
        # Ticks until PINGREQ is due or, after one, its answer is overdue.
        if self._is_pinging:
            return self._keepalive * 1000 - time.ticks_diff(now, self._ping_at)
        # Silence counts in both directions: a link that only sends may be dead.
        silence = max(time.ticks_diff(now, self._tx_at), time.ticks_diff(now, self._rx_at))
        return self._keepalive * 750 - silence

    def _ping(self, now):
        self._is_pinging = True
        self._ping_at = now
        self.stats.pings += 1
        self._send_two(packet.PINGREQ)

    def _send_two(self, first):
        buf = self._link.tx
        buf[0] = first
        buf[1] = 0
        self._write(2, time.ticks_ms())

    def _write(self, n, now):
        self._tx_at = now
        self._link.write(self._link.tx, n)
