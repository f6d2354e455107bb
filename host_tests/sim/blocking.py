"""Blocking: random programs over `umqtt31.simple` and `umqtt31.robust`, in a world with faults.

Callbacks call anything: publish(), check_msg(), connect() and more, up to four deep.  The
world's rules watch what the client writes, `programs` what callbacks are handed; that a
publish() which returns has its message acknowledged is looked at here.
"""

from functools import partial

from host_tests.standin import packets as p

from . import programs
from .broker import REFUSED_TOPIC
from .device import Taking
from .outgoing import Outgoing
from .programs import Handed
from .rules import Rules

from umqtt31 import MQTTError, robust, simple  # isort: skip

_DEEPEST = 4  # callbacks inside of callbacks
_SUBACK_REFUSED = 128
_STRIKES = (("refuse", "open", 6, 3), ("busy", "open", 6, 3), ("forget", "down", 600, 4))


class CallbackError(Exception):
    """What a callback raises where the program says so."""


class Answered(Handed):
    """Callbacks may wait for others: an answer may overtake those whose callback still runs, and
    a message whose callback runs on comes again on the next connection."""

    def __init__(self, rules):
        super().__init__(rules)
        self._running = []

    def run(self, link, topic, payload, callback):
        """Call `callback()` with this message, which came on `link`."""
        key = topic + b"\0" + payload
        self._left[key] += (excused := sum(k == key and link is not o for k, o in self._running))
        self.on_handed(topic, payload)
        self._left[key] -= excused
        self._running.append((key, link))
        is_done = False
        try:
            callback()
            is_done = self._rules.is_open(link)
        finally:
            self._running.pop()
            (self.on_done if is_done else self.on_left)(topic, payload)

    def _find_answered(self, owed, packet_id):
        earlier = []
        for k, (other, key) in enumerate(owed):
            if other == packet_id:
                is_first = all(self._done[key] < self._done[one] for one in earlier)
                return k if key not in self._done or is_first else -1
            if key in self._done:
                earlier.append(key)
        return -1

    def check_answered(self, link):
        """A call of the program's is over: what it is done with is answered."""
        for kind, owed in link.notes.owed.items():
            for packet_id, key in owed:
                if key in self._done:
                    self._fail("MQTT-4.3.3-11", f"{packet_id} got no {p.NAMES[kind]}")


class OneByOne(Outgoing):
    """publish() waits for its message, so their order is that in which they go out."""

    is_again = False  # what failed is published again, by robust

    def on_publish(self, link, packet):
        _, _, topic, payload = p.publish_fields(packet, self._rules.level)
        flow = self.flows.get(topic + b"\0" + payload)
        if flow and not flow.is_sent:
            self._newest += 1
            flow.number = self._newest
        super().on_publish(link, packet)

    def on_returned(self, flow):
        flow.is_accepted = flow.is_promised = True
        if flow.qos and not flow.delivered:
            self._fail("publish", f"returned, and the broker has not got {flow}")

    def on_raised(self, flow, reason):
        """publish() raised, for this reason of the broker's; 0: the message may be sent or not."""
        if reason:
            self._fail("MQTT-4.3.3-5", f"{flow} was not refused, told {reason}")

    def on_abandoned(self):
        for flow in self.flows.values():
            if self.is_again and not flow.is_accepted:
                flow.is_sent = flow.is_released = flow.is_pubrec_new = flow.has_pubrec = False
                flow.link = flow.rel_link = None
                flow.packet_id = 0
                flow.done_life = -1
            elif flow in self._in_flight:
                flow.drop_life = self._rules.life
        self._in_flight.clear()

    def on_delivered(self, key):
        flow = self.flows[key]
        if self.is_again and flow.delivered:
            flow.delivered -= 1  # robust promises no more than once or more
        super().on_delivered(key)


class _Watched(Taking):
    # The rules hear what the program asks for.

    def __init__(self, world, **options):
        self.world = world
        self._rules = world.rules
        self._rules.know({**options, "max_inflight": 1})
        super().__init__("device", "broker", **options)

    def publish(self, topic, msg, retain=False, qos=0):
        outgoing = self._rules.outgoing
        flow = outgoing.on_accepting(topic + b"\0" + msg, qos, True)
        try:
            super().publish(topic, msg, retain, qos)
        except BaseException as error:
            is_refusal = isinstance(error, simple.MQTTException)
            outgoing.on_raised(flow, error.code if is_refusal else 0)
            raise
        outgoing.on_returned(flow)

    def connect(self, *args, **options):
        self._rules.outgoing.on_abandoned()
        return self._closing(super().connect, *args, **options)

    def disconnect(self):
        self._closing(super().disconnect)

    def take_large(self, first, at, n):
        self.world.link.take(at + n - self._start)  # the client reads it past its buffer
        super().take_large(first, at, n)

    def _closing(self, call, *args, **options):
        self._rules.closers += 1
        try:
            return call(*args, **options)
        finally:
            self._rules.closers -= 1

    def delay(self, i):
        self.world.sleep(500)


