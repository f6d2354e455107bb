"""Calls that are cancelled, at any step."""

import asyncio

import umqtt31.aio as aio
from host_tests.client import wire
from host_tests.client.aio_dialogue import Desk, on_desk


@on_desk(max_inflight=1, max_mqueue_len=0)
async def test_cancelled_publish_is_absent(desk):
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
    second.feed_instead(wire.connack())
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
