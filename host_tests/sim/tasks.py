"""Tasks: random programs of asyncio tasks over `umqtt31.aio`, in a world with faults, over
resets or without them.

The world's rules watch what the client writes, `programs` what bodies of loops are handed, and
the acknowledgements that follow them.  The event loop's time is the world's: nothing waits, one
seed is one run.
"""

import asyncio
import selectors
from contextlib import suppress
from functools import cache, partial

from host_tests.choice import class_for

from . import programs
from .clock import injected
from .device import HandlerError, Taking
from .network import DeviceReset
from .programs import RESETS, Handed
from .rules import Rules, Violation
from .world import World

from umqtt31 import JOURNAL, MQTTError, aio  # isort: skip

_HELD_S = 400  # that an id waits for its PUBREL: longer than all of a program should take


class TaskWorld(World):
    """A world whose time an event loop turns on."""

    is_over = False  # `main` is, or the boot

    def run_tasks(self, main):
        """Run `main()` with the tasks that it begins, anew at each boot; raises Violation."""
        with injected(self), suppress(Violation):  # the first one is in the record
            while self._run_boot(main):
                self._reset()
        if self.rules.violation:
            raise self.rules.violation
        self.rules.check_end()

    def _run_boot(self, main):
        # -> did it end with a reset?
        self.is_over = False
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            runner.get_loop().set_exception_handler(self._on_error)
            try:
                runner.run(self._watch(main))
            except DeviceReset:
                return True
        return False

    async def _watch(self, main):
        try:
            await main()
        finally:
            self.is_over = True

    def _on_error(self, loop, context):
        is_reset = isinstance(context.get("exception"), DeviceReset)
        if not (self.rules.violation or is_reset):
            error = Violation("tasks", f"{context['message']}: {context.get('exception')!r}")
            self.rules.violation = error


class Loop(asyncio.SelectorEventLoop):
    """An event loop on the time of `world`, which waiting turns on."""

    def __init__(self, world):
        self._world = world
        selector = selectors.SelectSelector()
        selector.select = self._select
        super().__init__(selector)

    def time(self):
        return self._world.now / 1000

    def _select(self, timeout=None):
        world = self._world
        error = world.rules.violation or (DeviceReset() if world.is_dead else None)
        if error and not world.is_over:
            world.is_over = True  # the tasks are cancelled now, which takes some turns
            raise error
        if world.is_dead:
            return []
        with suppress(Violation):  # it is raised the next time
            if timeout is None:
                world.rules.fail("termination", "every task waits, and for nothing")
            if timeout > 0:
                world.advance(max(1, round(timeout * 1000)))
        return []


class Watched(Taking):
    """The rules hear what is accepted."""

    def __init__(self, world, **options):
        self.world = world
        self._outgoing = world.rules.outgoing
        self._incoming = world.rules.incoming
        world.rules.know(options)
        world.rules.closers = 1  # it may close a connection whenever it likes
        # What is accepted is kept from the next turn on.
        self._is_deferred = world.device.is_deferred
        super().__init__("device", "broker", store=world.device.store(), **options)
        self.on_drop = self._outgoing.on_dropped

    async def connect(self, clean_session=True, *more):
        if clean_session:
            self._incoming.on_clean_connect()  # it forgets before the broker hears of it
        return bool(await super().connect(clean_session, *more))

    def publish_nowait(self, topic, msg, retain=False, qos=0, *more):
        if self.world.is_dead:
            raise DeviceReset
        flow = self._outgoing.on_accepting(topic + b"\0" + msg, qos, self.is_connected, 0)
        try:
            packet_id = super().publish_nowait(topic, msg, retain, qos, *more)
        except Exception:
            self._outgoing.on_refused(flow)
            raise
        self._outgoing.on_accepted(flow, packet_id, self._is_deferred)
        return int(packet_id)

    def _turn(self, reads=True):
        error = self.last_error
        handled = super()._turn(reads)
        if self.last_error in (None, error):
            self._outgoing.on_kept()
        return handled


@cache
def watched(level, named):
    base = class_for(level, dict.fromkeys(named))
    return type("Client", (Watched, aio.extend(base)), {})


