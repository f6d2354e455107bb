"""Plays the scripts of the asyncio front, `with aio`: what each step waits for goes on within it.

Sleeping turns the clock and lets the others go on.  Runs under CPython and MicroPython.
"""

import asyncio

import umqtt31
import umqtt31.aio as aio
from host_tests.client.dialogue import Dialogue, class_for
from host_tests.client.player import Player

_TURNS = 20  # of the loop, in which what may happen does
_MOST_TURNS = 2000


class Begun:
    """A call that goes on while the script does."""

    def __init__(self, loop, awaitable):
        self.is_done = False
        self.error = None
        self.task = loop.create_task(self._go(awaitable))

    async def _go(self, awaitable):
        try:
            self._found = await awaitable
        except (Exception, asyncio.CancelledError) as error:
            self.error = error
        self.is_done = True

    def result(self):
        if self.error:
            raise self.error
        return self._found


class AioDialogue(Dialogue):
    """`streams`: for so many connections; what the broker says on all but the first: `present`."""

    def __init__(self, clean, is_connected, streams=1, present=True, **options):
        self.loop = asyncio.new_event_loop()
        self._streams, self._present, self._said = streams, present, False
        options.setdefault("keepalive", 0)  # time goes by while the others have their turns
        super().__init__(clean, False, **options)
        aio.sleep_ms = self._sleep_ms
        if is_connected:
            self.run(self.connect(clean))

    def class_for(self, options, is_queueing):
        base = class_for(self.level, options, is_queueing)
        return aio.MQTTClient if base is umqtt31.MQTTClient else aio.extend(base)

    def listen(self):
        """Nothing: loops do."""

    async def _sleep_ms(self, ms):
        self.clock.sleep_ms(ms)
        await asyncio.sleep(0)

    def connect(self, clean):
        """-> what is to be awaited."""
        self._clean = clean
        return self.client.connect(clean, self.open)

    def open(self):
        if not self.sockets and self._streams and not self.unreachable:
            self._streams -= 1
            self.new_stream(self._clean, self._said and self.level > 3)
            self._said = self._present
        return self._open(None, None)

    def begin(self, awaitable):
        return Begun(self.loop, awaitable)

    def run(self, awaitable):
        """-> its result, which has to come."""
        begun = self.begin(awaitable)
        assert self.until(lambda: begun.is_done), "it never came"
        return begun.result()

    def until(self, is_true, turns=_MOST_TURNS):
        """Let all go on until it is so, or for so many turns -> is it?"""

        async def wait():
            for _ in range(turns):
                if is_true():
                    break
                await asyncio.sleep(0)

        self.loop.run_until_complete(wait())
        return is_true()

    def work(self):
        self.until(lambda: False, _TURNS)


class AioPlayer(Player):
    dialogue = AioDialogue

    def _client(self, clean=False, is_connected=False):
        self.begun, self.cancelled, self.over = [], [], None
        super()._client(clean, is_connected)

    def _do(self, action):
        found = super()._do(action)
        return self.d.run(found) if hasattr(found, "send") else found

    def _ask(self, name, rest):
        ask = super()._ask

        def is_so():
            try:
                ask(name, rest)
            except AssertionError:
                return False
            return True

        try:
            return ask(name, rest)
        except AssertionError:
            if not self.d.until(is_so):  # it may still come
                raise

    def do_begin(self, text):
        for call in text.split("; "):
            self.begun.append(self.d.begin(super()._do(call)))
        self.d.until(lambda: False, 3)

    def do_waits(self, _):
        """What was begun first has not ended."""
        assert not self.begun[0].is_done

    def do_ends(self, _):
        begun = self.begun.pop(0)
        assert self.d.until(lambda: begun.is_done), "it never ended"
        return begun.result()

    def do_cancel(self, _):
        begun = self.begun.pop(0)
        begun.task.cancel()
        self.cancelled.append(begun)

    def do_connect(self, text):
        return self.d.connect(text == "clean")

    def do_loop(self, text):
        self.over = self.d.client.messages(*text.split()).__aiter__()

    def do_again(self, _):
        """The loop begins anew, over the same."""
        self.over = self.over.__aiter__()

    async def do_next(self, _):
        """-> the payload of the next message of a loop of its own."""
        return (await self.d.client.messages().__anext__()).payload

    def do_leave(self, _):
        self.over = None

    def do_done(self, _):
        self.message.done()

    async def _next(self):
        return await self.over.__anext__()

    def do_a(self, text):
        """The loop hands over just these, each when the one before is done."""
        if not self.over:
            self.do_loop("")
        for _ in self._items(text):
            self.message = self.d.run(self._next())
            self.d.keep(self.message)
        super().do_a(text)

    def do_c(self, text):
        wanted = text[:-6] if text.endswith(" mixed") else text
        size = len(b"".join(self._packets(wanted.replace(" dup?", ""))))
        self.d.until(lambda: len(self.d.stream.sent) >= size > 0, 500 if size else _TURNS)
        super().do_c(text)

    def do_closed(self, _):
        stream = self.d.stream
        assert self.d.until(lambda: stream.is_closed)

    def do_end(self, _):
        self._all_said()
        self.d.run(self.d.client.disconnect())
        for one in self.begun:
            one.task.cancel()
        self.d.work()
        for one in self.cancelled:
            assert isinstance(one.error, asyncio.CancelledError), one.error
        self.d.loop.close()
        assert not self.hears or not self.d.messages
