"""Messages whose bodies run, or are done, while one connection ends and the next begins."""

from host_tests.client import dialogue, wire
from host_tests.client.aio_dialogue import Desk, on_desk, qos2, qos2_next
from host_tests.standin.store import KeepingStore

LEVEL_5 = (
    "test_new_session_on_a_connection_that_is_lost_at_once_knows_no_old_id_either",
    "test_qos2_of_a_clean_session_that_was_kept_is_not_handed_over_twice",
)


def test_qos2_done_on_the_next_connection_when_device_resets_is_not_handed_over_again():
    """Its PUBLISH comes again only in the next life, to the store that was told of it."""
    store = KeepingStore()

    async def first_life(desk):
        client, first, second = await desk.kept()
        first.feed(qos2())
        async for message in client.messages():
            first.feed(b"")
            await desk.until(lambda: first.is_closed and client.is_connected)
            message.done()
            break
        await desk.until(lambda: store.held)
        await client.disconnect()

    async def second_life(desk):
        client, first = await desk.kept()
        first.take()
        first.feed(qos2(1))
        await desk.until(lambda: first.sent)
        assert first.take() == b"\x50\x02\x00\x07"
        assert (client.stats.duplicates, client.stats.received) == (1, 0)
        await client.disconnect()

    Desk(2, store=store).run(first_life)
    desk = Desk(1, store=store)
    desk.streams[0].feed_instead(wire.connack(0, int(dialogue.default_level > 3)))
    desk.run(second_life)


@on_desk(4, keepalive=0, max_awaiting_rel=1, await_rel_timeout=86400)
async def test_qos2_without_a_place_is_not_held_before_it_came_again(desk):
    # All three are done without a connection, and there is a place for one.
    first, *later = desk.streams
    client = desk.client
    await client.connect(False, desk.open)
    first.feed(*[wire.publish(b"t", b"%d" % k, 2, k) for k in (1, 2, 3)])
    async for message in client.messages():
        if message.payload == b"1":
            await desk.until(lambda: client.stats.received == 3)
            first.feed(b"")
            await desk.until(lambda: first.is_closed)
        if message.payload == b"3":
            message.done()
            break
    for k in (1, 2, 3):
        stream = later[k - 1]
        # The broker sends again what it has no PUBREC for.
        stream.feed(*[wire.publish(b"t", b"%d" % n, 2, n, 1) for n in range(k, 4)])
        await desk.until(lambda: b"\x50\x02\x00%c" % k in stream.sent)  # noqa: B023
        stream.feed(b"\x62\x02\x00%c" % k)
        await desk.until(lambda: b"\x70\x02\x00%c" % k in stream.sent)  # noqa: B023
    assert client.stats.received == 3


@on_desk(2)
async def test_qos2_of_a_clean_session_that_was_kept_is_not_handed_over_twice(desk):
    first, second = desk.streams
    client = desk.client
    client.v5.session_expiry = 3600
    await client.connect(True, desk.open)
    first.feed(qos2())
    async for _ in client.messages():
        await client.disconnect()
    await client.connect(False)
    second.feed(qos2(1), qos2_next())
    async for message in client.messages():
        assert message.payload == b"b"
        break
    await desk.until(lambda: b"\x50\x02\x00\x07" in second.sent)


def write_once(stream):
    """The `write()` of a stream that is lost behind the first call."""

    def write(buf, off, n):
        if stream.sent:
            raise OSError(104)
        stream.sent += bytes(buf[off : off + n])
        return n

    return write


@on_desk(3)
async def test_new_session_on_a_connection_that_is_lost_at_once_knows_no_old_id_either(desk):
    # The connection that says that the session is a new one does not live to be used.
    first, second, third = desk.streams
    client = desk.client
    await client.connect(False, desk.open)
    first.feed(qos2())
    payloads = []
    second.feed_instead(wire.connack())
    async for message in client.messages():
        payloads.append(message.payload)
        if len(payloads) == 2:
            break
        client.publish_nowait(b"u", b"", qos=1)
        first.feed(b"")
        second.write = write_once(second)
        third.feed(wire.publish(b"t", b"b", 2, 7))
        await desk.until(lambda: second.is_closed and client.is_connected)
    assert payloads == [b"a", b"b"]