class Program(programs.Program):
    """A random program for one of the two clients."""

    # It pauses as it likes; a broker waits for so long.
    _rules = partial(Rules, outgoing=OneByOne, incoming=Answered, silence=1.5)
    _down_qos = (0, 1, 1, 2, 2)
    _acts = (
        (0.35, "_publish"), (0.75, "check_msg"),
        (0.82, "subscribe", programs.Program._topics, (0, 1, 2)), (0.84, "_subscribe_in_vain"),
        (0.88, "unsubscribe", programs.Program._topics), (0.92, "ping"), (0.94, "disconnect"),
        (1, "_connect"),
    )  # fmt: skip
    _settle_ms = 3_600_000

    def __init__(self, seed, over=None):
        super().__init__(seed, over)
        dice = self._dice
        self._size = dice.choice((64, 256))
        self._is_robust = dice.random() < 0.4
        self._inside = dice.choice((0, 0.2, 0.6))  # how often a callback calls something
        self._raising = dice.choice((0, 0, 0.1))
        self._calls = dice.randint(5, 60)
        self._depth = self._published = 0
        self._is_calm = False

    def _choose(self):
        self._level = self._dice.choice((3, 4, 4))

    def _choose_faults(self):
        found = super()._choose_faults()
        self._add_strikes(found, _STRIKES, self._level, 0.3)
        return found

    def _payload(self, number):
        size = self._dice.choice((0, 0, 40, 64, 256, 700))
        return b"%d" % number + b"." * size

    def run(self):
        self._have_sent()
        self.world.rules.outgoing.is_again = self._is_robust
        self.world.run(lambda device: self._main())

    def _main(self):
        dice = self._dice
        front = robust if self._is_robust else simple
        self._client = type("Client", (_Watched, front.MQTTClient), {})(
            self.world,
            keepalive=dice.choice((5, 60)),
            level=self._level,
            buffer_size=self._size,
            connect_timeout=dice.choice((2, 10)),
        )
        self._client.set_callback(self._on_message)
        self._connect()
        for _ in range(self._calls):
            self._step()
            if not self._client.is_connected and dice.random() < 0.8:
                self._connect()
        self._is_calm = True
        self._connect()  # what a callback has left comes again
        while not self._is_quiet():
            if not self._client.is_connected:
                self._connect()
            self._try(self._client.check_msg)
            self._pause(100)
        self._client.disconnect()
        self.world.advance(1000)
        if self.world.link and not self.world.link.is_closed:
            self.world.rules.fail("connection", "is not closed")

    def _pause(self, most_ms):
        self.world.sleep(self._dice.choice((1, self._dice.randint(1, most_ms))))

    # --- what the program calls ---------------------------------------------------------

    def _try(self, call, *args):
        # Only what the network does may go wrong here.
        try:
            result = call(*args)
        except (MQTTError, CallbackError) as error:
            self.world.note(f"client: {error!r}")
            return None
        link = self.world.link
        if not self._depth and link and not link.is_closed and not link.is_stuck():
            self.world.rules.incoming.check_answered(link)
        return result

    def _step(self):
        self._pause(300)
        super()._step()

    def _publish(self):
        dice = self._dice
        self._published += 1
        payload = b"up %d" % self._published + b"." * dice.choice((0, 0, 10, self._size, 900))
        self._try(self._client.publish, b"u", payload, False, dice.choice((0, 1, 2)))

    def _connect(self):
        self._try(self._client.connect, False)

    def _subscribe_in_vain(self):
        try:
            self._client.subscribe(REFUSED_TOPIC + b"such", 1)
        except simple.MQTTException as error:
            if error.code == _SUBACK_REFUSED:
                return
            raise
        except (MQTTError, CallbackError):
            return
        self.world.rules.fail("31-3.9-SUBACK", "subscribe() to what is refused raises nothing")

    # --- what it is handed --------------------------------------------------------------

    def _on_message(self, topic, payload):
        self.world.note(f"callback for {payload[:9]!r}")
        self._depth += 1
        try:
            assert self.world.link
            self.world.rules.incoming.run(self.world.link, topic, payload, self._call_inside)
        finally:
            self._depth -= 1
            self.world.note(f"callback for {payload[:9]!r} is over")

    def _call_inside(self):
        dice = self._dice
        if self._is_calm:
            return
        if self._depth < _DEEPEST and dice.random() < self._inside:
            for _ in range(dice.randint(1, 3)):
                self._step()
        if dice.random() < self._raising:
            raise CallbackError
