"""Every path between two connections with the heap locked.  Runs under MicroPython.

Each function prepares everything, locks the heap right after `connect()`, so that
even the first use of a path may not allocate, and looks at the result unlocked.
`test_locked.py` runs them under every interpreter.
"""

from micropython import heap_lock, heap_unlock

from host_tests.client import wire
from host_tests.client.dialogue import clocked_modules
from host_tests.client.fixed_stream import FixedStream
from host_tests.client.scripted import Clock
from umqtt31 import FULL, TIMEOUT, MQTTClient

TOPIC = b"home/room 1/temp"
PAYLOAD = b"21.5 C"
LONG = b"0123456789abcdef" * 64  # more than the copy in one piece takes


class Handler:
    """Uses all of Message that is said not to allocate; keeps what it saw."""

    def __init__(self):
        self.topic = bytearray(64)
        self.payload = bytearray(2048)
        self.calls = self.length = self.dropped = self.reason = self.oversize = self.misses = 0

    def on_message(self, message):
        self.calls += 1
        if not message.topic_is(TOPIC) or message.topic_is(b"home/room 2/temp"):
            self.misses += 1
        if not message.matches(b"home/+/temp") or message.matches(b"home/+"):
            self.misses += 1
        if message.topic_into(self.topic) != message.topic_len or message.retain or message.dup:
            self.misses += 1
        if message.qos and not message.packet_id:
            self.misses += 1
        self.length = message.payload_into(self.payload)
        if message[message.payload_len - 1] != self.payload[self.length - 1]:
            self.misses += 1

    def on_drop(self, packet_id, reason):
        self.dropped = packet_id
        self.reason = reason

    def on_oversize(self, topic_len, payload_len):
        self.oversize = payload_len


class Bench:
    """A client just connected over a FixedStream, its clock and its handler."""

    def __init__(self, **options):
        self.clock = Clock()
        for module in clocked_modules():
            module.time = self.clock
        self.client = MQTTClient(b"dev", "broker", **options)
        self.handler = Handler()
        self.client.on_message = self.handler.on_message
        self.client.on_drop = self.handler.on_drop
        self.client.on_oversize = self.handler.on_oversize
        self.connect()

    def connect(self, room=8192):
        self.stream = FixedStream()
        self.stream.feed(wire.connack())
        self.client.connect(False, stream=self.stream)
        self.stream.take()
        self.stream.room = room

    def pass_ms(self, ms):
        self.clock.now_ms += ms

    def expect(self, *packets):
        sent = self.stream.take()
        assert sent == b"".join(packets), sent


def poll_all(client):
    while client.poll():
        pass


def test_publish_at_each_qos():
    b = Bench()
    client = b.client
    heap_lock()
    try:
        ids = client.publish(TOPIC, PAYLOAD), client.publish(TOPIC, PAYLOAD, False, 1)
    except MemoryError:
        ids = None  # the tuple of this test itself
    finally:
        heap_unlock()
    assert ids is None
    b.stream.take()
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, True, 0)
        client.publish(TOPIC, PAYLOAD, False, 1)
        client.publish(TOPIC, PAYLOAD, qos=2)
    finally:
        heap_unlock()
    b.expect(
        wire.publish(TOPIC, PAYLOAD, retain=1),
        wire.publish(TOPIC, PAYLOAD, 1, 2),
        wire.publish(TOPIC, PAYLOAD, 2, 3),
    )


def test_publish_from_every_kind_of_buffer():
    b = Bench()
    client = b.client
    kinds = (bytes, bytearray, memoryview)
    values = [(kind(TOPIC), kind(PAYLOAD)) for kind in kinds]
    heap_lock()
    try:
        for topic, payload in values:
            client.publish(topic, payload)
            client.publish(topic, payload, qos=1)
    finally:
        heap_unlock()
    assert b.client.inflight == 3
    sent = b.stream.take()
    assert sent.count(wire.publish(TOPIC, PAYLOAD)) == 3


