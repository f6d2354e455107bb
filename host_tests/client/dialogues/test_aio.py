"""The asyncio front against scripted streams, on a clock that its own sleeping turns."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import dialogue, wire
from host_tests.client.dialogue import clocked_modules, modules_with, with_ids_from_1
from tools.standin.clock import Clock
from tools.standin.stream import ScriptedStream
from umqtt31 import CLOSED, TOO_LARGE, MQTTError
from umqtt31.properties import encode


# What the broker sends, of the level that is spoken.
def qos1():
    return wire.publish(b"t", b"a", 1, 7)


def qos2(dup=0):
    return wire.publish(b"t", b"a", 2, 7, dup)


def qos2_next():
    return wire.publish(b"t", b"b", 2, 8)


LEVEL_5 = (
    "test_message_has_a_copy_of_its_properties",
    "test_message_that_a_body_refuses_is_answered_with_its_reason",
    "test_new_session_on_a_connection_that_is_lost_at_once_knows_no_old_id_either",
    "test_qos2_of_a_clean_session_that_was_kept_is_not_handed_over_twice",
    "test_qos2_refused_between_two_connections_is_handed_over_again_on_the_next",
)
BELOW_5 = ("test_message_cannot_be_refused_below_level_5",)


class Desk:
    """`client`, and `streams`, one for each connection, that accept it."""

    def __init__(self, streams=1, **options):
        self.clock = Clock()
        for module in clocked_modules():
            module.time = self.clock
        options.setdefault("level", dialogue.default_level)
        wire.speak(options["level"])
        self.client = with_ids_from_1(aio.MQTTClient, b"dev", "broker", **options)
        self.streams = [ScriptedStream() for _ in range(streams)]
        self._next = iter(self.streams)
        present = 1 if options["level"] > 3 else 0
        for k in range(streams):
            self.streams[k].feed(wire.connack(0, present if k else 0))

    def open(self):
        """The opener."""
        stream = next(self._next, None)
        if not stream:
            raise OSError(113)
        return stream

    async def connected(self):
        """-> the client, in a clean session, and its first stream, CONNECT taken from it."""
        await self.client.connect(True, self.open)
        self.streams[0].take()
        return self.client, self.streams[0]

    async def kept(self):
        """-> the client, in a session that lasts, and its streams."""
        await self.client.connect(False, self.open)
        return [self.client] + self.streams

    async def sleep_ms(self, ms):
        """In place of asyncio's: it turns the clock and lets the others go on."""
        self.clock.sleep_ms(ms)
        await asyncio.sleep(0)

    def run(self, main):
        """Run `main(desk)`, in 5 seconds at most."""
        real = aio.sleep_ms
        aio.sleep_ms = self.sleep_ms
        try:
            return asyncio.run(asyncio.wait_for(main(self), 5))
        finally:
            aio.sleep_ms = real

    async def until(self, is_true):
        """Let all go on until it is so."""
        for _ in range(2000):
            if is_true():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never came")

    async def grant(self, stream, asked):
        """Answer each SUBSCRIBE to t at QoS 1 until the task `asked` is done: the client asks
        itself first, then for the caller."""
        request = wire.subscribe(0, (b"t", 1))[:2]
        while not asked.done():
            await self.until(lambda: asked.done() or request in stream.sent)
            if request in stream.sent:
                at = stream.sent.rindex(request)
                stream.feed(wire.suback(wire.read_id(stream.take()[at:]), 1))


def test_message_is_acknowledged_when_its_body_is_done():
    async def main(desk):
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

    Desk().run(main)


def test_next_message_acknowledges_the_one_before():
    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(qos1(), wire.publish(b"t", b"b", 1, 8))
        payloads = []
        async for message in client.messages():
            assert stream.take() == (b"\x40\x02\x00\x07" if payloads else b"")
            payloads.append(message.payload)
            if len(payloads) == 2:
                break
        assert payloads == [b"a", b"b"]
        await client.disconnect()

    Desk().run(main)


