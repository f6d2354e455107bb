"""publish() and flush(): what they wait for, and what they refuse at once."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import on_desk, raised_by
from umqtt31 import TOO_LARGE


@on_desk(2)
async def test_publish_of_qos0_waits_for_the_connection(desk):
    client, first, second = await desk.kept()
    first.feed(b"")
    await desk.until(lambda: first.is_closed)
    assert await client.publish(b"t", b"a") == 0
    assert second.take().endswith(wire.publish(b"t", b"a"))
    assert client.stats.reconnects == 1


@on_desk()
async def test_publish_goes_on_when_a_full_stream_takes_more(desk):
    client, stream = await desk.connected()
    stream.is_blocked = True
    client.publish_nowait(b"t", b"a")
    waiting = asyncio.create_task(client.publish(b"t", b"b"))
    await aio.sleep_ms(50)
    assert stream.take() == b""
    stream.is_blocked = False
    await waiting
    assert stream.take() == wire.publish(b"t", b"a") + wire.publish(b"t", b"b")


@on_desk()
async def test_flush_waits_for_a_qos0_message_that_the_stream_has_not_taken(desk):
    client, stream = await desk.connected()
    stream.is_blocked = True
    client.publish_nowait(b"t", b"a")
    flushing = asyncio.create_task(client.flush())
    await aio.sleep_ms(1000)
    assert not flushing.done()
    stream.is_blocked = False
    await flushing
    assert stream.take() == wire.publish(b"t", b"a")


@on_desk(ordered=True)
async def test_ordered_publishes_one_at_a_time(desk):
    client, stream = await desk.connected()
    for payload in (b"a", b"b"):
        await client.publish(b"t", payload, qos=1)
    assert stream.take() == wire.publish(b"t", b"a", 1, 1)
    stream.feed(b"\x40\x02\x00\x01")
    await desk.until(lambda: stream.sent)
    assert stream.take() == wire.publish(b"t", b"b", 1, 2)
    assert isinstance(await raised_by(client.publish(b"t", b"c")), ValueError)


@on_desk()
async def test_publish_that_no_room_would_help_raises_at_once(desk):
    client, stream = await desk.connected()
    assert (await raised_by(client.publish(b"t", bytes(300), qos=1))).code == TOO_LARGE
    assert client.is_connected and stream.take() == b""