def test_publish_and_receive_long_payloads():
    b = Bench(buffer_size=1500)
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, LONG, 1, 9)
    heap_lock()
    try:
        client.publish(TOPIC, LONG)
        client.publish(TOPIC, LONG, qos=2)
        stream.feed(incoming)
        poll_all(client)
    finally:
        heap_unlock()
    b.expect(wire.publish(TOPIC, LONG), wire.publish(TOPIC, LONG, 2, 1), wire.puback(9))
    assert b.handler.length == len(LONG) and bytes(b.handler.payload[: len(LONG)]) == LONG


def test_acknowledgements_of_all_kinds():
    b = Bench()
    client, stream = b.client, b.stream
    answers = [wire.puback(1), wire.pubrec(2), wire.pubcomp(2)]
    strays = wire.puback(9) + wire.pubrec(9) + wire.pubcomp(9) + wire.pubrel(9)
    strays += wire.suback(9, 1) + wire.unsuback(9) + wire.PINGRESP
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        for answer in answers:
            stream.feed(answer)
            poll_all(client)
        stream.feed(strays)
        poll_all(client)
    finally:
        heap_unlock()
    assert client.inflight == 0
    b.expect(
        wire.publish(TOPIC, PAYLOAD, 1, 1),
        wire.publish(TOPIC, PAYLOAD, 2, 2),
        wire.pubrel(2),
        wire.pubrel(9),
        wire.pubcomp(9),
    )


def test_receive_at_each_qos_with_a_handler():
    b = Bench()
    client, stream = b.client, b.stream
    packets = [
        wire.publish(TOPIC, PAYLOAD),
        wire.publish(TOPIC, PAYLOAD, 1, 5),
        wire.publish(TOPIC, PAYLOAD, 2, 6),
        wire.pubrel(6),
    ]
    again = wire.publish(TOPIC, PAYLOAD, 2, 7) * 2
    heap_lock()
    try:
        for packet in packets:
            stream.feed(packet)
            poll_all(client)
        stream.feed(again)
        poll_all(client)
    finally:
        heap_unlock()
    assert b.handler.calls == 4 and b.handler.misses == 0
    assert bytes(b.handler.payload[: b.handler.length]) == PAYLOAD
    assert bytes(b.handler.topic[: len(TOPIC)]) == TOPIC
    b.expect(wire.puback(5), wire.pubrec(6), wire.pubcomp(6), wire.pubrec(7), wire.pubrec(7))


def test_receive_more_than_there_are_places_for():
    b = Bench(max_awaiting_rel=1)
    client, stream = b.client, b.stream
    packets = wire.publish(TOPIC, PAYLOAD, 2, 6) + wire.publish(TOPIC, PAYLOAD, 2, 7)
    heap_lock()
    try:
        stream.feed(packets)
        poll_all(client)
        b.pass_ms(300000 - 60000)  # await_rel_timeout; the ping comes on the way
        client.poll()
    finally:
        heap_unlock()
    assert client.stats.refused == 1


def test_receive_in_single_bytes():
    b = Bench()
    client, stream = b.client, b.stream
    stream.read_most = 1
    packet = wire.publish(TOPIC, PAYLOAD, 2, 6) + wire.pubrel(6)
    heap_lock()
    try:
        for byte in range(len(packet)):
            stream.incoming[0] = packet[byte]
            stream.pos = 0
            stream.end = 1
            client.poll()
    finally:
        heap_unlock()
    assert b.handler.calls == 1
    b.expect(wire.pubrec(6), wire.pubcomp(6))


def test_oversize_message():
    b = Bench(buffer_size=64)
    client, stream = b.client, b.stream
    packet = wire.publish(TOPIC, LONG, 1, 5) + wire.publish(TOPIC, LONG, 2, 6)
    heap_lock()
    try:
        stream.feed(packet)
        poll_all(client)
    finally:
        heap_unlock()
    assert b.handler.oversize == len(LONG) and client.stats.oversize == 2
    b.expect(wire.puback(5), wire.pubrec(6))