def test_acknowledgements_are_read_while_a_body_waits_for_room():
    # The window and the queue have room for two: the third publish() needs a PUBACK.
    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(*[wire.publish(b"t", b"a")] * 100)  # more than are copied out
        async for _ in client.messages():
            for k in range(2):
                client.publish_nowait(b"r", b"%d" % k, qos=1)
            stream.answer(stream.sent, b"\x40\x02\x00\x01")
            stream.feed(b"\x40\x02\x00\x01")
            assert await client.publish(b"r", b"2", qos=1) == 3
            break
        await client.disconnect()

    Desk(max_inflight=1, max_mqueue_len=1).run(main)


def test_qos2_again_on_the_next_connection_is_not_handed_over_twice():
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(qos2())
        payloads = []
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) == 2:
                break
            first.feed(b"")  # the link is lost while the body runs
            second.feed(qos2(1))
            await desk.until(lambda: first.is_closed and client.is_connected)
            second.take()
            await aio.sleep_ms(600)
            assert second.take() == b""
            second.feed(qos2_next())
        assert payloads == [b"a", b"b"]
        assert second.take() == b"\x50\x02\x00\x07"
        await client.disconnect()

    Desk(2).run(main)


def test_qos2_done_between_two_connections_is_only_answered_on_the_next():
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(qos2())
        async for message in client.messages():
            first.feed(b"")
            await desk.until(lambda: first.is_closed)
            message.done()
            break
        second.feed(qos2(1), qos2_next())
        async for message in client.messages():
            assert message.payload == b"b"
            break
        assert second.take()[-4:] == b"\x50\x02\x00\x07"
        await client.disconnect()

    Desk(2).run(main)


def test_new_session_of_the_broker_knows_no_id_of_the_old_one():
    async def main(desk):
        first, second = desk.streams
        client = desk.client
        await client.connect(True, desk.open)
        first.feed(qos2())
        payloads = []
        second._pieces[0] = wire.connack()
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) == 2:
                break
            first.feed(b"")
            second.feed(qos2())  # the id is free, so it is another message
            await desk.until(lambda: first.is_closed and client.is_connected)
            second.take()
        assert payloads == [b"a", b"a"]
        assert second.take() == b""  # nothing of the first one's
        await client.disconnect()

    Desk(2).run(main)


def test_acknowledgements_leave_in_the_order_of_the_connection_that_they_leave_on():
    # "a" was done, but its PUBACK is lost: it comes again before "b", whose body was left.
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(wire.publish(b"t", b"a", 1, 7), wire.publish(b"t", b"b", 1, 8))
        async for message in client.messages():
            if message.payload == b"b":
                break
            first.write_error = OSError(104)
        second.feed(wire.publish(b"t", b"a", 1, 7, 1), wire.publish(b"t", b"b", 1, 8, 1))
        await desk.until(lambda: first.is_closed and client.stats.received == 4)
        second.take()
        payloads = []
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) == 2:
                message.done()
                break
        assert payloads == [b"a", b"b"]
        await desk.until(lambda: len(second.sent) == 8)
        assert second.take() == b"\x40\x02\x00\x07\x40\x02\x00\x08"
        await client.disconnect()

    Desk(2).run(main)


def test_new_message_with_the_id_of_one_whose_body_runs_is_handed_over():
    # The broker lost its session, and cannot say so at level 3.
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(qos1())
        payloads = []
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) == 2:
                message.done()
                break
            first.feed(b"")
            second.feed(wire.publish(b"t", b"b", 1, 7))
            await desk.until(lambda: client.is_connected and first.is_closed)
            second.take()
            await aio.sleep_ms(600)
        assert payloads == [b"a", b"b"]
        await desk.until(lambda: second.sent)
        assert second.take() == b"\x40\x02\x00\x07"
        await client.disconnect()

    Desk(2).run(main)


