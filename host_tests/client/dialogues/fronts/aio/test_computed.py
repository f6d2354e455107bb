"""What the scripts of asyncio cannot say: calls cancelled at any step, loops, turns of tasks."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_player import AioDialogue
from host_tests.client.dialogue import refuses
from host_tests.standin.store import KeepingStore
from host_tests.standin.stream import ScriptedStream

CALLS = {
    "connect": lambda d: d.connect(True),
    "publish": lambda d: d.client.publish(b"t", b"b", qos=1),
    "subscribe": lambda d: d.client.subscribe(b"t", 1),
    "flush": lambda d: d.client.flush(),
    "reconnected": lambda d: d.client.reconnected(),
    "messages": lambda d: d.client.messages().__anext__(),
    "disconnect": lambda d: d.client.disconnect(),
}


def cancel_after(steps, name):
    """Let the call go on for some steps, on a stream that takes little at a time, and
    cancel it -> was it done before, and what was written?"""
    d = AioDialogue(True, name != "connect", streams=2, present=False)
    first = d.stream
    if first:
        first.write_most = 3
        d.client.publish_nowait(b"t", b"a", qos=1)
    call = d.begin(CALLS[name](d))
    d.until(lambda: False, steps)
    is_done = call.is_done
    call.task.cancel()
    d.until(lambda: call.is_done)
    # Whatever was cancelled, the client can be used, and all that was written is whole.
    if name == "disconnect":
        assert first.is_closed and not d.client.is_connected
    if not d.client.is_connected:
        d.run(d.connect(True))
    d.run(d.client.publish(b"t", b"last", qos=1))
    assert d.until(lambda: b"last" in d.stream.sent)
    d.work()  # and what goes behind it
    rest = bytearray(d.stream.take())
    packets = []
    while rest:
        packets.append(wire.take(rest))
        assert packets[-1], rest
    d.run(d.client.disconnect())
    return is_done, packets


def test_call_cancelled_at_any_step_leaves_messages_whole_or_absent():
    for name in CALLS:
        for steps in range(1, 12):
            is_done, packets = cancel_after(steps, name)
            payloads = [one[-1:] for one in packets if one[0] >> 4 == wire.PUBLISH]
            assert payloads in ([b"t"], [b"a", b"t"], [b"a", b"b", b"t"])
            assert name == "publish" or b"b" not in payloads
        # What nothing ever answers waits on.
        assert is_done == (name in ("connect", "publish", "disconnect")), name


def test_reader_that_found_its_connection_lost_waits_for_it_no_more():
    d = AioDialogue(True, False)
    stream = d.new_stream(True)
    were_closed = []

    async def readable(raw):
        were_closed.append(raw.is_closed)
        await asyncio.sleep(0)
        stream.feed(b"")

    real, aio._readable, core, aio._core = aio._readable, readable, aio._core, True
    try:
        d.run(d.client.connect())
        assert d.until(lambda: stream.is_closed)
        d.run(d.client.disconnect())
    finally:
        aio._readable, aio._core = real, core
    assert were_closed == [False]


def test_client_goes_on_in_another_loop():
    """Each time tasks wait for an answer and for each other."""
    d = AioDialogue(False, False, streams=2)
    for _ in range(2):
        d.loop = asyncio.new_event_loop()
        d.run(d.connect(False))
        for asked in [d.begin(d.client.subscribe(b"t", 1)) for _ in range(2)]:
            # The client asks itself first, then for the caller.
            while d.until(lambda asked=asked: asked.is_done or d.stream.sent) and d.stream.sent:
                d.stream.feed(wire.suback(wire.read_id(d.stream.take()), 1))
            assert asked.result() == [1]
        d.run(d.client.disconnect())
        d.c2b(wire.disconnect())


def test_flood_keeps_no_task_waiting():
    d = AioDialogue(True, True)
    seen, turns = [], set()

    async def beside():
        while len(seen) < 100:
            turns.add(len(seen))
            await asyncio.sleep(0)

    async def read():
        async for message in d.client.messages():
            seen.append(message.packet_id)

    d.begin(beside())
    reading = d.begin(read())
    d.stream.feed(*[wire.publish(b"t", b"a", 1, k) for k in range(1, 101)])
    assert d.until(lambda: len(seen) == 100)
    d.run(d.client.disconnect())
    assert d.until(lambda: reading.is_done)
    assert seen == list(range(1, 101)) and len(turns) > 5


def test_loops_that_wait_for_the_same_messages_share_them():
    """Each goes to one of them, also while its body goes on."""
    d = AioDialogue(True, True)
    seen = []

    async def worker():
        async for message in d.client.messages():
            seen.append(message.payload)
            await aio.sleep_ms(100)

    workers = [d.begin(worker()) for _ in range(2)]
    d.run(aio.sleep_ms(1))  # both wait
    d.stream.feed(*[wire.publish(b"t", b"abc"[k : k + 1], 1 + k // 2, 7 + k) for k in range(3)])
    assert d.until(lambda: len(d.stream.sent) == 12)
    assert sorted(seen) == [b"a", b"b", b"c"]
    d.run(d.client.disconnect())
    assert d.until(lambda: workers[0].is_done and workers[1].is_done)


def test_body_whose_message_another_loop_took_acknowledges_nothing_more():
    """Its object has the message by then that a body of the other loop has."""
    d = AioDialogue(True, True)
    first = d.client.messages()
    d.stream.feed(wire.publish(b"t", b"a", 1, 7))
    d.run(first.__anext__())
    other = d.client.messages()
    d.run(other.__anext__())
    waiting = d.begin(other.__anext__())
    assert d.until(lambda: d.stream.sent)
    d.stream.feed(wire.publish(b"t", b"b", 1, 8))
    assert d.until(lambda: waiting.is_done)
    d.begin(first.__anext__())
    d.work()
    d.c2b(wire.puback(7))
    d.run(d.client.disconnect())


def test_messages_that_bodies_are_done_with_are_used_again():
    """Also those that are acknowledged before their bodies end."""
    d = AioDialogue(True, True)
    seen, acknowledged = [], []

    async def read():
        async for message in d.client.messages():
            seen.append(message)
            if len(seen) > 2:
                message.done()
                while len(acknowledged) < len(seen):
                    await asyncio.sleep(0)

    reading = d.begin(read())
    for k in range(1, 7):
        d.stream.feed(wire.publish(b"t", b"a", 1, k))
        assert d.until(lambda k=k: len(seen) == k and d.stream.sent)
        d.c2b(wire.puback(k))
        acknowledged.append(k)
    d.run(d.client.disconnect())
    assert d.until(lambda: reading.is_done)
    assert len({id(one) for one in seen}) == 1


def test_step_of_a_loop_cannot_be_a_task():
    """A message that comes as the task is cancelled would be lost."""
    d = AioDialogue(True, True)
    refuses(TypeError, "coroutine", d.loop.create_task, d.client.messages().__anext__())
    d.run(d.client.disconnect())


def test_disconnect_from_a_stream_that_takes_none_does_not_stop_the_others():
    d = AioDialogue(True, True, connect_timeout=10)
    d.stream.is_blocked = True
    steps = []

    async def others():
        while True:
            steps.append(d.clock.now_ms)
            await asyncio.sleep(0)

    beside = d.begin(others())
    d.run(d.client.disconnect())
    beside.task.cancel()
    d.work()
    assert d.stream.is_closed
    # All others have their turn within far less than connect_timeout.
    assert len(steps) > 1 and max(b - a for a, b in zip(steps, steps[1:])) < 1000


def test_disconnect_behind_a_body_records_it_without_a_connection():
    store = KeepingStore()
    d = AioDialogue(False, True, store=store)

    async def read():
        async for message in d.client.messages():
            while d.client.is_connected:
                await asyncio.sleep(0)
            message.done()
            break
        await d.client.disconnect()

    reading = d.begin(read())
    d.stream.feed(wire.publish(b"t", b"a", 2, 7))
    d.work()
    d.stream.feed(b"")
    assert d.until(lambda: reading.is_done)
    assert store.held == [7]


def test_config_of_mqtt_as_makes_the_client_that_its_table_says():
    d = AioDialogue(True, False, level=4)
    client = aio.MQTTClient(
        b"dev", "broker", 0, "name", "secret", 30, False, level=4, connect_timeout=7
    )
    client.set_last_will("gone", "dev", True, 1)
    stream = ScriptedStream()
    fields = [b"gone", b"dev", b"name", b"secret"]
    stream.answer(
        wire.connect(b"dev", 2 | 0xC0 | 4 | 8 | 32, 30, *fields, level=4), wire.connack()
    )
    d.run(client.connect(True, lambda: stream))
    d.run(client.disconnect())
    assert stream.has_answered()


def test_disconnect_behind_the_loop_says_goodbye_and_closes():
    """mqtt_as: `finally: client.close()`, behind a loop that ended with what main() raised."""
    d = AioDialogue(True, True, level=4)

    async def main():
        raise KeyboardInterrupt

    try:
        d.loop.run_until_complete(main())
    except KeyboardInterrupt:
        d.loop = asyncio.new_event_loop()
        d.run(d.client.disconnect())
    d.c2b(wire.disconnect())
    assert d.stream.is_closed
