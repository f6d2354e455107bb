"""One fuzz input: a client, what it was doing, and bytes from a hostile broker.

`check(data)` runs the bytes through a real client twice, whole and in pieces, and
raises Finding if anything but MQTTError comes out, if a buffer or list grows, if
the client takes more steps than the input has bytes for, if it writes anything but
whole packets, if both ways differ, or if it is not as good as new afterwards.

The first two bytes of an input choose the situation, the level and the pieces; the rest
is what the broker sends.  No real time passes.  Runs under CPython and MicroPython.
"""

from array import array

import umqtt31
from host_tests.choice import turn
from host_tests.standin import packets
from host_tests.standin.clock import Clock
from host_tests.standin.dice import Thrown
from host_tests.standin.stream import WatchfulStream
from umqtt31 import AWAITING_REL, FULL, REFUSED_FILTER, MQTTClient, MQTTError, v5

BUFFER_BYTES = 64
# The level is in two bits of an input's second byte.
LEVELS = (3, 4, 5, 5)

# The first byte of an input, bit by bit.
BEFORE_CONNACK = 0x01  # the bytes come in place of CONNACK
IN_FLIGHT = 0x06  # how many messages wait for their answers, QoS 1 and 2 by turns
SUBSCRIBING = 0x08  # a SUBSCRIBE waits
HANDLER_PUBLISHES = 0x10
HANDLER_RAISES = 0x20
ENDS = 0x40  # the stream ends behind the bytes; else nothing more comes
STALLS = 0x80  # the stream takes only a few bytes at a time

# Publishing may be refused for what CONNACK said, at level 5: too large, QoS, retained, and
# a window so small that more has to wait than may.
_LIMITS = (0x95, 0x9A, 0x9B, FULL)
_LEAVES = (int, bool, str, bytes, type(None))


class Finding(Exception):
    """The client did what it never may do."""


class HastyClock(Clock):
    """Turns fast once the broker has nothing more to say: all that is left to wait for then is a
    time-out."""

    stream = None

    def sleep_ms(self, ms):
        self.now_ms += 100 * ms if self.stream and self.stream.is_drained() else ms


class HandlerError(Exception):
    """What the handler of these runs raises."""


class Counting(v5.MQTTClient):
    """Tells whether more messages came than its receive maximum allows."""

    is_exceeded = False

    def count(self):
        self.is_exceeded = True
        super().count()  # raises then
        self.is_exceeded = False


class Run:
    """One client's whole life with one input."""

    def __init__(self, situation, level, size, data):
        self.situation = situation
        self._level = level
        self._connack = packets.connack(0, 0, packets.no_properties(level))
        self.delivered = []  # topic, payload, QoS
        self.oversize = []
        self._target = bytearray(BUFFER_BYTES)
        self.code = 0
        make = Counting if level == 5 else MQTTClient
        with Thrown([umqtt31]):  # ids from 1, so that answers meet them
            self.client = make(
                b"fuzz",
                "broker",
                level=level,
                buffer_size=BUFFER_BYTES,
                max_inflight=3,
                max_mqueue_len=2,
                max_awaiting_rel=3,
                connect_timeout=1,
            )
        self.client.on_message = self._on_message
        self.client.on_oversize = lambda *lengths: self.oversize.append(lengths)
        start = b"" if situation & BEFORE_CONNACK else self._connack
        _clock.stream = self.stream = WatchfulStream(start, 0, False, situation & STALLS)
        self._feed = data
        self._size = size

    def _on_message(self, message):
        self.delivered.append((message.topic, message.payload, message.qos))
        n = message.payload_into(self._target)
        if self._target[:n] != message.payload:
            raise Finding("another payload is copied")
        if self.situation & HANDLER_PUBLISHES and len(self.delivered) < 9:
            try:
                self.client.publish(b"echo", message.payload[:8], qos=len(self.delivered) & 1)
            except MQTTError:  # the queue may be full
                pass
        if self.situation & HANDLER_RAISES and len(self.delivered) & 1:
            raise HandlerError

    def _switch(self):
        # From here on the broker is hostile.
        self.stream.give(self._feed, self._size, self.situation & ENDS)

    def live(self):
        """Connect, be busy as the situation says, and take in the bytes."""
        if self.situation & BEFORE_CONNACK:
            self._switch()
        try:
            self.client.connect(False, stream=self.stream)
            for k in range((self.situation & IN_FLIGHT) >> 1):
                self._publish(b"%d" % k, 1 + k % 2)
            if not self.situation & BEFORE_CONNACK:
                self._switch()
            if self.situation & SUBSCRIBING:
                self._subscribe()
            self._poll()
        except MQTTError as error:
            self.code = error.code
            if self.client.is_connected or not self.stream.is_closed:
                raise Finding("an error left the connection open") from error

    def _publish(self, payload, qos):
        try:
            self.client.publish(b"t", payload, qos=qos)
        except MQTTError as error:
            if error.code not in _LIMITS:
                raise

    def _subscribe(self):
        try:
            self.client.subscribe([(b"a/#", 1), (b"b", 2)])
        except HandlerError:
            pass
        except MQTTError as error:
            if error.code not in _LIMITS + (REFUSED_FILTER,):
                raise

    def _poll(self):
        idle = 0
        for _ in range(100 + 3 * len(self._feed)):
            try:
                handled = self.client.poll()
            except HandlerError:
                handled = 1
            is_at_rest = self.stream.is_drained() and self.client.next_due_ms()
            idle = idle + 1 if is_at_rest and not handled else 0
            if idle == 2:  # the first may have written only
                return
        raise Finding("poll() never comes to rest")

    def recover(self):
        """A new connection must work, and carry everything that was not acknowledged."""
        self.client.on_message = None
        if self.client.is_connected:
            self.client.disconnect()
        first = self.stream.sent
        accepted = self.client.inflight + self.client.queued
        stream = WatchfulStream(self._connack, 0, False, False)
        self.client.connect(False, stream=stream)
        for _ in range(3):
            self.client.poll()
        again = _publishes(stream.sent, self._level)
        if self.client.inflight + self.client.queued != accepted:
            raise Finding("a new connection lost a message")
        if len(again) != min(self.client.inflight, 3):
            raise Finding(f"{self.client.inflight} in flight, but {again} were sent again")
        _publishes(first, self._level, is_whole=False)