def test_qos2_without_a_place_is_not_held_before_it_came_again():
    # All three are done without a connection, and there is a place for one.
    async def main(desk):
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
        await client.disconnect()

    Desk(4, keepalive=0, max_awaiting_rel=1, await_rel_timeout=86400).run(main)


def test_messages_that_are_done_and_wait_for_the_broker_do_not_stop_the_reading():
    # More than are taken at once are done without a connection, and there is a place for one.
    async def main(desk):
        client, first, second = await desk.kept()
        client.publish_nowait(b"t", b"", qos=1)
        waiting = asyncio.create_task(client.flush())  # so reading goes on
        first.feed(*[wire.publish(b"t", b"%d" % k, 2, k) for k in range(1, 19)])
        async for message in client.messages():
            if message.payload == b"1":
                await desk.until(lambda: client.stats.received == 18)
                first.feed(b"")
                await desk.until(lambda: first.is_closed)
                waiting.cancel()
            if message.payload == b"18":
                message.done()
                break
        second.feed(wire.publish(b"t", b"1", 2, 1, 1))
        await desk.until(lambda: b"\x50\x02\x00\x01" in second.sent)
        await client.disconnect()

    Desk(2, keepalive=0, max_awaiting_rel=1, await_rel_timeout=86400).run(main)


def test_loop_over_the_same_messages_gets_again_what_a_body_has_left():
    async def main(desk):
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
        await client.disconnect()

    Desk().run(main)


def test_qos2_of_a_clean_session_that_was_kept_is_not_handed_over_twice():
    async def main(desk):
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
        await client.disconnect()

    Desk(2).run(main)


def write_once(stream):
    """The `write()` of a stream that is lost behind the first call."""

    def write(buf, off, n):
        if stream.sent:
            raise OSError(104)
        stream.sent += bytes(buf[off : off + n])
        return n

    return write


def test_new_session_on_a_connection_that_is_lost_at_once_knows_no_old_id_either():
    # The connection that says that the session is a new one does not live to be used.
    async def main(desk):
        first, second, third = desk.streams
        client = desk.client
        await client.connect(False, desk.open)
        first.feed(qos2())
        payloads = []
        second._pieces[0] = wire.connack()
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
        await client.disconnect()

    Desk(3).run(main)


def test_publish_of_qos0_waits_for_the_connection():
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(b"")
        await desk.until(lambda: first.is_closed)
        assert await client.publish(b"t", b"a") == 0
        assert second.take().endswith(wire.publish(b"t", b"a"))
        assert client.stats.reconnects == 1
        await client.disconnect()

    Desk(2).run(main)


def test_publish_goes_on_when_a_full_stream_takes_more():
    async def main(desk):
        client, stream = await desk.connected()
        stream.is_blocked = True
        client.publish_nowait(b"t", b"a")
        waiting = asyncio.create_task(client.publish(b"t", b"b"))
        await aio.sleep_ms(50)
        assert stream.take() == b""
        stream.is_blocked = False
        await waiting
        assert stream.take() == wire.publish(b"t", b"a") + wire.publish(b"t", b"b")
        await client.disconnect()

    Desk().run(main)


def test_subscribe_goes_on_after_a_lost_connection():
    async def main(desk):
        client, first, second = await desk.kept()
        first.feed(b"")
        second.feed(None, None, None)
        asked = asyncio.create_task(client.subscribe(b"t", 1))
        await desk.grant(second, asked)
        assert await asked == [1]
        await client.disconnect()

    Desk(2).run(main)


def test_refusal_for_good_reaches_connect():
    async def main(desk):
        desk.streams[0]._pieces[0] = b"\x20\x02\x00\x05"
        try:
            await desk.client.connect(True, desk.open)
        except MQTTError as error:
            assert error.code == 5
        else:
            raise AssertionError("nothing raised")
        assert desk.streams[0].is_closed and not desk.client.is_connected

    Desk().run(main)


