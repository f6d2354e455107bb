"""The loop over messages: when it acknowledges, what it hands over, with which properties."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import on_desk, qos1, qos2_next
from host_tests.client.dialogue import error_of
from umqtt31.properties import encode

LEVEL_5 = ("test_message_has_a_copy_of_its_properties",)


@on_desk()
async def test_message_is_acknowledged_when_its_body_is_done(desk):
    client, stream = await desk.connected()
    stream.feed(qos1())
    async for message in client.messages():
        assert (message.topic, message.payload, message.qos) == (b"t", b"a", 1)
        await aio.sleep_ms(600)
        assert stream.take() == b""
        message.done()
        break
    await desk.until(lambda: stream.sent)
    assert stream.take() == b"\x40\x02\x00\x07"
    await client.disconnect()
    assert stream.take() == b"\xe0\x00" and stream.is_closed


@on_desk()
async def test_next_message_acknowledges_the_one_before(desk):
    client, stream = await desk.connected()
    stream.feed(qos1(), wire.publish(b"t", b"b", 1, 8))
    payloads = []
    async for message in client.messages():
        assert stream.take() == (b"\x40\x02\x00\x07" if payloads else b"")
        payloads.append(message.payload)
        if len(payloads) == 2:
            break
    assert payloads == [b"a", b"b"]


@on_desk()
async def test_flood_keeps_no_task_waiting(desk):
    client, stream = await desk.connected()
    seen, turns = [], set()

    async def beside():
        while len(seen) < 100:
            turns.add(len(seen))
            await asyncio.sleep(0)

    other = asyncio.create_task(beside())
    stream.feed(*[wire.publish(b"t", b"a", 1, k) for k in range(1, 101)])
    async for message in client.messages():
        seen.append(message.packet_id)
        if len(seen) == 100:
            break
    await other
    assert seen == list(range(1, 101)) and len(turns) > 5


@on_desk(max_inflight=1, max_mqueue_len=1)
async def test_acknowledgements_are_read_while_a_body_waits_for_room(desk):
    # The window and the queue have room for two: the third publish() needs a PUBACK.
    client, stream = await desk.connected()
    stream.feed(*[wire.publish(b"t", b"a")] * 100)  # more than are copied out
    async for _ in client.messages():
        for k in range(2):
            client.publish_nowait(b"r", b"%d" % k, qos=1)
        stream.answer(stream.sent, b"\x40\x02\x00\x01")
        stream.feed(b"\x40\x02\x00\x01")
        assert await client.publish(b"r", b"2", qos=1) == 3
        break
    # The loop took one, 64 wait for it, and the others are counted.
    assert client.stats.received == 100 and client.stats.dropped == 35


@on_desk()
async def test_loop_over_the_same_messages_gets_again_what_a_body_has_left(desk):
    client, stream = await desk.connected()
    stream.feed(qos1())
    messages = client.messages()
    async for message in messages:
        left = message
        break
    async for message in messages:
        assert message is left
        assert stream.take() == b""
        message.done()
        break
    await desk.until(lambda: stream.sent)
    assert stream.take() == b"\x40\x02\x00\x07"


@on_desk()
async def test_loop_with_a_wrong_filter_is_refused(desk):
    """It would wait for ever, and all acknowledgements with it."""
    client, _ = await desk.connected()
    for bad in ("", "a#", "a/#/b", b"a/b+"):
        error = error_of(client.messages, bad)
        assert isinstance(error, ValueError) and "filter" in str(error)


@on_desk()
async def test_filter_of_a_loop_may_be_text(desk):
    client, stream = await desk.connected()
    stream.feed(wire.publish(b"other", b"b"), qos1())
    async for message in client.messages("t/#"):
        assert message.payload == b"a"
        break
    error = error_of(client.messages, 5)
    assert isinstance(error, TypeError) and "pattern" in str(error)


@on_desk(buffer_size=64)
async def test_message_too_large_without_a_hook_is_told_and_the_next_is_handed_over(desk):
    client, stream = await desk.connected()
    stream.feed(wire.publish(b"t", b"x" * 100, 1, 7), wire.publish(b"t", b"b", 1, 8))
    async for message in client.messages():
        assert message.payload == b"b"
        break
    assert stream.take() == b"\x40\x02\x00\x07"
    assert client.stats.oversize == 1 and client.last_error.code == 260
    assert client.is_connected and client.stats.reconnects == 0


@on_desk()
async def test_message_whose_body_was_left_comes_again_in_the_next_loop(desk):
    client, stream = await desk.connected()
    stream.feed(qos1(), qos2_next())
    payloads = []
    for _ in range(2):
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) != 2:
                break
    assert payloads == [b"a", b"a", b"b"]
    assert stream.take() == b"\x40\x02\x00\x07"


@on_desk()
async def test_who_waits_for_a_connection_lets_no_message_in(desk):
    client, stream = desk.client, desk.streams[0]
    await client.connect(True, desk.open)
    waiting = asyncio.create_task(client.reconnected())
    stream.feed(*[wire.publish(b"t", b"a")] * 100)
    await aio.sleep_ms(3000)
    payloads = []
    async for message in client.messages():
        payloads.append(message.payload)
        if len(payloads) == 100:
            break
    waiting.cancel()
    assert client.stats.dropped == 0


@on_desk()
async def test_loops_that_wait_for_the_same_messages_share_them(desk):
    """Each goes to one of them, also while its body goes on."""
    seen = []

    async def worker(client):
        async for message in client.messages():
            seen.append(message.payload)
            await aio.sleep_ms(100)

    client, stream = await desk.connected()
    workers = [asyncio.create_task(worker(client)) for _ in range(2)]
    await aio.sleep_ms(1)  # both wait
    stream.feed(qos1(), wire.publish(b"t", b"b", 1, 8), wire.publish(b"t", b"c", 2, 9))
    await desk.until(lambda: len(stream.sent) == 12)
    assert sorted(seen) == [b"a", b"b", b"c"]
    await client.disconnect()
    await asyncio.gather(*workers)


@on_desk(2)
async def test_message_that_comes_again_is_handed_over_before_those_that_are_still_to_come(desk):
    """As the broker sends them on this connection, and wants them acknowledged."""
    client, first, second = await desk.kept()
    first.feed(qos1(), wire.publish(b"t", b"b", 1, 8))
    await desk.until(lambda: client.stats.received == 2)
    first.feed(b"")
    await desk.until(lambda: first.is_closed and client.is_connected)
    second.feed(wire.publish(b"t", b"a", 1, 7, 1))
    await desk.until(lambda: client.stats.received == 3)
    payloads = []
    async for message in client.messages():
        payloads.append(message.payload)
        if len(payloads) == 2:
            break
    assert payloads == [b"a", b"b"]


@on_desk()
async def test_message_has_a_copy_of_its_properties(desk):
    client, stream = await desk.connected()
    said = wire.properties(content_type=b"c", correlation_data=b"d")
    stream.feed(wire.publish(b"t", b"a", 1, 7, properties=said))
    stream.feed(wire.publish(b"t", b"b", 1, 8))
    seen = []
    async for message in client.messages():
        seen.append((message.properties.content_type, message.properties.correlation_data))
        if len(seen) == 2:
            message.done()
            break
    assert seen == [(b"c", b"d"), (None, None)]
    stream.take()
    await client.publish(b"t", b"x", qos=1, properties=encode(content_type="c"))
    said = wire.properties(content_type=b"c")
    await desk.until(lambda: wire.publish(b"t", b"x", 1, 1, properties=said) in stream.sent)


@on_desk()
async def test_message_says_that_it_was_retained(desk):
    client, stream = await desk.connected()
    stream.feed(wire.publish(b"t", b"a", retain=1), wire.publish(b"t", b"b"))
    seen = []
    async for message in client.messages():
        seen.append((message.payload, message.retain))
        if len(seen) == 2:
            break
    assert seen == [(b"a", True), (b"b", False)]
