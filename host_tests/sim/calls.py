"""Calls: random programs that call anything of `umqtt31.MQTTClient` at any moment, hooks
included, over resets, in a world with faults.

What `script.py` does in an order, these do in none.  All rules of the world hold; that
the broker knows just the filters that it was told is looked at here.
"""

from . import programs
from .broker import REFUSED_TOPIC
from .device import HandlerError
from .programs import RESETS
from .settings import chosen

from umqtt31 import AWAITING_REL, BUSY, JOURNAL, PROTOCOL, REFUSED_FILTER, MQTTError  # isort: skip
from umqtt31.properties import encode  # isort: skip

_MOST_MS = 3_600_000  # for all of a program, from its last reset on
_MOST_INSIDE = 30  # calls in hooks
_QUOTA_EXCEEDED = 0x97

# Other faults: kind, place, how far they reach, from which level on they are.
_STRIKES = (
    ("hang", "up", 600, 3), ("hang", "down", 600, 3), ("refuse", "open", 6, 3),
    ("busy", "open", 6, 3), ("raise", "handler", 20, 3), ("jump", "turn", 60, 3),
    ("challenge", "hello", 6, 5), ("challenge", "sent", 60, 5), *[("dismiss", "sent", 60, 5)] * 2,
    *[("deny", "judged", 12, 5)] * 2,
)  # fmt: skip
# Of the client, and what the broker says at level 5: see `chosen()`.
_OPTIONS = {
    "level": (3, 4, 5, 5), "keepalive": (5, 60), "max_inflight": (1, 2, 4, 10),
    "max_mqueue_len": (0, 2, 16), "overflow": ("refuse", "refuse", "drop_oldest", "latest"),
    "mqueue_store_qos0": 0.3,
}  # fmt: skip
_FIXED = {"buffer_size": 128, "await_rel_timeout": 300}
_LEVEL_5 = {
    "receive": (0, 1, 1, 3), "most": (0, 0, 0, 60), "aliases": (0, 1, 3), "expiry": (0, 0, 5),
    "alive": (0, 0, 1, 20), "talk": 0.5,
}  # fmt: skip