def test_connect_waits_until_there_is_a_network():
    async def main(desk):
        client = desk.client
        streams = [None, None, desk.streams[0]]

        def open_late():
            stream = streams.pop(0)
            if not stream:
                raise OSError(113)
            return stream

        assert await client.connect(True, open_late) is False
        assert client.is_connected and not streams
        await client.disconnect()

    Desk().run(main)


def test_connect_with_a_stream_in_place_of_what_opens_one_is_refused_by_name():
    async def main(desk):
        try:
            await desk.client.connect(True, desk.streams[0])
        except TypeError as error:
            assert "stream" in str(error)
        else:
            raise AssertionError("nothing raised")
        client, _ = await desk.connected()
        await client.disconnect()

    Desk().run(main)


def test_loop_with_a_wrong_filter_is_refused():
    """It would wait for ever, and all acknowledgements with it."""

    async def main(desk):
        client, _ = await desk.connected()
        for bad in ("", "a#", "a/#/b", b"a/b+"):
            try:
                client.messages(bad)
            except ValueError as error:
                assert "filter" in str(error)
            else:
                raise AssertionError("nothing raised")
        await client.disconnect()

    Desk().run(main)


def test_filter_of_a_loop_may_be_text():
    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(wire.publish(b"other", b"b"), qos1())
        async for message in client.messages("t/#"):
            assert message.payload == b"a"
            break
        try:
            client.messages(5)
        except TypeError as error:
            assert "pattern" in str(error)
        else:
            raise AssertionError("nothing raised")
        await client.disconnect()

    Desk().run(main)


def test_flush_waits_for_a_qos0_message_that_the_stream_has_not_taken():
    async def main(desk):
        client, stream = await desk.connected()
        stream.is_blocked = True
        client.publish_nowait(b"t", b"a")
        flushing = asyncio.create_task(client.flush())
        await aio.sleep_ms(1000)
        assert not flushing.done()
        stream.is_blocked = False
        await flushing
        assert stream.take() == wire.publish(b"t", b"a")
        await client.disconnect()

    Desk().run(main)


def test_tasks_begun_before_connect_wait_for_the_connection():
    async def main(desk):
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

    Desk().run(main)


def test_who_waits_is_told_when_connect_is_refused_or_given_up():
    async def main(desk):
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
        await client.disconnect()

    Desk().run(main)


def test_message_too_large_without_a_hook_is_told_and_the_next_is_handed_over():
    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(wire.publish(b"t", b"x" * 100, 1, 7), wire.publish(b"t", b"b", 1, 8))
        async for message in client.messages():
            assert message.payload == b"b"
            break
        assert stream.take() == b"\x40\x02\x00\x07"
        assert client.stats.oversize == 1 and client.last_error.code == 260
        assert client.is_connected and client.stats.reconnects == 0
        await client.disconnect()

    Desk(buffer_size=64).run(main)


class SocketOpener:
    """Opens the desk's stream, which to the client looks as if it had opened a socket."""

    def __init__(self, desk):
        self._open = desk.open
        self._stream = None

    def __call__(self):
        self._stream = self._open()
        return self._stream

    def __bool__(self):
        return not self._stream


def test_reader_that_found_its_connection_lost_waits_for_it_no_more():
    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        were_closed = []

        async def readable(raw):
            were_closed.append(raw.is_closed)
            await asyncio.sleep(0)
            stream.feed(b"")

        for module in modules_with("socket"):
            module.socket = None  # no network: the next connection has to fail
        real, aio.readable = aio.readable, readable
        try:
            await client.connect(True, SocketOpener(desk))
            await desk.until(lambda: stream.is_closed)
            await asyncio.sleep(0)
            await client.disconnect()
        finally:
            aio.readable = real
        assert were_closed == [False]

    Desk().run(main)


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
    desk.streams[1]._pieces[0] = wire.connack()
    desk.run(main)


def test_disconnect_ends_loops_and_tells_who_waits():
    async def main(desk):
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
        try:
            await flushing
        except MQTTError as error:
            assert error.code == 258
        else:
            raise AssertionError("nothing raised")

    Desk().run(main)