def test_window_and_queue():
    b = Bench(max_inflight=2, max_mqueue_len=4)
    client, stream = b.client, b.stream
    answers = [wire.puback(k) for k in range(1, 7)]
    heap_lock()
    try:
        for _ in range(6):
            client.publish(TOPIC, PAYLOAD, qos=1)
        for answer in answers:
            stream.feed(answer)
            poll_all(client)
    finally:
        heap_unlock()
    assert client.inflight == client.queued == 0
    b.expect(*[wire.publish(TOPIC, PAYLOAD, 1, k) for k in range(1, 7)])


def test_retry_of_publish_and_pubrel():
    b = Bench(keepalive=0)
    client, stream = b.client, b.stream
    pubrec = wire.pubrec(2)
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        stream.feed(pubrec)
        poll_all(client)
        b.pass_ms(30000)
        poll_all(client)
        b.pass_ms(60000)
        poll_all(client)
    finally:
        heap_unlock()
    sent = b.stream.take()
    assert sent.count(wire.publish(TOPIC, PAYLOAD, 1, 1, dup=1)) == 2
    assert sent.count(wire.pubrel(2, dup=1)) == 2


def test_pings():
    b = Bench(keepalive=10)
    client, stream = b.client, b.stream
    heap_lock()
    try:
        for _ in range(3):
            b.pass_ms(9000)
            client.poll()
            stream.feed(wire.PINGRESP)
            client.poll()
        client.ping()
    finally:
        heap_unlock()
    b.expect(wire.PINGREQ * 4)


def test_idle_polls():
    b = Bench()
    client = b.client
    heap_lock()
    try:
        for _ in range(50):
            client.poll()
            client.poll(0)
            client.poll(20)
            client.check_msg()
            b.pass_ms(client.next_due_ms() // 100)
        client.flush(100)
        idle = client.is_connected and not client.inflight and not client.queued
    finally:
        heap_unlock()
    assert idle and b.clock.now_ms >= 1000


def test_overflow_drop_oldest():
    b = Bench(max_inflight=1, max_mqueue_len=2, overflow="drop_oldest")
    client = b.client
    heap_lock()
    try:
        for _ in range(5):
            client.publish(TOPIC, PAYLOAD, qos=1)
    finally:
        heap_unlock()
    assert client.stats.dropped == 2 and (b.handler.dropped, b.handler.reason) == (3, FULL)


def test_overflow_latest():
    b = Bench(max_inflight=1, max_mqueue_len=2, overflow="latest")
    client = b.client
    heap_lock()
    try:
        client.publish(b"other", PAYLOAD, qos=1)
        client.publish(b"other", PAYLOAD, qos=1)
        for _ in range(3):
            client.publish(TOPIC, PAYLOAD, qos=2)
    finally:
        heap_unlock()
    assert client.stats.dropped == 2 and (b.handler.dropped, b.handler.reason) == (4, FULL)


def test_messages_too_old():
    b = Bench(max_inflight=1, keepalive=0)
    client = b.client
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=1, max_age=5)
        client.next_due_ms()
        b.pass_ms(5000)
        client.poll()
    finally:
        heap_unlock()
    assert client.queued == 0 and (b.handler.dropped, b.handler.reason) == (2, TIMEOUT)


def test_stored_qos_0():
    b = Bench(mqueue_store_qos0=True)
    client, stream = b.client, b.stream
    stream.room = 3
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD)
        client.publish(TOPIC, PAYLOAD)
        client.publish(TOPIC, PAYLOAD)
        stream.room = 1000
        poll_all(client)
        poll_all(client)
    finally:
        heap_unlock()
    b.expect(wire.publish(TOPIC, PAYLOAD) * 3)


