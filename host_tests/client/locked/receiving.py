"""Receiving, answering and what comes in unasked, with the heap locked from `connect()` on.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

from host_tests.client import dialogue, wire
from host_tests.client.locked.bench import LONG, PAYLOAD, TOPIC, Bench, locked, poll_all

# At level 5 the broker knows how many there are places for.
BELOW_5 = ("test_receive_more_than_there_are_places_for",)


def test_acknowledgements_of_all_kinds():
    b = Bench()
    client, stream = b.client, b.stream
    answers = [wire.puback(1), wire.pubrec(2), wire.pubcomp(2)]
    strays = wire.puback(9) + wire.pubrec(9) + wire.pubcomp(9) + wire.pubrel(9)
    strays += wire.suback(9, 1) + wire.unsuback(9) + wire.pingresp()
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        for answer in answers:
            stream.feed(answer)
            poll_all(client)
        stream.feed(strays)
        poll_all(client)
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
    with locked:
        for packet in packets:
            stream.feed(packet)
            poll_all(client)
        stream.feed(again)
        poll_all(client)
    assert b.handler.calls == 4 and b.handler.misses == 0
    assert bytes(b.handler.payload[: b.handler.length]) == PAYLOAD
    assert bytes(b.handler.topic[: len(TOPIC)]) == TOPIC
    b.expect(wire.puback(5), wire.pubrec(6), wire.pubcomp(6), wire.pubrec(7), wire.pubrec(7))


def test_receive_more_than_there_are_places_for():
    b = Bench(max_awaiting_rel=1)
    client, stream = b.client, b.stream
    packets = wire.publish(TOPIC, PAYLOAD, 2, 6) + wire.publish(TOPIC, PAYLOAD, 2, 7)
    with locked:
        stream.feed(packets)
        poll_all(client)
        b.pass_ms(300000 - 60000)  # await_rel_timeout; the ping comes on the way
        client.poll()
    assert client.stats.refused == 1


def test_receive_in_single_bytes():
    b = Bench()
    client, stream = b.client, b.stream
    stream.read_most = 1
    packet = wire.publish(TOPIC, PAYLOAD, 2, 6) + wire.pubrel(6)
    with locked:
        for byte in range(len(packet)):
            stream.incoming[0] = packet[byte]
            stream.pos = 0
            stream.end = 1
            client.poll()
    assert b.handler.calls == 1
    b.expect(wire.pubrec(6), wire.pubcomp(6))


def test_oversize_message():
    b = Bench(buffer_size=64)
    client, stream = b.client, b.stream
    packet = wire.publish(TOPIC, LONG, 1, 5) + wire.publish(TOPIC, LONG, 2, 6)
    with locked:
        stream.feed(packet)
        poll_all(client)
    more = 1 if dialogue.default_level == 5 else 0  # the length of no properties counts
    assert b.handler.oversize == len(LONG) + more and client.stats.oversize == 2
    b.expect(wire.puback(5), wire.pubrec(6))


def test_handler_that_publishes():
    b = Bench()
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, PAYLOAD, 1, 5)

    class Echo:
        def on_message(self, message):
            client.publish(b"echo", PAYLOAD, qos=2)

    client.on_message = Echo().on_message
    with locked:
        stream.feed(incoming)
        poll_all(client)
    b.expect(wire.publish(b"echo", PAYLOAD, 2, 1), wire.puback(5))