def test_waiting_for_room_wakes_the_reader_only_for_what_is_half_written():
    released = []

    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        await client.connect(True, desk.open)
        await client.publish(b"t", b"a", qos=1)
        waiting = asyncio.create_task(client.publish(b"t", b"b", qos=1))
        await aio.sleep_ms(3000)
        assert not released
        stream.feed(b"\x40\x02\x00\x01")
        await waiting
        stream.is_blocked = True
        client.publish_nowait(b"t", b"c")
        waiting = asyncio.create_task(client.publish(b"t", b"d"))
        await desk.until(lambda: released)
        stream.is_blocked = False
        await waiting
        await client.disconnect()

    real = aio.release
    aio.release = released.append
    try:
        Desk(max_inflight=1, max_mqueue_len=0).run(main)
    finally:
        aio.release = real


def test_cancelled_publish_is_absent():
    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        await client.connect(True, desk.open)
        await client.publish(b"t", b"a", qos=1)
        stream.take()
        waiting = asyncio.create_task(client.publish(b"t", b"b", qos=1))
        await aio.sleep_ms(100)
        waiting.cancel()
        stream.feed(b"\x40\x02\x00\x01")
        await client.flush()
        assert stream.take() == b"" and client.stats.sent == 1
        assert await client.publish(b"t", b"c", qos=1) == 2
        await client.disconnect()

    Desk(max_inflight=1, max_mqueue_len=0).run(main)


def test_ordered_publishes_one_at_a_time():
    async def main(desk):
        client, stream = await desk.connected()
        for payload in (b"a", b"b"):
            await client.publish(b"t", payload, qos=1)
        assert stream.take() == wire.publish(b"t", b"a", 1, 1)
        stream.feed(b"\x40\x02\x00\x01")
        await desk.until(lambda: stream.sent)
        assert stream.take() == wire.publish(b"t", b"b", 1, 2)
        try:
            await client.publish(b"t", b"c")
        except ValueError:
            pass
        else:
            raise AssertionError("nothing raised")
        await client.disconnect()

    Desk(ordered=True).run(main)


def test_message_whose_body_was_left_comes_again_in_the_next_loop():
    async def main(desk):
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
        await client.disconnect()

    Desk().run(main)


def test_reconnected_returns_with_the_next_connection():
    async def main(desk):
        client, first = desk.client, desk.streams[0]
        await client.connect(False, desk.open)
        waiting = [asyncio.create_task(client.reconnected()) for _ in range(2)]
        await aio.sleep_ms(2000)
        assert not (waiting[0].done() or waiting[1].done())
        first.feed(b"")
        is_present = dialogue.default_level > 3
        for one in waiting:
            assert await one == is_present
        assert client.stats.reconnects == 1
        ended = asyncio.create_task(client.reconnected())
        await asyncio.sleep(0)
        await client.disconnect()
        try:
            await ended
        except MQTTError as error:
            assert error.code == 258
        else:
            raise AssertionError("nothing raised")

    Desk(2).run(main)


def test_who_waits_for_a_connection_lets_no_message_in():
    async def main(desk):
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
        await client.disconnect()

    Desk().run(main)


CALLS = {
    "connect": lambda client, desk: client.connect(True, desk.open),
    "publish": lambda client, desk: client.publish(b"t", b"b", qos=1),
    "subscribe": lambda client, desk: client.subscribe(b"t", 1),
    "flush": lambda client, desk: client.flush(),
    "reconnected": lambda client, desk: client.reconnected(),
    "messages": lambda client, desk: client.messages().__anext__(),
    "disconnect": lambda client, desk: client.disconnect(),
}


