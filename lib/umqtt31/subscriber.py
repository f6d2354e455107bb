"""Subscriber: what a client subscribes to, over all its connections.

The filters are remembered as ready SUBSCRIBE packets, since at level 3 a broker
cannot say that it kept the session.  One SUBSCRIBE or UNSUBSCRIBE at a time
waits for its answer.  MQTT 3.1 §3.8 to §3.11.
"""

import time

from micropython import const

from . import packet
from .connection import Connection, as_bytes, check_range, since
from .errors import FULL, PROTOCOL, TIMEOUT, TOO_LARGE, MQTTError
from .topic import check

_ONLINE = const(3)
_MAX_TRIES = const(6)


class Subscriber(Connection):
    """The part of a client that subscribes; `_session` and `_granted` (one byte for
    each filter there may be) are the client's."""

    def __init__(self, *args):
        super().__init__(*args)
        self._filters = []  # (filter, its SUBSCRIBE packet)
        self._control = None  # the request that waits
        self._control_count = self._control_tries = self._control_at = 0
        self._resubscribed = 0  # filters sent on this connection

    def subscribe(self, topic, qos=0):
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Waits for the broker's answer, `connect_timeout` at most.  The filters are
        remembered and sent again on every connection.  Raises ValueError,
        MQTTError: CLOSED, FULL (`max_subscriptions`), TOO_LARGE, TIMEOUT.
        """
        pairs = topic if isinstance(topic, (list, tuple)) else ((topic, qos),)
        pairs = [(self._check_filter(name, qos), qos) for name, qos in pairs]
        request = self._new_request(packet.SUBSCRIBE, pairs)
        self._await_control()
        kept = self._filters_without(pairs)
        if len(kept) + len(pairs) > len(self._granted):
            raise MQTTError(FULL, "too many filters: raise max_subscriptions")
        for pair in pairs:
            kept.append((pair[0], self._new_request(packet.SUBSCRIBE, (pair,))))
        self._request(kept, request, len(pairs))
        return list(self._granted[: len(pairs)])

    def unsubscribe(self, topic):
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
        names = topic if isinstance(topic, (list, tuple)) else (topic,)
        names = [(self._check_filter(name, 0),) for name in names]
        request = self._new_request(packet.UNSUBSCRIBE, names)
        self._await_control()
        self._request(self._filters_without(names), request, 0)

    def _check_filter(self, name, qos):
        check_range("qos", qos, 0, 2)
        name = bytes(as_bytes(name))
        check(name, True)
        return name

    def _new_request(self, first, entries):
        if not entries:
            raise ValueError("no filter given")
        size = self._link.size
        buf = packet.new_buffer(size)
        n = packet.write_filters(buf, size, first, entries)
        if not n:
            raise MQTTError(TOO_LARGE)
        return buf[:n]

    def _filters_without(self, entries):
        names = [entry[0] for entry in entries]
        return [entry for entry in self._filters if entry[0] not in names]

    def _request(self, filters, request, count):
        self._filters = filters
        self._resubscribed = len(filters)
        self._control = request
        self._control_count = count
        self._wake_at = time.ticks_ms()
        self._await_control()

    def _await_control(self):
        # Poll until no SUBSCRIBE or UNSUBSCRIBE waits any more.
        self._check_free()
        start = time.ticks_ms()
        while (
            self._link.state != _ONLINE or self._control or self._resubscribed < len(self._filters)
        ):
            if since(start) >= self._timeout_ms:
                self._link.fail(TIMEOUT)
            self.poll(1)

    def _on_control(self, first, packet_id):
        # SUBACK or UNSUBACK; what answers no request of this connection is stray.
        link = self._link
        control = self._control
        if not control or packet_id != self._session.control_id:
            return
        if (first ^ control[0]) & 0xF0 != 0x10 or link.length - 2 != self._control_count:
            link.fail(PROTOCOL)
        for k in range(self._control_count):
            self._granted[k] = link.rx[2 + k]  # 31-3.9-SUBACK: in order
        self._control = None
        self._session.control_id = 0
        self._wake_at = self._tx_at  # there may be more to send

    def _resubscribe(self):
        # A new connection: all filters are to be sent again.
        self._control = None
        self._session.control_id = self._resubscribed = 0

    def _send_control(self, now):
        control = self._control
        if self._session.control_id:
            if self._control_in(now, 1) > 0:
                return
            control[0] |= packet.DUP  # 31-2.1-DUP, RT-OBJECTS
            self._control_tries = min(self._control_tries + 1, _MAX_TRIES)
        else:
            if not control:
                # At level 3 the broker cannot say that it kept them.
                if self._resubscribed == len(self._filters):
                    return
                control = self._control = self._filters[self._resubscribed][1]
                control[0] = packet.SUBSCRIBE
                self._resubscribed += 1
                self._control_count = 1
            packet_id = self._session.take_id()
            pos = packet.body_start(control)
            control[pos] = packet_id >> 8
            control[pos + 1] = packet_id & 255
            self._control_tries = 0
        self._control_at = self._tx_at = now
        self._link.write(control, len(control))

    def _control_in(self, now, most):
        # Ticks until the request that waits is sent again, `most` at most.
        if not self._retry_ms or not self._session.control_id:
            return most
        wait_ms = self._retry_ms << self._control_tries
        return min(most, wait_ms - time.ticks_diff(now, self._control_at))
