"""The fast ways of publish() and of PUBACK are the general ones, byte for byte.

Two protocols live through the same random steps.  One takes the fast ways wherever it
can; the other has none of them: its publish() always enters the ring, and what it
receives comes in pieces.  What they write, say and hold is the same after every step.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_tests.client import wire
from host_tests.standin.clock import Clock
from umqtt31.giveup import packet_of
from umqtt31.packet import end_of
from umqtt31.protocol import ACCEPTED, HANDLED, MESSAGE, Protocol
from umqtt31.ram import RamStore
from umqtt31.v5 import Protocol5

BYTES = 200
CONNECT = b"\x10\x00"


class SlowProtocol(Protocol):
    """Never takes the fast way out; `feed()` keeps it from the one in."""

    def lock(self, is_locked):
        super().lock(is_locked)
        self._short = 0


class SlowProtocol5(Protocol5):
    """The same at level 5."""

    def lock(self, is_locked):
        super().lock(is_locked)
        self._short = 0


MAKES = {
    3: (Protocol, SlowProtocol),
    4: (Protocol, SlowProtocol),
    5: (Protocol5, SlowProtocol5),
}


class PutStore:
    """As a journal, a store that is given each packet, without room for them in RAM."""

    is_deferred = False

    def __init__(self):
        self._ram = RamStore()
        self.open = self._ram.open
        self.put = self._ram.put
        self.get = self._ram.get

    def packet(self, slot):
        return self._ram.buffers[slot][: end_of(self._ram.buffers[slot])]

    def nothing(self, *_):
        """It keeps nothing but packets."""

    renew = pubrec = hold = release = remove = online = commit = sync = clear = nothing


class RamPackets(RamStore):
    """The store of a client without a journal, which a test looks into."""

    def packet(self, slot):
        return self.buffers[slot][: end_of(self.buffers[slot])]


class Side:
    """One of the two, and the stream at its end."""

    def __init__(self, make, store, is_fast, level, store_qos0, last_id):
        self.is_fast = is_fast
        self.clock = Clock()
        self.protocol = make(store, 3, 3, BYTES, level, 4)
        self.protocol.mqueue_store_qos0 = store_qos0
        self.protocol.last_id = last_id
        self.protocol.open(b"dev", 5)
        self.protocol.keepalive_ms = 60_000
        self.protocol.retry_ms = 5_000 if level < 5 else 0
        self.protocol.held_ms = 20_000
        self.protocol.timeout_ms = 10_000
        self.said = []  # what received() and tick() returned, but for "more has to come"

    def feed(self, data):
        """The stream gives `data`, in one read as far as is asked for, or in many."""
        framing = self.protocol.framing
        while data:
            n = min(framing.need, len(data)) if self.is_fast else 1
            framing.into[:n] = data[:n]
            data = data[n:]
            event = self.protocol.received(n)
            if event == MESSAGE:
                message = self.protocol.message
                self.said.append((message.topic, message.payload, message.qos))
                if message.qos:
                    self.protocol.acknowledge(message.qos, message.packet_id, 0)
            elif event and event != HANDLED:
                self.said.append(event)

    def act(self, most, call, *args):
        """-> what `call` returns, and what it and then the others wrote, of which the stream
        takes up to `most` bytes."""
        protocol = self.protocol
        taken = []

        def write(buf, at, n):
            taken.append(bytes(buf[at : at + min(n, most)]))
            return len(taken[0]) or None

        if self.is_fast:
            protocol.write = write
        result = call(*args)
        protocol.write = take_nothing
        if taken:
            most -= len(taken[0])
        return result, b"".join(taken) + self.write(most)

    def write(self, most):
        """The stream takes up to `most` bytes -> these."""
        protocol = self.protocol
        taken = b""
        while protocol.left or protocol.is_due and protocol.next():
            n = min(most, protocol.left)
            if not n:
                break
            at = protocol.end - protocol.left
            taken += bytes(protocol.out[at : at + n])
            protocol.left -= n
            most -= n
        if protocol.left:
            protocol.wait(self.clock.ticks_ms())
        return taken

    def tick(self, ms):
        self.clock.now_ms += ms
        code = self.protocol.tick(self.clock.ticks_ms(), 0)
        if code > 1:  # 1 is only a hint that there may be something to write
            self.said.append(code)
        return code > 1

    def connect(self, is_clean, is_present):
        self.protocol.begin(is_clean, CONNECT, self.clock.ticks_ms())
        self.protocol.write = take_nothing
        assert self.write(len(CONNECT)) == CONNECT
        self.feed(wire.connack(0, is_present if self.protocol.level > 3 else 0))
        assert self.said[-1] == ACCEPTED

    def state(self):
        """All that counts of it, with what is still to be written."""
        protocol = self.protocol
        ring = [
            (protocol._ids[slot], protocol._waits[slot], self._packet(slot))
            for slot in map(protocol._slot, range(protocol.count))
        ]
        counts = protocol.unsent, protocol._owed, protocol.room, protocol.last_id
        names = ["_tx_at", "rx_at"]
        if protocol.count > protocol.unsent:  # else nothing is timed
            names += ["has_moved"] if protocol.has_moved else ["_moved_at", "_tries"]
        times = [getattr(protocol, name) for name in names]
        held = [packet_id for packet_id in range(1, 12) if protocol.held.find(packet_id) >= 0]
        waiting = bytes(protocol.out[protocol.end - protocol.left : protocol.end])
        return ring, counts, vars(protocol.stats), times, held, waiting, protocol.state

    def _packet(self, slot):
        # The DUP bit is set when it goes out.
        buf = self.protocol.store.packet(slot)
        return buf[0] & ~8, bytes(buf[1:])


def take_nothing(buf, at, n):
    """The write() of a stream without room."""


def sent_at_qos2():
    """A side whose only message waits for its PUBREC."""
    wire.speak(3)
    side = Side(Protocol, RamStore(), True, 3, False, 0)
    side.connect(False, 0)
    sent = side.act(10_000, side.protocol.accept, b"t", b"x", 4)
    assert sent == (1, wire.publish(b"t", b"x", 2, 1))
    return side


def test_pubrel_that_the_stream_did_not_take_is_sent_again_on_the_next_connection():
    side = sent_at_qos2()

    def write(buf, at, n):
        raise OSError(104)

    side.protocol.write = write
    with pytest.raises(OSError):
        side.feed(wire.pubrec(1))
    side.protocol.lost()
    side.protocol.begin(False, CONNECT, 0)
    side.write(len(CONNECT))
    side.feed(wire.connack())
    assert side.write(100) == wire.pubrel(1, dup=True)


def test_nothing_but_accept_writes_while_another_thread_may_be_in_it():
    side = sent_at_qos2()
    side.protocol.is_shared = True
    written = []
    side.protocol.write = lambda *args: written.append(args)
    side.feed(wire.pubrec(1))
    assert not written
    assert side.write(100) == wire.pubrel(1)


def test_half_written_packet_goes_on_while_another_is_looked_at():
    wire.speak(4)
    side = Side(Protocol, PutStore(), True, 4, False, 0)
    side.connect(False, 0)
    protocol = side.protocol
    first, second = wire.publish(b"t", b"first", 1, 1), wire.publish(b"t", b"second", 1, 2)
    assert side.act(10_000, protocol.accept, b"t", b"first", 2) == (1, first)
    assert side.act(3, protocol.accept, b"t", b"second", 2) == (2, second[:3])
    buf = packet_of(protocol, protocol._slot(0))
    assert buf[: end_of(buf)] == first
    assert side.write(100) == second[3:]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish", "publish", "publish", "write all", "write all", "write some"]
            + ["first ack", "first ack", "first ack", "ack", "ack"]
            + ["message", "pubrel", "ping", "wait", "wait", "lose"]
        ),
        st.integers(0, 2**16),
    ),
    min_size=5,
    max_size=60,
)


@settings(max_examples=400)
@given(
    STEPS,
    st.sampled_from([3, 4, 5]),
    st.sampled_from([RamPackets, PutStore]),
    st.booleans(),
    st.sampled_from([0, 65531]),
)
def test_fast_way_writes_says_and_holds_the_same_as_the_general_way(
    steps, level, store, store_qos0, last_id
):
    wire.speak(level)
    makes = MAKES[level]
    fast = Side(makes[0], store(), True, level, store_qos0, last_id)
    slow = Side(makes[1], store(), False, level, store_qos0, last_id)
    for side in (fast, slow):
        side.connect(False, 0)
    for name, number in steps:
        results = [take_step(side, name, number) for side in (fast, slow)]
        assert results[0] == results[1], name
        assert fast.said == slow.said
        assert fast.state() == slow.state(), name


def take_step(side, name, number):
    """-> what can be seen of the step from outside."""
    protocol = side.protocol
    is_lost = False
    result = None
    if name == "publish":
        payload = b"%d" % number * (1 + number % 29)
        most = (0, 7, 10_000)[number % 3]
        result = side.act(most, protocol.accept, b"t/%d" % (number % 2), payload, number % 6)
    elif name == "write all":
        result = side.write(10_000)
    elif name == "write some":
        result = side.write(1 + number % 9)
    elif name == "ack" and protocol.room > 8:
        kind = (wire.puback, wire.puback, wire.pubrec, wire.pubcomp)[number % 4]
        k = number // 4 % 8
        is_known = k < protocol.count
        side.feed(kind(protocol._ids[protocol._slot(k)] if is_known else number % 7))
    elif name == "first ack" and protocol.room > 8 and protocol.count:
        # What it waits for is the first byte of its answer; at QoS 0 it waits for none.
        slot = protocol._slot(0)
        first = protocol._waits[slot] & 0x70
        if first:
            most = (0, 3, 10_000)[number % 3]
            answer = wire.packet(first, protocol._ids[slot].to_bytes(2, "big"))
            result = side.act(most, side.feed, answer)
    elif name == "message" and protocol.room > 8:
        side.feed(wire.publish(b"in", b"%d" % number, number % 3, 1 + number % 5))
    elif name == "pubrel" and protocol.room > 8:
        side.feed(wire.pubrel(1 + number % 5))
    elif name == "ping":
        side.feed(wire.pingresp())
    elif name == "wait":
        is_lost = side.tick((1, 400, 5_000, 15_000)[number % 4])
    if name == "lose" or is_lost:
        side.protocol.lost()
        side.clock.now_ms += number
        side.connect(number % 4 == 1, number >> 2 & number % 4 == 2)
    return result
