"""Faults that an adversary found: who leaves while others connect, and streams that fail."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import on_desk, raised_by
from umqtt31 import CLOSED


@on_desk(2)
async def test_disconnect_before_connect_is_written_ends_that_connect(desk):
    """As with TLS, whose handshake takes no CONNECT yet."""
    client, stream = desk.client, desk.streams[0]
    stream.is_blocked = True
    stream.feed_instead(None)
    connecting = asyncio.create_task(client.connect(True, desk.open))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not connecting.done()
    await client.disconnect()
    stream.is_blocked = False
    stream.answer(wire.connect(level=desk.level), wire.connack())
    assert (await raised_by(connecting)).code == CLOSED
    await aio.sleep_ms(5000)
    assert stream.is_closed and stream.take() == b"" and not client.is_connected
    assert desk.open() is desk.streams[1]  # nobody has asked for it


@on_desk(2)
async def test_disconnect_while_connect_waits_for_the_one_before_to_leave_ends_it(desk):
    client, stream = await desk.connected()
    stream.is_blocked = True
    client.publish_nowait(b"t", b"a")
    connecting = asyncio.create_task(client.connect(True, desk.open))
    await asyncio.sleep(0)
    await client.disconnect()
    assert (await raised_by(connecting)).code == CLOSED
    assert not client.is_connected and desk.open() is desk.streams[1]


@on_desk(connect_timeout=10)
async def test_disconnect_from_a_stream_that_takes_none_does_not_stop_the_others(desk):
    client, stream = await desk.connected()
    stream.is_blocked = True
    steps = []

    async def others():
        while True:
            steps.append(desk.clock.now_ms)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    await client.disconnect()
    beside.cancel()
    assert stream.is_closed
    # All others have their turn within far less than connect_timeout.
    assert len(steps) > 1 and max(b - a for a, b in zip(steps, steps[1:])) < 1000


@on_desk(2)
async def test_c2b_qos0_is_sent_once_when_the_stream_raises_behind_it(desk):
    client, first = await desk.connected()
    second = desk.streams[1]
    second.feed_instead(wire.connack())
    write = first.write

    def failing(buf, at, n):
        write(buf, at, n)
        raise OSError(104)

    first.write = failing
    assert await client.publish(b"t", b"a") == 0
    await client.publish(b"t", b"b")
    assert first.take() == wire.publish(b"t", b"a")
    assert second.take().endswith(wire.publish(b"t", b"b"))
    assert wire.publish(b"t", b"a") not in second.sent
    await client.disconnect()


@on_desk(2)
async def test_up_and_down_are_set_as_connections_come_and_go(desk):
    """As mqtt_as has them: the program clears them."""
    client, (first, second) = desk.client, desk.streams
    seen = []

    async def watch(event, name):
        while True:
            await event.wait()
            event.clear()
            seen.append(name)

    watching = [
        asyncio.create_task(watch(client.up, "up")),
        asyncio.create_task(watch(client.down, "down")),
    ]
    await client.connect(False, desk.open)
    await desk.until(lambda: seen == ["up"])
    first.feed(b"")
    await desk.until(lambda: seen == ["up", "down", "up"])
    assert second.sent
    await client.disconnect()
    await desk.until(lambda: seen == ["up", "down", "up", "down"])
    for one in watching:
        one.cancel()
