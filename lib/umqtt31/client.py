"""MQTTClient: publish, receive, poll; ties session, store and connection together.

Nothing here waits without a deadline, and nothing allocates between two
connections but what its docstring says.  MQTT 3.1 §3.3 to §3.7, §4.
"""

import time

from micropython import const

# The largest first: from source, compiling them takes most memory at once.
# isort: off
from .session import Session
from .pubsub import PubSub
from .connection import check_range
from .message import Message
from .errors import MQTTError
from .packet import HAS_SLICES, write_ack
from .ram import RamStore
# isort: on

_PACKET_PUBACK = const(0x40)
_PACKET_PUBREC = const(0x50)
_PACKET_PUBREL = const(0x62)
_PACKET_PUBCOMP = const(0x70)

_TIMEOUT = const(257)
_CLOSED = const(258)
_PROTOCOL = const(259)
_BUSY = const(263)
_AWAITING_REL = const(264)

_ONLINE = const(3)
_ACK_BYTES = const(32)
_LONGEST_SLEEP_MS = const(86400000)
_MOST_PACKETS = const(64)
_WAKE_MS = const(500)
_SENT_QOS1 = const(0x09)  # state of a message: sent, awaits PUBACK
_TICKS_SIGN = const(1 << 29)  # of a short difference, whatever the ticks' period

# What a broker may send, by packet type: 0 nothing of it, 1 any length, else the
# length of its body plus 2.
#             -  CON ACK PUB  A   REC REL COM SUB ACK UNS ACK PING RSP DIS -
_LENGTHS = b"\x00\x00\x00\x01\x04\x04\x04\x04\x00\x01\x00\x04\x00\x02\x00\x00"