class Program(programs.Program):
    """A random program of tasks that publish, loops whose bodies pause, publish, raise, break
    and are cancelled, and a client that says goodbye between."""

    _make_world = TaskWorld
    _settle_ms = 300_000
    _rules = partial(Rules, incoming=Handed)
    _up_qos = (1, 2)  # of the program's messages

    def __init__(self, seed, over=None):
        super().__init__(seed, over)
        dice = self._dice
        self._level = dice.choice((3, 4, 5))
        self._options = {"keepalive": 60, "buffer_size": 64, "await_rel_timeout": _HELD_S}
        if dice.random() < 0.4:
            self._options["max_awaiting_rel"] = dice.choice((1, 2, 8))
        self._filters = dice.choice(((None,), self._topics, (b"d/1", b"#")))
        self._published = 0

    def run(self):
        self._choose_store()
        self._have_sent()
        self.world.run_tasks(self._main)

    def _choose_store(self):
        self.world.device.store_kind = "ram"

    def _make_client(self):
        dice = self._dice
        return self._client_of(self._level, dice.choice((1, 4)), dice.choice((0, 2, 16)))

    def _client_of(self, level, window, queue):
        make = watched(level, frozenset(self._options) & {"overflow", "ordered"})
        sizes = {"max_inflight": window, "max_mqueue_len": queue}
        return make(self.world, level=level, **sizes, **self._options)

    def _begins_anew(self):
        # Is the session to be a clean one?
        return False

    async def _main(self):
        self._is_calm = self._is_ending = False
        self._client = client = self._make_client()
        await client.connect(self._begins_anew(), self.world.open_link)
        loops = [asyncio.create_task(self._consume(one)) for one in self._filters]
        publishers = [asyncio.create_task(self._publish()) for _ in range(2)]
        for _ in range(self._dice.randint(0, 4)):
            await self._pause(2000)
            if self._dice.random() < 0.2:
                self._dice.choice(publishers).cancel()
            if self._dice.random() < 0.5:
                await client.disconnect()
                await self._pause(1000)
                await client.connect(False)
            else:
                # A loop whose body is cancelled begins anew.
                k = self._dice.randrange(len(loops))
                loops[k].cancel()
                await asyncio.wait([loops[k]])
                loops[k] = asyncio.create_task(self._consume(self._filters[k]))
        self._is_calm = True
        await asyncio.wait(publishers)
        while not self._is_quiet():
            await asyncio.sleep(0.1)
        await client.flush()  # of what bodies published, too
        self._is_ending = True
        await client.disconnect()
        await asyncio.gather(*loops)
        await asyncio.sleep(1)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others or client.is_connected:
            self.world.rules.fail("tasks", f"left behind: {others}")

    _is_calm = _is_ending = False

    async def _pause(self, most_ms):
        await asyncio.sleep(self._dice.choice((0, 0, self._dice.randint(0, most_ms))) / 1000)

    async def _publish(self):
        for _ in range(self._dice.randint(0, 6)):
            with suppress(MQTTError):  # the client said goodbye while this waited
                await self._publish_one()
            await self._pause(800)

    async def _publish_one(self):
        self._published += 1
        payload = b"up %d" % self._published
        await self._client.publish(b"u", payload, False, self._dice.choice(self._up_qos))

    async def _consume(self, pattern):
        messages = self._client.messages(pattern)
        while not self._is_ending:
            with suppress(HandlerError, MQTTError):
                async for message in messages:
                    if await self._body(message):
                        break
            await self._pause(300)
            if self._dice.random() < 0.5:
                messages = self._client.messages(pattern)

    async def _body(self, message):
        # -> is the loop to be left?
        if self.world.is_dead:
            raise DeviceReset
        bodies = self.world.rules.incoming
        bodies.on_handed(message.topic, message.payload)
        what = self._dice.random()
        try:
            if what < 0.5:
                await self._pause(1500)
            elif what < 0.65:
                await self._publish_one()
            if not self._is_calm:
                if what > 0.94:
                    raise HandlerError
                if what > 0.88:
                    bodies.on_left(message.topic, message.payload)
                    return True
        except (HandlerError, asyncio.CancelledError, MQTTError):
            bodies.on_left(message.topic, message.payload)
            raise
        bodies.on_done(message.topic, message.payload)
        if what > 0.84:
            message.done()
            return True
        return False


class Rebooting(Program):
    """A random program of tasks with a store that outlives resets.

    Each boot begins the tasks anew over what the store has kept, mostly with other settings;
    what was accepted arrives, and what was acknowledged is not handed over again.
    """

    def _choose_faults(self):
        found = super()._choose_faults()
        for place, reach in RESETS:
            for _ in range(self._dice.randint(0, 3)):
                self._add_reset(found, place, reach)
        return found

    def _choose_store(self):
        dice = self._dice
        device = self.world.device
        device.store_kind = dice.choice(("log", "journal"))
        device.is_deferred = dice.random() < 0.4
        self._is_ordered = dice.random() < 0.2
        if self._is_ordered:
            self._options["ordered"] = True
            self._up_qos = (dice.choice((1, 2)),)
        elif dice.random() < 0.3:
            self._options["overflow"] = dice.choice(("drop_oldest", "latest"))

    def _make_client(self):
        # A journal with messages is not for another level, from or to 5.
        level = self._dice.choice((3, 4, 5, self._level, self._level))
        if (level == 5) != (self._level == 5) and self.world.device.store_kind == "log":
            level = self._level
        window = 1 if self._is_ordered else self._dice.choice((1, 4))
        sizes = window, 20 - window  # all that an earlier boot took finds room
        try:
            client = self._client_of(level, *sizes)
        except MQTTError as error:
            if error.code != JOURNAL or level == self._level:
                raise
            return self._client_of(self._level, *sizes)
        self._level = level
        return client

    def _begins_anew(self):
        return self._dice.random() < 0.15
