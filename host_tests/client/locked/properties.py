"""What level 5 has more, with the heap locked from `connect()` on: properties both ways, ages,
aliases, refusals by the broker and by the handler.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

from host_tests.client import wire
from host_tests.client.locked.bench import PAYLOAD, TOPIC, Bench, locked, poll_all
from host_tests.standin.stream import FixedStream
from umqtt31.properties import encode

LEVELS = (5,)


def test_messages_with_properties_and_ages_go_out():
    b = Bench(max_inflight=2, overflow="refuse")
    client, stream = b.client, b.stream
    given = encode(content_type="text/plain", user_property=(("k", "v"),))
    puback = wire.puback(1)
    with locked:
        for _ in range(3):
            client.publish(TOPIC, PAYLOAD, qos=1, max_age=60, properties=given)
        b.pass_ms(20000)
        stream.feed(puback)
        poll_all(client)
    fields = {"content_type": b"text/plain", "user_property": [(b"k", b"v")]}
    b.expect(
        *[
            wire.publish(
                TOPIC, PAYLOAD, 1, k, properties=wire.properties(message_expiry=left, **fields)
            )
            for k, left in ((1, 60), (2, 60), (3, 40))
        ]
    )


def test_messages_with_properties_come_in():
    b = Bench()
    client, stream = b.client, b.stream
    target = bytearray(16)
    seen = [0, 0, 0]

    def on_message(message):
        seen[0] = message.property_into(9, target)
        seen[1] = message.property_into(8, target)
        seen[2] = message.message_expiry_interval

    client.on_message = on_message
    said = wire.properties(
        message_expiry=7, correlation_data=b"12345", content_type=b"c\xc3\xa9", subscription_id=[9]
    )
    packet = wire.publish(TOPIC, PAYLOAD, 2, 5, properties=said)
    with locked:
        stream.feed(packet)
        poll_all(client)
    assert seen == [5, -1, 7]
    b.expect(wire.pubrec(5))


def test_messages_are_refused_by_the_broker_and_by_the_handler():
    b = Bench()
    client, stream = b.client, b.stream

    def on_message(message):
        message.refuse(0x99)

    client.on_message = on_message
    said = wire.properties(reason_string=b"no")
    packets = (
        wire.puback(1, 0x97, said) + wire.pubrec(2, 0x87) + wire.publish(TOPIC, PAYLOAD, 2, 5)
    )
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=2)
        stream.feed(packets)
        poll_all(client)
    assert client.inflight == 0 and client.stats.dropped == 2
    assert b.handler.dropped == 2 and b.handler.reason == 0x87
    refusal = wire.pubrec(5, 0x99, wire.properties(reason_string=b"refused"))
    b.expect(wire.publish(TOPIC, PAYLOAD, 1, 1), wire.publish(TOPIC, PAYLOAD, 2, 2), refusal)


def test_topics_go_out_as_numbers():
    b = Bench()
    client = b.client
    client.v5.topic_aliases = 1
    stream = b.stream = FixedStream()
    stream.feed(wire.connack(0, 1, wire.properties(topic_alias_maximum=5)))
    client.connect(False, stream=stream)
    stream.take()
    with locked:
        client.publish(TOPIC, PAYLOAD)
        client.publish(TOPIC, PAYLOAD, qos=1)
    said = wire.properties(topic_alias=1)
    b.expect(
        wire.publish(TOPIC, PAYLOAD, properties=said),
        wire.publish(b"", PAYLOAD, 1, 1, properties=said),
    )
