"""Tasks: random programs of asyncio tasks over `umqtt31.aio`, in a world with faults.

The world's rules watch what the client writes; for what bodies of loops are handed, and the
acknowledgements that follow them, there are rules of their own here.  The event loop's time
is the world's: nothing waits, one seed is one run.
"""

import asyncio
import random
import selectors
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from tools import library  # noqa: F401 - makes umqtt31 importable
from tools.standin import packets as p

from .clock import injected
from .faults import Fault, fault
from .incoming import Incoming
from .network import Link
from .record import Record, Violation
from .rules import Rules
from .world import World

from umqtt31 import MQTTError, aio, alias, giveup, terms, v5  # isort: skip # noqa: F401 - of the simulated

_MOST_S = 300  # for all of a program, faults included
_TOPICS = (b"d/1", b"d/2")
_BREAKS = (("close", "up"), ("close", "down"), ("tear", "up"), ("tear", "down"), ("restart", "up"))
_DELAYS = (("stall", "up"), ("stall", "down"), ("split", "up"), ("jam", "up"), ("narrow", "up"))


class BodyError(Exception):
    """What a body raises where the program says so."""


class Bodies(Incoming):
    """Judges what bodies are handed, and what is acknowledged when."""

    def __init__(self, record: Record):
        super().__init__(record)
        self._done: set[bytes] = set()
        self._handed: Counter[bytes] = Counter()
        self._left: Counter[bytes] = Counter()  # bodies that were left, so that it comes again

    def on_publish(self, link: Link, packet: bytes) -> None:
        """PUBLISH was read."""
        qos, packet_id, topic, payload = p.publish_fields(packet, self._record.level)
        if qos:
            kind = p.PUBACK if qos == 1 else p.PUBREC
            link.notes.owed[kind].append((packet_id, topic + b"\0" + payload))

    def on_pubrel(self, link: Link, packet: bytes) -> None:
        """PUBREL was read."""

    def on_answer(self, link: Link, packet: bytes) -> None:
        """PUBACK, PUBREC or PUBCOMP goes out."""
        kind, packet_id = packet[0] >> 4, p.read_id(packet)
        if kind == p.PUBCOMP:
            return
        owed = link.notes.owed[kind]
        if not owed or owed[0][0] != packet_id:
            rule = "MQTT-4.6.0-2" if kind == p.PUBACK else "MQTT-4.6.0-3"
            self._record.fail(rule, f"{p.NAMES[kind]} {packet_id}, owed are {owed}")
        key = owed.pop(0)[1]
        if key not in self._done:
            self._record.fail("MQTT-4.3.2-4", f"{key!r} is acknowledged before its body is done")

    def on_body(self, message: aio.Message) -> None:
        """A body begins with this message."""
        key = message.topic + b"\0" + message.payload
        self._handed[key] += 1
        if self.messages[key].qos == 2 and self._handed[key] > 1 + self._left[key]:
            self._record.fail("MQTT-4.3.3-10", f"{key!r} is handed over again")

    def on_left(self, message: aio.Message) -> None:
        """Its body was left without being done."""
        self._left[message.topic + b"\0" + message.payload] += 1

    def on_done(self, message: aio.Message) -> None:
        """Its body is done."""
        self._done.add(message.topic + b"\0" + message.payload)

    def check_end(self) -> None:
        """Nothing that the broker had is missing."""
        for key, message in self.messages.items():
            if message.qos and key not in self._done:
                self._record.fail(f"31-4.1-Q{message.qos}", f"{message} is lost")


class TaskRules(Rules):
    """The rules of a world whose client hands messages to bodies."""

    _make_incoming = Bodies
    incoming: Bodies


class TaskWorld(World):
    """A world whose time an event loop turns on."""

    _make_rules = TaskRules
    rules: TaskRules
    is_over = False  # `main` is

    def run_tasks(self, main: Coroutine) -> None:
        """Run `main` with the tasks that it begins; raises Violation."""
        with (
            injected(self),
            suppress(Violation),  # the first one is in the record
            asyncio.Runner(loop_factory=lambda: Loop(self)) as runner,
        ):
            runner.get_loop().set_exception_handler(self._on_error)
            runner.run(self._limited(main))
        if self.rules.record.violation:
            raise self.rules.record.violation
        self.rules.check_end()

    async def _limited(self, main: Coroutine) -> None:
        try:
            async with asyncio.timeout(_MOST_S):
                await main
        except TimeoutError:
            with suppress(Violation):
                self.rules.fail("termination", "faults are over, and still not all is done")
        finally:
            self.is_over = True

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.rules.record.violation:
            error = Violation("tasks", f"{context['message']}: {context.get('exception')!r}")
            self.rules.record.violation = error


