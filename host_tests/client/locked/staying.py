"""Retries, pings, idle polls, half packets and a new connection, the heap locked
from `connect()` on.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

from host_tests.client import dialogue, wire
from host_tests.client.locked.bench import PAYLOAD, TOPIC, Bench, locked, poll_all
from host_tests.standin.stream import FixedStream
from micropython import heap_lock, heap_unlock
from umqtt31 import CLOSED, PROTOCOL, TIMEOUT, MQTTError

BELOW_5 = ("test_retry_of_publish_and_pubrel",)  # where time-outs repeat
CONNECT = (19, 31)  # bytes of it, below level 5 and at it


def test_retry_of_publish_and_pubrel():
    b = Bench(keepalive=0)
    client, stream = b.client, b.stream
    pubrec = wire.pubrec(2)
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        stream.feed(pubrec)
        poll_all(client)
        b.pass_ms(30000)
        poll_all(client)
        b.pass_ms(60000)
        poll_all(client)
    sent = b.stream.take()
    assert sent.count(wire.publish(TOPIC, PAYLOAD, 1, 1, dup=1)) == 2
    assert sent.count(wire.pubrel(2, dup=1)) == 2


def test_pings():
    b = Bench(keepalive=10)
    client, stream = b.client, b.stream
    with locked:
        for _ in range(3):
            b.pass_ms(9000)
            client.poll()
            stream.feed(wire.pingresp())
            client.poll()
        client.ping()
    b.expect(wire.pingreq() * 4)


def test_idle_polls():
    b = Bench()
    client = b.client
    with locked:
        for _ in range(50):
            client.poll()
            client.poll(0)
            client.poll(20)
            client.check_msg()
            b.pass_ms(client.next_due_ms() // 100)
        client.flush(100)
        idle = client.is_connected and not client.inflight and not client.queued
    assert idle and b.clock.now_ms >= 1000


def test_short_writes():
    b = Bench()
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, PAYLOAD, 1, 5)
    stream.room = 0
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        stream.feed(incoming)
        for _ in range(200):
            stream.room = 1
            client.poll()
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
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        b.stream.feed(pubrec)
        poll_all(client)
    client.disconnect()
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
    puback = wire.puback(1)
    stream = FixedStream()
    is_5 = dialogue.default_level == 5
    stream.feed(wire.connack(0, int(is_5)))
    stream.room = CONNECT[is_5]  # no more: what is sent again leaves with the heap locked
    client.connect(False, stream=stream)
    stream.take()
    stream.room = 1000
    with locked:
        poll_all(client)
        poll_all(client)
        stream.feed(puback)
        poll_all(client)
    sent = stream.take()
    for packet in (
        wire.publish(TOPIC, PAYLOAD, 1, 1, dup=1),
        wire.pubrel(2, dup=int(not is_5)),
        wire.publish(TOPIC, PAYLOAD, 1, 3),
    ):
        assert sent.count(packet) == 1, sent


def _break_off(b):
    b.stream.is_ended = True


def _be_silent(b):
    b.pass_ms(10000)
    poll_all(b.client)  # PINGREQ
    b.pass_ms(10000)


def _talk_nonsense(b):
    b.stream.feed(b"\xf0\0")


def test_end_of_a_connection_is_told_by_the_next_poll():
    """There was no room for the error, and the next one said that the heap was locked."""
    for end, code in ((_break_off, CLOSED), (_be_silent, TIMEOUT), (_talk_nonsense, PROTOCOL)):
        b = Bench(keepalive=10)
        end(b)
        told = []
        heap_lock()
        try:
            b.client.poll()
        except MemoryError:
            pass
        finally:
            heap_unlock()
        try:
            b.client.poll()
        except MQTTError as error:
            told.append(error.code)
        assert told == [code], (told, code)


def test_resubscribing():
    b = Bench()
    client = b.client
    granted = []
    for k, name in ((1, b"a"), (2, b"b")):
        b.stream.feed(wire.suback(k, 0))
        granted += client.subscribe(name)
    assert granted == [0, 0]
    answer = wire.suback(3, 0, 0)
    stream = FixedStream()
    stream.feed(wire.connack())
    stream.room = CONNECT[dialogue.default_level == 5]
    client.connect(False, stream=stream)
    stream.take()
    stream.room = 1000
    with locked:
        poll_all(client)
        b.pass_ms(30000)
        poll_all(client)
        stream.feed(answer)
        poll_all(client)
    sent = stream.take()
    assert sent.count(wire.subscribe(3, (b"a", 0), (b"b", 0))) == 1, sent