def _publishes(sent, level, is_whole=True):
    """The ids of all PUBLISH and PUBREL packets; Finding if it is not packet after packet."""
    found = []
    rest = bytearray(sent)
    while packet := packets.take(rest):
        kind = packet[0] >> 4
        if kind not in (1, 3, 4, 5, 6, 7, 8, 12, 14):
            raise Finding(f"wrote a packet of type {kind}")
        if kind == 6:
            found.append(packets.read_id(packet))
        elif kind == 3 and packet[0] & 6:
            found.append(packets.publish_fields(packet, level)[1])
    if rest and is_whole:
        raise Finding(f"wrote half a packet: {bytes(rest)!r}")
    return found


def _buffers(client):
    # Every buffer, array and list that can be reached from `client`.
    found, seen, waiting = [], set(), [client]
    while waiting:
        thing = waiting.pop()
        if type(thing) in _LEAVES or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, (bytearray, array, list)):
            found.append(thing)
        waiting += thing if isinstance(thing, list) else getattr(thing, "__dict__", {}).values()
    return found


def _run(situation, level, size, data):
    run = Run(situation, level, size, data)
    buffers = _buffers(run.client)
    before = [len(one) for one in buffers]
    try:
        run.live()
        run.recover()
    except Finding:
        raise
    except Exception as error:
        raise Finding(f"raised {error!r}") from error
    if [len(one) for one in buffers] != before:
        raise Finding("a buffer changed its size")
    return run


_clock = HastyClock()


def check(data):
    """Run one input; raises Finding.  From now on the client looks at a clock of these runs."""
    if len(data) < 2:
        return
    turn(_clock)
    situation, size, rest = data[0], 1 + data[1] % 16, bytes(data[2:])
    level = LEVELS[data[1] >> 4 & 3]
    whole = _run(situation, level, 0, rest)
    parts = _run(situation, level, size, rest)
    if situation & SUBSCRIBING:
        return  # what SUBACK means depends on whether it came before SUBSCRIBE left
    if level == 5 and (whole.client.is_exceeded or parts.client.is_exceeded):
        return  # how many may come depends on the acknowledgements that have left
    if whole.delivered != parts.delivered or whole.oversize != parts.oversize:
        raise Finding(f"whole {whole.delivered}, in pieces {parts.delivered}")
    ends = {whole.code, parts.code}
    # That it awaits PUBREL it says when there are places again, or for what comes before that.
    if len(ends) > 1 and (AWAITING_REL not in ends or 0 in ends):
        raise Finding(f"whole ends with {whole.code}, in pieces with {parts.code}")


def first_finding(inputs):
    """-> (input in hexadecimal, what is wrong) of the first in which something is, else None."""
    for data in inputs:
        try:
            check(data)
        except Finding as finding:
            return data.hex(), str(finding)
    return None
