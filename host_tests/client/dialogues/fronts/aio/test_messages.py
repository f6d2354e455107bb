"""The loop over messages: when it acknowledges, what it hands over, with which properties."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import on_desk, qos1


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