async def cancel_after(steps, desk, name):
    """Let the call go on for some steps, on a stream that takes little at a time, and
    cancel it -> was it done before?"""
    client, (first, second) = desk.client, desk.streams
    second._pieces[0] = wire.connack()
    if name != "connect":
        await client.connect(True, desk.open)
        first.write_most = 3
        client.publish_nowait(b"t", b"a", qos=1)
    call = asyncio.create_task(CALLS[name](client, desk))
    for _ in range(steps):
        await asyncio.sleep(0)
    is_done = call.done()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        pass
    # Whatever was cancelled, the client can be used, and all that was written is whole.
    if name == "disconnect":
        assert first.is_closed and not client.is_connected
    if not client.is_connected:
        await client.connect(True, desk.open)
    stream = second if first.is_closed else first
    await client.publish(b"t", b"last", qos=1)
    await desk.until(lambda: b"last" in stream.sent)
    for _ in range(20):  # and what goes behind it
        await asyncio.sleep(0)
    rest = bytearray(stream.take())
    packets = []
    while rest:
        packets.append(wire.take(rest))
        assert packets[-1], rest
    await client.disconnect()
    return is_done, packets


def test_call_cancelled_at_any_step_leaves_messages_whole_or_absent():
    for name in CALLS:
        for steps in range(1, 12):
            is_done, packets = Desk(2).run(lambda desk, n=steps: cancel_after(n, desk, name))  # noqa: B023
            payloads = [one[-1:] for one in packets if one[0] >> 4 == wire.PUBLISH]
            assert payloads in ([b"t"], [b"a", b"t"], [b"a", b"b", b"t"])
            assert name == "publish" or b"b" not in payloads
        # What nothing ever answers waits on.
        assert is_done == (name in ("connect", "publish", "disconnect")), name


# As mqtt_as has them, with its own values where a program sets none.
MQTT_AS_CONFIG = {
    "client_id": b"dev",
    "server": "broker",
    "port": 0,
    "user": "name",
    "password": "secret",
    "keepalive": 30,
    "ssl": False,
    "response_time": 7,
    "will": ("gone", "dev", True, 1),
}


def test_config_of_mqtt_as_makes_the_client_that_its_table_says():
    async def main(desk):
        config = MQTT_AS_CONFIG
        client = aio.MQTTClient(
            config["client_id"],
            config["server"],
            config["port"],
            config["user"] or None,
            config["password"] if config["user"] else None,
            config["keepalive"],
            config["ssl"],
            level=4,
            connect_timeout=config["response_time"],
        )
        client.set_last_will(*config["will"])
        await client.connect(True, desk.open)
        expected = wire.connect(
            b"dev",
            2 | 0xC0 | 4 | 1 << 3 | 1 << 5,
            30,
            b"gone",
            b"dev",
            b"name",
            b"secret",
            level=4,
        )
        assert desk.streams[0].take() == expected
        await client.disconnect()

    Desk(level=4).run(main)


def test_clean_init_without_clean_is_a_clean_connection_before_the_kept_ones():
    """mqtt_as: clean_init=True, clean=False."""

    async def main(desk):
        client, (first, second) = desk.client, desk.streams
        second._pieces[0] = wire.connack()
        await client.connect(True, desk.open)
        await client.disconnect()
        await client.connect(False, desk.open)
        assert [one.take()[9] & 2 for one in (first, second)] == [2, 0]
        await client.disconnect()

    Desk(2, level=4).run(main)


def test_publish_then_flush_returns_when_it_is_acknowledged():
    """mqtt_as: publish(qos=1) returns when PUBACK came."""

    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        await client.connect(True, desk.open)

        async def publish():
            await client.publish("t", "a", qos=1)
            await client.flush()

        publishing = asyncio.create_task(publish())
        await aio.sleep_ms(3000)
        assert not publishing.done()
        stream.feed(wire.puback(1))
        await publishing
        await client.disconnect()

    Desk().run(main)


def test_queue_that_is_full_discards_nothing_at_qos0_or_1():
    """mqtt_as: queue_len, beyond which the oldest messages are discarded."""

    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        await client.connect(True, desk.open)
        stream.feed(*[wire.publish(b"t", b"%d" % k, k & 1, k) for k in range(1, 60)])
        await aio.sleep_ms(5000)
        payloads = []
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) == 59:
                break
        assert payloads == [b"%d" % k for k in range(1, 60)]


