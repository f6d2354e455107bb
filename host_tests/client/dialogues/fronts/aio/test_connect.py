"""connect(), reconnected(), disconnect(), and who waits for a connection."""

import asyncio
import sys

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import Desk, on_desk, qos1, raised_by
from host_tests.client.flash import FailingFlash
from host_tests.standin.sockets import Sockets
from umqtt31 import CLOSED, JOURNAL, MQTTError


@on_desk()
async def test_refusal_for_good_reaches_connect(desk):
    desk.streams[0].feed_instead(b"\x20\x02\x00\x05")
    assert (await raised_by(desk.client.connect(True, desk.open))).code == 5
    assert desk.streams[0].is_closed and not desk.client.is_connected


@on_desk()
async def test_connect_waits_until_there_is_a_network(desk):
    client = desk.client
    streams = [None, None, desk.streams[0]]

    def open_late():
        stream = streams.pop(0)
        if not stream:
            raise OSError(113)
        return stream

    assert await client.connect(True, open_late) is False
    assert client.is_connected and not streams


@on_desk()
async def test_connect_with_a_stream_in_place_of_what_opens_one_is_refused_by_name(desk):
    error = await raised_by(desk.client.connect(True, desk.streams[0]))
    assert isinstance(error, TypeError) and "stream" in str(error)
    client, _ = await desk.connected()


@on_desk()
async def test_tasks_begun_before_connect_wait_for_the_connection(desk):
    client, stream = desk.client, desk.streams[0]
    handed_over = []

    async def loop():
        async for message in client.messages():
            handed_over.append(message.payload)

    looping = asyncio.create_task(loop())
    waiting = [
        asyncio.create_task(one)
        for one in (client.publish(b"t", b"now"), client.subscribe(b"f"), client.reconnected())
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    await client.connect(True, desk.open)
    await desk.until(lambda: wire.subscribe(1, (b"f", 0)) in stream.sent)
    stream.feed(wire.suback(1, 0), qos1())
    await desk.until(lambda: handed_over)
    assert await waiting[0] == 0
    assert await waiting[1] == [0]
    assert await waiting[2] is False
    assert wire.publish(b"t", b"now") in stream.take()
    await client.disconnect()
    await looping
    assert handed_over == [b"a"]


@on_desk()
async def test_who_waits_is_told_when_connect_is_refused_or_given_up(desk):
    client = desk.client

    def no_network():
        raise OSError(113)

    for give_up in ("cancel", "disconnect"):
        connecting = asyncio.create_task(client.connect(True, no_network))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(client.publish(b"t", b"a"))
        await asyncio.sleep(0)
        if give_up == "cancel":
            connecting.cancel()
        else:
            await client.disconnect()
        codes = []
        for task in (connecting, waiting):
            try:
                await task
            except MQTTError as error:
                codes.append(error.code)
            except asyncio.CancelledError:
                codes.append(give_up)
        assert codes == [give_up if give_up == "cancel" else 258, 258]
    await client.connect(True, desk.open)
    assert await client.publish(b"t", b"b") == 0


@on_desk()
async def test_reader_that_found_its_connection_lost_waits_for_it_no_more(desk):
    client, stream = desk.client, desk.streams[0]
    were_closed = []

    async def readable(raw):
        were_closed.append(raw.is_closed)
        await asyncio.sleep(0)
        stream.feed(b"")

    def open_socket(server, port):
        return desk.open()

    sys.modules["socket"] = Sockets(open_socket)
    real, aio._readable, core, aio._core = aio._readable, readable, aio._core, True
    try:
        await client.connect()
        await desk.until(lambda: stream.is_closed)
        await asyncio.sleep(0)
        await client.disconnect()
    finally:
        aio._readable, aio._core = real, core
    assert were_closed == [False]


def test_connect_begun_anew_ends_the_one_before_and_disconnect_ends_all():
    async def main(desk):
        client = desk.client
        first = asyncio.create_task(client.connect(True, desk.open))
        second = asyncio.create_task(client.connect(True, desk.open))
        told = await asyncio.gather(first, second, return_exceptions=True)
        assert told[0].code == CLOSED and told[1] is False
        await client.disconnect()
        await aio.sleep_ms(3000)
        assert desk.open() is desk.streams[2]  # nobody has asked for it
        assert desk.streams[0].is_closed and desk.streams[1].is_closed

    desk = Desk(3)
    desk.streams[1].feed_instead(wire.connack())
    desk.run(main)


@on_desk()
async def test_disconnect_ends_loops_and_tells_who_waits(desk):
    client = desk.client
    await client.connect(True, desk.open)
    client.publish_nowait(b"t", b"a", qos=1)

    async def loop():
        async for message in client.messages():
            raise AssertionError(message)
        return True

    looping = asyncio.create_task(loop())
    flushing = asyncio.create_task(client.flush())
    await asyncio.sleep(0)
    await client.disconnect()
    assert await looping
    assert (await raised_by(flushing)).code == 258


def test_disconnect_tells_who_waits_also_when_the_journal_fails():
    flash = FailingFlash()

    async def main(desk):
        client, stream = await desk.connected()
        client.publish_nowait(b"t", b"a", qos=1)
        waiting = asyncio.create_task(client.reconnected())
        await asyncio.sleep(0)
        stream.feed(wire.puback(1))
        client.poll()  # that it is done is not on flash yet
        flash.failures = 1000
        assert (await raised_by(client.disconnect())).code == JOURNAL
        assert (await raised_by(waiting)).code == CLOSED
        assert stream.is_closed
        flash.failures = 0

    Desk(store=flash.journal()).run(main)


@on_desk(streams=2, connect_timeout=3, keepalive=0)
async def test_subscribe_that_is_not_answered_is_sent_on_the_next_connection(desk):
    client = desk.client
    await client.connect(False, desk.open)
    first, second = desk.streams
    cancelled, asked = [asyncio.create_task(client.subscribe(b"t", 1)) for _ in range(2)]
    await asyncio.sleep(0)
    cancelled.cancel()  # the other one waits for the answer to its request, too
    await desk.grant(second, asked)
    assert first.is_closed and await asked == [1]


def test_client_goes_on_in_another_loop():
    """Each time tasks wait for an answer and for each other."""
    desk = Desk(2)
    streams = list(desk.streams)

    async def main(desk):
        await desk.client.connect(False, desk.open)
        both = [asyncio.create_task(desk.client.subscribe(b"t", 1)) for _ in range(2)]
        stream = streams.pop(0)
        for asked in both:
            await desk.grant(stream, asked)
            assert await asked == [1]
        await desk.client.disconnect()

    desk.run(main)
    desk.run(main)