def test_short_writes():
    b = Bench()
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, PAYLOAD, 1, 5)
    stream.room = 0
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        stream.feed(incoming)
        for _ in range(200):
            stream.room = 1
            client.poll()
    finally:
        heap_unlock()
    sent = b.stream.take()
    for packet in (
        wire.publish(TOPIC, PAYLOAD, 1, 1),
        wire.publish(TOPIC, PAYLOAD, 2, 2),
        wire.puback(5),
    ):
        assert sent.count(packet) == 1


def test_publish_while_offline_and_redelivery():
    b = Bench(max_inflight=2)
    client = b.client
    pubrec = wire.pubrec(2)
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        b.stream.feed(pubrec)
        poll_all(client)
    finally:
        heap_unlock()
    client.disconnect()
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
    finally:
        heap_unlock()
    puback = wire.puback(1)
    stream = FixedStream()
    stream.feed(wire.connack())
    stream.room = 19  # just CONNECT: what is sent again leaves with the heap locked
    client.connect(False, stream=stream)
    stream.take()
    stream.room = 1000
    heap_lock()
    try:
        poll_all(client)
        poll_all(client)
        stream.feed(puback)
        poll_all(client)
    finally:
        heap_unlock()
    sent = stream.take()
    for packet in (
        wire.publish(TOPIC, PAYLOAD, 1, 1, dup=1),
        wire.pubrel(2, dup=1),
        wire.publish(TOPIC, PAYLOAD, 1, 3),
    ):
        assert sent.count(packet) == 1, sent


def test_resubscribing():
    b = Bench()
    client = b.client
    b.stream.feed(b"")
    granted = []
    for k, name in ((1, b"a"), (2, b"b")):
        b.clock.sleep_ms = lambda ms, k=k: b.stream.feed(wire.suback(k, 0))
        granted += client.subscribe(name)
    assert granted == [0, 0]
    b.clock.sleep_ms = None
    answers = wire.suback(3, 0), wire.suback(4, 0)
    stream = FixedStream()
    stream.feed(wire.connack())
    stream.room = 19
    client.connect(False, stream=stream)
    stream.take()
    stream.room = 1000
    heap_lock()
    try:
        poll_all(client)
        b.pass_ms(30000)
        poll_all(client)
        for answer in answers:
            stream.feed(answer)
            poll_all(client)
    finally:
        heap_unlock()
    sent = stream.take()
    assert sent.count(wire.subscribe(3, (b"a", 0))) == 1, sent
    assert sent.count(wire.subscribe(4, (b"b", 0))) == 1, sent


def test_ordered_publishing():
    b = Bench(ordered=True)
    client, stream = b.client, b.stream
    answers = wire.puback(1) + wire.puback(2)
    heap_lock()
    try:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=1)
        stream.feed(answers)
        poll_all(client)
        poll_all(client)
    finally:
        heap_unlock()
    sent = b.stream.take()
    assert sent == wire.publish(TOPIC, PAYLOAD, 1, 1) + wire.publish(TOPIC, PAYLOAD, 1, 2)


def test_handler_that_publishes():
    b = Bench()
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, PAYLOAD, 1, 5)

    class Echo:
        def on_message(self, message):
            client.publish(b"echo", PAYLOAD, qos=2)

    client.on_message = Echo().on_message
    heap_lock()
    try:
        stream.feed(incoming)
        poll_all(client)
    finally:
        heap_unlock()
    b.expect(wire.publish(b"echo", PAYLOAD, 2, 1), wire.puback(5))


def test_any_number_of_places():
    for window in (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33):
        b = Bench(max_inflight=window, max_mqueue_len=0, max_awaiting_rel=window)
        client, stream = b.client, b.stream
        answers = b"".join([wire.puback(k) for k in range(window, 0, -1)])
        incoming = b"".join([wire.publish(b"t", b"x", 2, k + 1) for k in range(window)])
        client.on_message = None
        heap_lock()
        try:
            for _ in range(window):
                client.publish(b"t", b"x", qos=1)
            stream.feed(answers)
            stream.feed(incoming)
            poll_all(client)
        finally:
            heap_unlock()
        assert client.inflight == 0 and client.stats.refused == 0