class Program(programs.Program):
    """A random program for the waiting client; what stands in it outlives resets."""

    _topics = (b"a/1", b"b/2")
    _down_qos = (0, 1, 2, 2)
    _acts = (
        (0.3, "_publish"), (0.55, "poll", (0, 0, 10, 1000)), (0.62, "_subscribe"),
        (0.65, "_unsubscribe"), (0.67, "ping"), (0.69, "disconnect"), (0.73, "flush", (10, 3000)),
        (0.76, "_connect"), (1, "_wait"),
    )  # fmt: skip

    def _choose(self):
        dice = self._dice
        self._options = options = chosen(dice, _OPTIONS, _FIXED)
        self._level = options["level"]
        if options["overflow"] == "latest":
            options["mqueue_store_qos0"] = False  # on_drop could not say which of several
        if dice.random() < 0.3:
            options["max_awaiting_rel"] = dice.choice((1, 3, 20))
        if self._level < 5:
            options["retry_interval"] = dice.choice((0, 5, 30))
        self._has_resets = dice.random() < 0.5
        self._clean = dice.choice((0, 0, 0.3))  # how often connect() begins anew

    def _choose_faults(self):
        found = super()._choose_faults()
        self._add_strikes(found, _STRIKES, self._level, 0.25)
        for place, reach in RESETS:
            if self._has_resets and self._dice.random() < 0.4:
                self._add_reset(found, place, reach)
        return found

    def _terms(self):
        dice = self._dice
        if self._level < 5 or dice.random() < 0.2:
            return {}
        said = chosen(dice, _LEVEL_5)
        if said["most"]:
            self._options["mqueue_store_qos0"] = False  # as with "latest"
        return said

    def _payload(self, number):
        return b"%d" % number + b"." * self._dice.choice((0, 0, 30, 90))

    def run(self):
        dice = self._dice
        self._have_sent()
        self._steps = dice.randint(20, 100)
        self._published = self._inside = 0
        # Where nothing goes on, poll() takes longer than it is told.
        self.world.rules.silence = 1.5
        device = self.world.device
        device.store_kind = dice.choice(("log", "log", "journal"))
        device.is_deferred = dice.random() < 0.4
        self.world.run(self)

    # --- a boot -----------------------------------------------------------------------------

    def __call__(self, device):
        self._device = device
        self._until = device.now_ms + _MOST_MS
        self._filters = {}  # their QoS, None: unsubscribed
        losses_before = self.world.rules.secret_losses
        self._client = client = self._new_client()
        client.on_message = self._on_message
        client.on_drop = self._on_hook
        if self._dice.random() < 0.5:
            client.on_oversize = self._on_hook
        while self._steps:
            self._steps -= 1
            self._step()
        while not self._is_over():
            if not client.is_connected and not device.connect(client):
                device.nap(200)
            else:
                self._try(client.poll)
                device.wait(client)
            if device.now_ms > self._until:
                self.world.rules.fail("termination", "faults are over, and not all is done")
        # Of a session that a late CONNECT began the client cannot know, as the guarantees say.
        is_secret = self._level == 5 and self.world.rules.secret_losses - losses_before
        if not (self._knows_filters() or is_secret):
            known = self.world.broker.filters
            self.world.rules.fail("RT-OBJECTS", f"told {self._filters}, the broker knows {known}")

    def _new_client(self):
        while True:
            try:
                client = self._device.client("c", **self._options)
                break
            except MQTTError as error:
                if error.code != JOURNAL:
                    raise
        if self._level == 5:
            client.v5.topic_aliases = self._dice.choice((0, 1, 3))
            client.v5.receive_maximum = self._dice.choice((0, 0, 1))
            client.v5.maximum_packet_size = self._dice.choice((None, None, 0))
        return client

    def _is_over(self):
        client = self._client
        if not client.is_connected or client.inflight or client.queued or not self._is_quiet():
            return False
        return self._knows_filters() or self._device.now_ms > self._until - _MOST_MS // 2

    def _knows_filters(self):
        known = self.world.broker.filters
        return all(known.get(name) == qos for name, qos in self._filters.items())

    # --- what it calls ------------------------------------------------------------------------

    def _try(self, call, *args, **more):
        # -> what the call returns, None if it raises what it may.
        try:
            return call(*args, **more)
        except HandlerError:
            self._client.disconnect()  # only a new connection brings the message again
        except MQTTError as error:
            self.world.note(f"client: {error!r}")
            self._check_error(error)
        return None

    def _check_error(self, error):
        is_challenged = any(one.kind == "challenge" for one in self.world.struck)
        if error.code == PROTOCOL and not is_challenged:
            self.world.rules.fail("errors", f"the broker broke nothing: {error}")
        if error.code == BUSY and not self._inside_now:
            self.world.rules.fail("errors", f"no hook is running: {error}")
        is_told = self._level == 5 and not self.world.rules.secret_losses
        if error.code == AWAITING_REL and is_told:
            self.world.rules.fail("errors", f"the broker knows how many it may send: {error}")

    _inside_now = 0

    def _wait(self):
        if not self._client.is_connected:
            self._connect()
        elif not self._inside_now:
            self._device.wait(self._client, self._dice.choice((0, 10, 5000)))

    def _connect(self):
        dice = self._dice
        if dice.random() < 0.4:
            self._try(self._client.connect, dice.random() < self._clean)
        else:
            self._try(self._client.reconnect, dice.choice((0, 10, 3000)))

    def _publish(self):
        dice = self._dice
        self._published += 1
        qos = dice.choice((0, 1, 1, 2, 2))
        payload = b"up %d" % self._published + b"." * dice.choice((0, 0, 30, 70))
        topic = dice.choice((b"u", b"long/topic"))
        age = dice.choice((0, 0, 3, 60)) if qos else 0
        more = {}
        if self._level == 5 and dice.random() < 0.3:
            more["properties"] = encode(content_type="x", user_property=(("a", "b"),))
        self.world.note(f"program publishes {payload[:6]!r} at QoS {qos}")
        self._try(self._client.publish, topic, payload, False, qos, age, **more)

    def _unsubscribe(self):
        name = self._dice.choice((b"a/#", b"b/#"))
        self._ask({name: None}, self._client.unsubscribe, name)

    def _subscribe(self):
        dice = self._dice
        asked = {dice.choice((b"a/#", b"b/#", REFUSED_TOPIC + b"x")): dice.choice((0, 1, 2))}
        if dice.random() < 0.3:
            asked[b"c/+"] = 1
        more = []
        if self._level == 5 and dice.random() < 0.3:
            more = [0, encode(subscription_identifier=dice.randint(1, 300))]
        self._ask(asked, self._client.subscribe, list(asked.items()), *more)

    def _ask(self, asked, call, *args):
        # What an error leaves open nobody may rely on.
        refused = [name for name in asked if name.startswith(REFUSED_TOPIC)]
        before = dict(self._filters)
        for name in asked:
            self._filters.pop(name, None)
        try:
            granted = call(*args)
        except HandlerError:
            self._client.disconnect()
            return
        except MQTTError as error:
            self.world.note(f"client: {error!r}")
            self._check_error(error)
            if error.code == BUSY:
                self._filters = before
            if error.code != REFUSED_FILTER:
                return
            if not refused:
                self.world.rules.fail("31-3.9-SUBACK", f"raised {error} for what is granted")
        else:
            if refused or granted and granted != list(asked.values()):
                self.world.rules.fail("31-3.9-SUBACK", f"{asked} was answered by {granted}")
        self._filters.update((name, qos) for name, qos in asked.items() if name not in refused)

    # --- its hooks ----------------------------------------------------------------------------

    def _on_message(self, message):
        self._on_hook()
        if self._level == 5 and message.qos and self._dice.random() < 0.05:
            message.refuse(_QUOTA_EXCEEDED)
            self._client.refusal = _QUOTA_EXCEEDED

    def _on_hook(self, *_):
        if self._inside_now or self._inside >= _MOST_INSIDE or self._dice.random() < 0.7:
            return
        self._inside += 1
        self._inside_now += 1
        try:
            self._step()
        finally:
            self._inside_now -= 1