def test_message_has_a_copy_of_its_properties():
    async def main(desk):
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
        await client.disconnect()

    Desk().run(main)


def refused(answer, packet_id, reason):
    return answer(packet_id, reason, wire.properties(reason_string=b"refused"))


def test_message_that_a_body_refuses_is_answered_with_its_reason():
    """MQTT-4.3.2-4, MQTT-4.3.3-8: in the order of arrival, and the next ones as usual."""

    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(qos1(), qos2_next(), wire.publish(b"t", b"c", 2, 9), wire.publish(b"t", b"d"))
        async for message in client.messages():
            if message.payload == b"d":
                message.refuse(0x80)  # at QoS 0 nobody is told
                break
            if message.payload != b"c":
                message.refuse(0x99 if message.qos == 1 else 0x83)
                assert stream.take() == (
                    refused(wire.puback, 7, 0x99) if message.qos == 2 else b""
                )
        await desk.until(lambda: stream.sent)
        assert stream.take() == refused(wire.pubrec, 8, 0x83) + wire.pubrec(9)
        # The id of a refused one is not held: what comes with it is a new message.
        stream.feed(wire.pubrel(9), wire.publish(b"t", b"e", 2, 8))
        async for message in client.messages():
            assert (message.payload, message.qos) == (b"e", 2)
            message.done()
            break
        await desk.until(lambda: len(stream.sent) >= 8)
        assert stream.take() == wire.pubcomp(9) + wire.pubrec(8)
        for reason in (0, 0x7F, 0x100):
            try:
                message.refuse(reason)
            except ValueError:
                continue
            raise AssertionError("taken for a reason to refuse: %d" % reason)
        await client.disconnect()

    Desk().run(main)


def test_qos2_refused_between_two_connections_is_handed_over_again_on_the_next():
    async def main(desk):
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
        await client.disconnect()

    Desk(2).run(main)


def test_message_cannot_be_refused_below_level_5():
    async def main(desk):
        client, stream = desk.client, desk.streams[0]
        await client.connect(True, desk.open)
        stream.feed(qos1())
        async for message in client.messages():
            try:
                message.refuse(0x80)
            except ValueError:
                break
            raise AssertionError("nobody would be told")
        await client.disconnect()

    Desk().run(main)


def test_message_says_that_it_was_retained():
    async def main(desk):
        client, stream = await desk.connected()
        stream.feed(wire.publish(b"t", b"a", retain=1), wire.publish(b"t", b"b"))
        seen = []
        async for message in client.messages():
            seen.append((message.payload, message.retain))
            if len(seen) == 2:
                break
        assert seen == [(b"a", True), (b"b", False)]
        await client.disconnect()

    Desk().run(main)


def test_publish_that_no_room_would_help_raises_at_once():
    async def main(desk):
        client, stream = await desk.connected()
        try:
            await client.publish(b"t", bytes(300), qos=1)
        except MQTTError as error:
            assert error.code == TOO_LARGE
        else:
            raise AssertionError("nothing raised")
        assert client.is_connected and stream.take() == b""
        await client.disconnect()

    Desk().run(main)


def test_disconnect_from_a_stream_that_takes_nothing_closes_it():
    async def main(desk):
        client, stream = await desk.connected()
        stream.is_blocked = True
        client.publish_nowait(b"t", b"a", qos=1)
        await client.disconnect()
        assert stream.is_closed and stream.take() == b""
        assert client.queued + client.inflight == 1  # for the next connection

    Desk().run(main)


def test_subscribe_that_is_not_answered_is_sent_on_the_next_connection():
    async def main(desk):
        client = desk.client
        await client.connect(False, desk.open)
        first, second = desk.streams
        asked = asyncio.create_task(client.subscribe(b"t", 1))
        await desk.grant(second, asked)
        assert first.is_closed and await asked == [1]
        await client.disconnect()

    Desk(streams=2, connect_timeout=3, keepalive=0).run(main)
