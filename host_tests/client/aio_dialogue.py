"""The asyncio front and its scripted streams, on a clock that its own sleeping turns.

Runs under CPython and under MicroPython, as `dialogue.py` does for the waiting client.
"""

import asyncio

import umqtt31
import umqtt31.aio as aio
from host_tests.client import dialogue, wire
from host_tests.client.dialogue import class_for, turn, with_ids_from_1
from host_tests.standin.clock import Clock
from host_tests.standin.stream import ScriptedStream

_MOST_S = 5  # for one that hangs


# What the broker sends, of the level that is spoken.
def qos1():
    return wire.publish(b"t", b"a", 1, 7)


def qos2(dup=0):
    return wire.publish(b"t", b"a", 2, 7, dup)


def qos2_next():
    return wire.publish(b"t", b"b", 2, 8)


async def raised_by(awaitable):
    """-> the exception that the call raises; a call that raises none is an error."""
    try:
        await awaitable
    except Exception as error:
        return error
    raise AssertionError("nothing raised")


class Desk:
    """`client`, and `streams`, one for each connection, that accept it."""

    def __init__(self, streams=1, **options):
        self.clock = Clock()
        self.level = level = options.setdefault("level", dialogue.default_level)
        base = class_for(level, options)
        make = aio.MQTTClient if base is umqtt31.MQTTClient else aio.extend(base)
        turn(self.clock)
        aio.sleep_ms = asyncio.sleep_ms
        wire.speak(level)
        self.client = with_ids_from_1(make, b"dev", "broker", **options)
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
        """Run `main(desk)`, which must come to its end; then the client disconnects."""
        real = aio.sleep_ms
        aio.sleep_ms = self.sleep_ms
        try:
            return asyncio.run(asyncio.wait_for(self._whole(main), _MOST_S))
        finally:
            aio.sleep_ms = real

    async def _whole(self, main):
        found = await main(self)
        await self.client.disconnect()
        return found

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


def on_desk(streams=1, **options):
    """-> what makes a test of `async def test_…(desk)`."""

    def decorate(main):
        def test():
            Desk(streams, **options).run(main)

        return test

    return decorate