class MQTTClient(PubSub):
    """An MQTT 3.1 client in fixed memory; `docs/design.md` says how it works.

    `client_id`: 1 to 23 characters.  `port` 0: 1883, or 8883 with `ssl`, an
    ssl.SSLContext.  `keepalive`, `retry_interval` (0: only on reconnect),
    `await_rel_timeout` and `connect_timeout` in seconds.  `buffer_size`: largest
    packet in bytes, both ways.  `store`: RamStore (default) or Journal.
    `overflow`: "refuse", "drop_oldest" or "latest".  `ordered`: one message at a
    time, all of one QoS above 0, none ever given up.  Raises ValueError.
    """

    _find_victim = None
    on_message = None  # handler(message), allocation-free
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
        self._granted = bytearray(max_subscriptions)
        check_range("max_inflight", max_inflight, 1, 65535)
        check_range("max_mqueue_len", max_mqueue_len, 0, 65535 - max_inflight)
        check_range("max_awaiting_rel", max_awaiting_rel, 1, 65535)
        check_range("retry_interval", retry_interval, 0, 3600)
        check_range("await_rel_timeout", await_rel_timeout, 1, 86400)
        check_range("connect_timeout", connect_timeout, 1, 3600)
        if overflow != "refuse":
            from .giveup import POLICIES

            self._find_victim = POLICIES.get(overflow)
            if ordered or not self._find_victim:  # SIB-NOEXC: nothing is ever skipped
                raise ValueError('overflow: "refuse", without ordered "drop_oldest" or "latest"')
        if ordered:
            max_inflight = 1  # MQTT-4.6-RM1: one at a time
        self.mqueue_store_qos0 = mqueue_store_qos0
        self._timeout_ms = connect_timeout * 1000
        self._wake_at = None  # until there was a connection
        self._checked = self  # or the topic that was found valid last
        self._topic_len = 0
        self._acks = bytearray(_ACK_BYTES + 4)
        self._acks_end = 0
        # What takes large blocks of memory early, while there are some.
        memory = store or RamStore()
        self._session = session = Session(
            memory, max_inflight, max_mqueue_len, max_awaiting_rel, level, time.ticks_ms()
        )
        session.retry_ms = retry_interval * 1000
        session.held_ms = await_rel_timeout * 1000
        super().__init__(
            client_id,
            server,
            port,
            user,
            password,
            keepalive,
            ssl,
            level,
            buffer_size,
        )
        self._message = Message(self._link.rx)
        slots = max_inflight + max_mqueue_len
        memory.open(self._identity[1], slots, buffer_size, max_awaiting_rel)
        if HAS_SLICES:  # else encoding needs more room than a slot has
            session.buffers = getattr(memory, "buffers", None)
            session.used = getattr(memory, "used", None)
        if store:
            from .recovery import Recovery

            store.recover(Recovery(session))
        if ordered:
            from .ordered import Ordered

            self._publish_by = Ordered(session).publish

    def poll(self, timeout_ms=0):
        """Do all that is due: receive, deliver, acknowledge, send, ping.

        Waits up to `timeout_ms` for a packet -> packets handled.  Raises what a
        handler raises (its message stays unacknowledged), and MQTTError when the
        connection is lost or closed: then call `reconnect()`.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        link = self._link
        session = self._session
        head = link.head
        order = session.order
        ids = session.ids
        start = None
        while True:
            now = time.ticks_ms()
            if link.state != _ONLINE:
                if link.error:
                    link.lose(link.error)
                raise MQTTError(_CLOSED)
            handled = 0
            if self._acks_end:
                self._send_acks(now)
            raw = link.raw
            # Bounded, so that a flood cannot keep the program from its own work.
            while link.pending is None and handled < _MOST_PACKETS:
                n = 0
                if link.need == 4:  # At the start of a packet, which most often is a PUBACK.
                    while handled < _MOST_PACKETS:
                        try:
                            n = raw.readinto(head, 4)
                        except OSError as error:
                            link.lose(error)
                        if not n or n < 4 or head[0] != _PACKET_PUBACK or head[1] != 2:
                            break
                        handled += 1
                        # As session.on_ack(), in place, for the oldest one.
                        packet_id = head[2] << 8 | head[3]
                        slot = order[0]
                        if (
                            ids[slot] != packet_id
                            or session.state[slot] != _SENT_QOS1
                            or session.again
                            or not packet_id
                        ):
                            session.on_ack(_PACKET_PUBACK, packet_id)
                            continue
                        ids[slot] = 0
                        count = session.count - 1
                        session.count = count
                        if count:  # else the slot stays where it is
                            order.append(order.pop(0))
                            if session.queued:
                                session.is_due = True
                        if not session.buffers:
                            session.store.remove(slot)
                    else:
                        break
                    if not n:
                        if n is not None:
                            link.fail(_CLOSED)
                        break
                first = link.receive(n)
                if not first:
                    break
                handled += 1
                self._handle(first, now)
                if not link.state:
                    return handled  # a handler closed it
            if handled:
                self._rx_at = now
                if self._acks_end:
                    self._send_acks(now)
            if link.pending is not None:
                self._go_on(now)
            elif not (now - self._wake_at) & _TICKS_SIGN:
                self._check_timers(now)
            if session.is_due and link.pending is None:
                self._send_due(now)
            if handled or timeout_ms <= 0:
                return handled
            if start is None:
                start = now
            elif time.ticks_diff(now, start) >= timeout_ms:
                return 0
            time.sleep_ms(1)

    def _go_on(self, now):
        # A packet waits for room in the stream; nothing else is written meanwhile.
        link = self._link
        session = self._session
        done = link.done
        if link.flush():
            if session.count > session.queued + session.again:
                # 31-4.2-RETRY: timed from when it was out
                session.when[session.order[0]] = now
            self._send_acks(now)
        elif link.done != done:
            self._tx_at = now  # slow, but it goes on
        elif time.ticks_diff(now, self._tx_at) >= self._timeout_ms:
            link.fail(_TIMEOUT)

    def next_due_ms(self):
        """How long the program may sleep before poll() or reconnect() has work.

        What arrives meanwhile waits.  At most a day.
        """
        now = time.ticks_ms()
        if self._link.state == _ONLINE:
            if self._link.pending is not None or self._session.is_due:
                return 0
            return max(0, self._due_in(now, _LONGEST_SLEEP_MS))
        if self._attempt_at is not None and not self._link.state:
            return max(0, time.ticks_diff(self._attempt_at, now))
        return 0

    check_msg = poll  # by its name in umqtt.simple

    def wait_msg(self):
        """Wait for a packet, `connect_timeout` at most."""
        return self.poll(self._timeout_ms)

    def _due_in(self, now, most):
        # Ticks until a timer ends, `most` at most.
        session = self._session
        due = self._control_in(now, self._ping_in(now, most))
        due = session.expires_in(now, session.retry_in(now, due))
        return session.held_in(now, due)

    def _handle(self, first, now):
        link = self._link
        session = self._session
        kind = first >> 4
        length = _LENGTHS[kind]
        if length != link.length + 2 and length != 1:
            link.fail(_PROTOCOL)
        if kind == 3:
            self._on_publish(first, now)
        elif kind == 13:
            self._is_pinging = False
        else:
            packet_id = link.field
            if kind == 6:
                session.release(packet_id)
                self._ack(_PACKET_PUBCOMP, packet_id)  # MQTT-4.3.3-11: known or not
                self._check_starved(now)
            elif kind > 7:
                self._on_control(first, packet_id)
            elif not session.on_ack(first, packet_id) and kind == 5:
                self._ack(_PACKET_PUBREL, packet_id)

    def _on_publish(self, first, now):
        link = self._link
        session = self._session
        stats = session.stats
        if link.is_oversize:
            packet_id = link.packet_id
            is_valid = link.field and (not first & 6 or packet_id and first & 6 != 6)
        else:
            is_valid = self._message.read(first, link.field, link.length)
            packet_id = self._message.packet_id
        if not is_valid:
            link.fail(_PROTOCOL)
        if first & 4:
            if packet_id in session.held:  # MQTT-4.3.3-10
                stats.duplicates += 1
                self._ack(_PACKET_PUBREC, packet_id)
                return
            if session.is_starved or session.held_count == len(session.held):
                # RT-AWAITREL: not taken, so the broker has to send it again, and none
                # after it, or it would come out of its order.
                session.is_starved = True
                stats.refused += 1
                return
        self._is_busy = True
        try:
            if link.is_oversize:
                stats.oversize += 1
                if self.on_oversize:
                    self.on_oversize(link.field, link.payload_len)
            else:
                stats.received += 1
                if self.on_message:
                    self.on_message(self._message)
        except BaseException:
            self._is_busy = False
            self._send_acks(now)  # for what came before it
            raise
        self._is_busy = False
        # MQTT-4.3.2-4, MQTT-4.3.3-8: only now is it ours.
        if first & 4:
            session.hold(packet_id, now)
            self._ack(_PACKET_PUBREC, packet_id)
        elif first & 2:
            self._ack(_PACKET_PUBACK, packet_id)

    def _ack(self, first, packet_id):
        # MQTT-4.6.0-2, -3: answers leave in the order in which they were caused.
        if self._acks_end >= _ACK_BYTES:
            self._send_acks(self._rx_at)
        # If that had to wait, there is room for this one, and no more is received.
        self._acks_end = write_ack(self._acks, self._acks_end, first, packet_id)

    def _send_acks(self, now):
        # A packet that a handler published may be half out: then they wait for it.
        link = self._link
        n = self._acks_end
        if n and link.state and link.pending is None:
            self._acks_end = 0
            self._session.store.commit()
            self._tx_at = now
            link.write(self._acks, n)

    def _check_starved(self, now):
        # RT-AWAITREL: what was not taken comes again on a new connection only.
        session = self._session
        if session.is_starved and not session.held_count:
            self._send_acks(now)
            self._link.fail(_AWAITING_REL)

    def _check_timers(self, now):
        session = self._session
        while session.expires_in(now, 1) <= 0:
            self._give_up(session.expired, _TIMEOUT)
        while session.held_in(now, 1) <= 0:  # RT-AWAITREL-T
            session.release(session.held[0])
        self._check_starved(now)
        self._send_control(now)
        if session.retry_in(now, 1) <= 0:
            session.rewind(1)
        if self._link.pending is None and self._ping_in(now, 1) <= 0:
            if self._is_pinging:  # 31-2.2-KATIMEOUT
                self._link.fail(_TIMEOUT)
            self._ping()
        # No interval is under a second, so none that begins later is missed.
        self._wake_at = time.ticks_add(now, max(0, self._due_in(now, _WAKE_MS)))

    def _send_due(self, now):
        session = self._session
        link = self._link
        if self._publish_by:  # ordered
            session.store.sync()  # MQTT-4.6-RM1: what is done stays so over a reset
        else:
            session.store.commit()
        while link.pending is None:
            n = session.next(link.tx, now)
            if not n:
                break
            self._tx_at = now
            link.write(link.tx, n)
