"""Messages that the body of a loop refuses.  MQTT 5 §4.3."""

from host_tests.client import wire
from host_tests.client.aio_dialogue import on_desk, qos1, qos2, qos2_next
from host_tests.client.dialogue import error_of

LEVEL_5 = (
    "test_message_that_a_body_refuses_is_answered_with_its_reason",
    "test_qos2_refused_between_two_connections_is_handed_over_again_on_the_next",
)
BELOW_5 = ("test_message_cannot_be_refused_below_level_5",)


@on_desk()
async def test_message_that_a_body_refuses_is_answered_with_its_reason(desk):
    """MQTT-4.3.2-4, MQTT-4.3.3-8: in the order of arrival, and the next ones as usual."""
    client, stream = await desk.connected()
    stream.feed(qos1(), qos2_next(), wire.publish(b"t", b"c", 2, 9), wire.publish(b"t", b"d"))
    async for message in client.messages():
        if message.payload == b"d":
            message.refuse(0x80)  # at QoS 0 nobody is told
            break
        if message.payload != b"c":
            message.refuse(0x99 if message.qos == 1 else 0x83)
            assert stream.take() == (
                wire.refused(wire.puback, 7, 0x99) if message.qos == 2 else b""
            )
    await desk.until(lambda: stream.sent)
    assert stream.take() == wire.refused(wire.pubrec, 8, 0x83) + wire.pubrec(9)
    # The id of a refused one is not held: what comes with it is a new message.
    stream.feed(wire.pubrel(9), wire.publish(b"t", b"e", 2, 8))
    async for message in client.messages():
        assert (message.payload, message.qos) == (b"e", 2)
        message.done()
        break
    await desk.until(lambda: len(stream.sent) >= 8)
    assert stream.take() == wire.pubcomp(9) + wire.pubrec(8)
    for reason in (0, 0x7F, 0x100):
        assert isinstance(error_of(message.refuse, reason), ValueError), reason


@on_desk(2)
async def test_qos2_refused_between_two_connections_is_handed_over_again_on_the_next(desk):
    client, first, second = await desk.kept()
    first.feed(qos2())
    async for message in client.messages():
        first.feed(b"")
        await desk.until(lambda: first.is_closed)
        message.refuse(0x97)
        message.done()
        break
    second.feed(qos2(1))
    async for message in client.messages():
        assert (message.payload, message.qos) == (b"a", 2)
        message.done()
        break
    await desk.until(lambda: second.sent[-4:] == b"\x50\x02\x00\x07")


@on_desk()
async def test_message_cannot_be_refused_below_level_5(desk):
    client, stream = desk.client, desk.streams[0]
    await client.connect(True, desk.open)
    stream.feed(qos1())
    async for message in client.messages():
        assert isinstance(error_of(message.refuse, 0x80), ValueError)
        break