class _Selector(selectors.SelectSelector):
    # Waiting turns the world on.

    def __init__(self, world: TaskWorld):
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list:
        violation = self._world.rules.record.violation
        if violation and not self._world.is_over:
            self._world.is_over = True  # the tasks are cancelled now, which takes some turns
            raise violation
        if timeout is None:
            self._world.rules.fail("termination", "every task waits, and for nothing")
        if timeout > 0:
            self._world.advance(max(1, round(timeout * 1000)))
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop on the time of `world`."""

    def __init__(self, world: TaskWorld):
        super().__init__(_Selector(world))
        self._world = world

    def time(self) -> float:
        """Seconds of the world."""
        return self._world.now / 1000


class Client(aio.MQTTClient):
    """A watched client: the rules hear what is accepted."""

    def __init__(self, world: World, **options: Any):
        self._outgoing = world.rules.outgoing
        world.rules.keepalive_ms = 1000 * options["keepalive"]
        world.rules.outgoing.window = options["max_inflight"]
        world.rules.closers = 1  # it may close a connection whenever it likes
        super().__init__("device", "broker", **options)

    def publish_nowait(self, topic: bytes, msg: bytes, retain: bool = False, qos: int = 0) -> int:  # type: ignore[override]
        """As the client's."""
        flow = self._outgoing.on_accepting(topic + b"\0" + msg, qos, self.is_connected, 0)
        try:
            packet_id = super().publish_nowait(topic, msg, retain, qos)
        except Exception:
            self._outgoing.on_refused(flow)
            raise
        self._outgoing.on_accepted(flow, packet_id, False)
        self._outgoing.on_kept()
        return int(packet_id)


class Program:
    """A random program, the same for the same seed: tasks that publish, loops whose bodies
    pause, publish, raise, break and are cancelled, and a client that says goodbye between."""

    def __init__(self, seed: int, is_traced: bool = False):
        self._dice = dice = random.Random(seed)
        self.faults = _faults(dice)
        self.world = TaskWorld(
            seed=seed,
            faults=self.faults,
            latency_ms=dice.choice((1, 30)),
            serve=dice.choice((1, 4, 20)),
            reuses_ids=dice.random() < 0.5,
            is_traced=is_traced,
        )
        options: dict[str, Any] = {"level": dice.choice((3, 4, 5)), "await_rel_timeout": 86400}
        if dice.random() < 0.4:
            options["max_awaiting_rel"] = dice.choice((1, 2, 8))
        self._options = options
        self._filters: tuple[bytes | None, ...] = dice.choice(((None,), _TOPICS, (b"d/1", b"#")))
        self._published = 0

    def run(self) -> None:
        """Run it to its end; raises Violation."""
        for number in range(self._dice.randint(1, 24)):
            topic, qos = self._dice.choice(_TOPICS), self._dice.choice((1, 2))
            delay_ms = self._dice.choice((0, 0, self._dice.randint(0, 4000)))
            send = partial(self.world.send, topic, b"%d" % number, qos)
            self.world.call(delay_ms, send)
        self.world.run_tasks(self._main())

    async def _main(self) -> None:
        client = Client(
            self.world,
            keepalive=60,
            buffer_size=64,
            max_inflight=self._dice.choice((1, 4)),
            max_mqueue_len=self._dice.choice((0, 2, 16)),
            **self._options,
        )
        self._client = client
        await client.connect(False, self.world.open_link)
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
        await client.flush()
        while not self._is_over():
            await asyncio.sleep(0.1)
        self._is_ending = True
        await client.disconnect()
        await asyncio.gather(*loops)
        await asyncio.sleep(1)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others or client.is_connected:
            self.world.rules.fail("tasks", f"left behind: {others}")

    _is_calm = _is_ending = False

    def _is_over(self) -> bool:
        broker = self.world.broker
        return broker.is_done and not self.world.next_event_in(5000) < 5000

    async def _pause(self, most_ms: int) -> None:
        await asyncio.sleep(self._dice.choice((0, 0, self._dice.randint(0, most_ms))) / 1000)

    async def _publish(self) -> None:
        for _ in range(self._dice.randint(0, 6)):
            with suppress(MQTTError):  # the client said goodbye while this waited
                await self._publish_one()
            await self._pause(800)

    async def _publish_one(self) -> None:
        self._published += 1
        payload = b"up %d" % self._published
        await self._client.publish(b"u", payload, False, self._dice.choice((1, 2)))

    async def _consume(self, pattern: bytes | None) -> None:
        messages = self._client.messages(pattern)
        while not self._is_ending:
            with suppress(BodyError, MQTTError):
                async for message in messages:
                    if await self._body(message):
                        break
            await self._pause(300)
            if self._dice.random() < 0.5:
                messages = self._client.messages(pattern)

    async def _body(self, message: aio.Message) -> bool:
        # -> is the loop to be left?
        bodies = self.world.rules.incoming
        bodies.on_body(message)
        what = self._dice.random()
        try:
            if what < 0.5:
                await self._pause(1500)
            elif what < 0.65:
                await self._publish_one()
            if not self._is_calm:
                if what > 0.94:
                    raise BodyError
                if what > 0.88:
                    bodies.on_left(message)
                    return True
        except (BodyError, asyncio.CancelledError, MQTTError):
            bodies.on_left(message)
            raise
        bodies.on_done(message)
        if what > 0.84:
            message.done()
            return True
        return False


def _faults(dice: random.Random) -> tuple[Fault, ...]:
    # Some that end a connection, some that only delay; two at one place are left out.
    found = {}
    for kinds, most in ((_BREAKS, 5), (_DELAYS, 3)):
        for _ in range(dice.randint(0, most)):
            kind, place = dice.choice(kinds)
            at = dice.randint(20, 600)
            found[place, at] = fault(kind, place, at)
    return tuple(found.values())
