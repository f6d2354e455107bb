"""The small program of a script: what the exhaustive and the random campaigns run."""

from functools import partial

from .device import HandlerError
from .network import DeviceReset
from .settings import Script, parse  # noqa: F401 - both are of a script
from .world import World

from umqtt31 import CLOSED, FULL, JOURNAL, MQTTError  # isort: skip

_PAUSE_MS = 200
_SETTLE_MS = 900_000  # the time-outs of a retry double six times; and a dead link is found
_BROKER_LIMITS = (0x95, 0x9A, 0x9B)  # too large, retained, its QoS: said in CONNACK
# What a program may call in its hooks, by name; each is called a few times at most.
INSIDE = {
    "publish": lambda client: None,  # see Program._call_inside()
    "poll": lambda client: client.poll(),
    "flush": lambda client: client.flush(5),
    "ping": lambda client: client.ping(),
    "connect": lambda client: client.connect(False),
    "reconnect": lambda client: client.reconnect(),
    "disconnect": lambda client: client.disconnect(),
    "subscribe": lambda client: client.subscribe(b"d", 2),
}
_MOST_INSIDE = 4


class Program:
    """The program of a script; `published` outlives resets, as a sensor's counter does.

    Its connections are made in turn as `sessions` says: "k" connect(False), "c"
    connect(True), "r" reconnect(), "m" reconnect() and, if it has to wait,
    connect(False); the last one for ever.
    """

    def __init__(self, script, world):
        self._script = script
        self._world = world
        self._was_online = False
        self._published = 0
        self._connections = 0
        self._pinged_ms = 0
        self._inside = 0
        self._is_to_reboot = script.reboot

    def __call__(self, device):
        client = self._client(device)
        if self._script.inside:
            client.on_message = self._call_inside
            client.on_drop = self._call_inside
            client.on_oversize = self._call_inside
        self._client_of_hooks = client
        self._publish(client)
        if self._is_to_reboot:
            self._is_to_reboot = False
            self._try(client, client.poll)
            raise DeviceReset
        while not self._is_done(client):
            if client.is_connected:
                self._was_online = True
                self._try(client, client.poll)
                self._ping(device, client)
            elif self._connect(device, client):
                self._connections += 1
                self._was_online = True
                if self._script.subscribe:
                    self._try(client, lambda: client.subscribe(b"d", 2))
            else:
                device.nap(_PAUSE_MS)
            if not self._script.hasty:
                self._publish(client)
            device.wait(client, self._script.ping_ms)
            if self._script.hasty:
                self._publish(client)

    def _client(self, device):
        s = self._script
        options = {
            "max_awaiting_rel": s.held,
            "mqueue_store_qos0": s.keep_qos0,
            "overflow": (s.age or s.overflow != "refuse") and s.overflow,
            "ordered": s.ordered,
        }
        # A client without options is the core's.
        options = {name: value for name, value in options.items() if value}
        while True:
            try:
                client = device.client(
                    "c",
                    level=s.level,
                    keepalive=s.keepalive,
                    buffer_size=s.buffer,
                    max_inflight=s.window,
                    max_mqueue_len=s.queue,
                    await_rel_timeout=s.await_rel,
                    retry_interval=s.retry if s.level < 5 else 0,
                    **options,
                )
                if s.aliases and s.level == 5:
                    client.v5.topic_aliases = s.aliases
                return client
            except OSError as error:
                if getattr(error, "code", JOURNAL) != JOURNAL:
                    raise
                device.sleep_ms(_PAUSE_MS)  # the flash fails for a while

    def _connect(self, device, client):
        sessions = self._script.sessions
        kind = sessions[min(self._connections, len(sessions) - 1)]
        if kind in "rm":
            self._try(client, client.reconnect)
        if kind == "r" or client.is_connected:
            return client.is_connected
        return device.connect(client, kind == "c")

    def _is_done(self, client):
        if self._published < len(self._script.up) or not self._world.broker.is_done:
            return False
        if len(self._world.rules.incoming.messages) < len(self._script.down):
            return False
        return client.is_connected and not client.inflight and not client.queued

    def _publish(self, client):
        script = self._script
        if script.start == "online" and not self._was_online:
            return
        end = self._published + (script.pace or len(script.up))
        for number in range(self._published, min(end, len(script.up))):
            size = script.size + number * script.grow
            payload = payload_of(number, min(size, script.buffer - 16))
            self._published = number + 1  # a reset inside publish() does not repeat it
            age = script.age if number % 2 else 0
            qos = int(script.up[number])
            try:
                client.publish(b"u", payload, False, qos, age)
            except MQTTError as error:
                if error.code in (FULL, CLOSED, JOURNAL):  # nothing changed: again later
                    # Unless it may be seen all the same.
                    if b"u\0" + payload not in self._world.rules.outgoing.flows:
                        self._published = number
                elif error.code in _BROKER_LIMITS:  # the broker takes no such message
                    continue
                elif qos:
                    raise
                return

    def _ping(self, device, client):
        ping_ms = self._script.ping_ms
        if ping_ms and client.is_connected and device.now_ms - self._pinged_ms >= ping_ms:
            self._pinged_ms = device.now_ms
            self._try(client, client.ping)

    def _try(self, client, action):
        try:
            action()
        except MQTTError as error:
            self._world.note(f"client: {error}")
        except HandlerError:
            # Only a new connection makes the broker send the message again.
            self._try(client, client.disconnect)

    def _call_inside(self, *_):
        # Refused or done, it must do no harm; anything but an MQTTError reaches the program.
        self._inside += 1
        if self._inside > _MOST_INSIDE:
            return
        client = self._client_of_hooks
        self._world.note(f"program calls {self._script.inside}() in its hook")
        try:
            if self._script.inside == "publish":
                qos = int(max(self._script.up[:1], "1"))
                client.publish(b"u", b"inside %d" % self._inside, False, qos)
            else:
                INSIDE[self._script.inside](client)
        except MQTTError as error:
            self._world.note(f"client: {error}")


def payload_of(number, size):
    """The payload of a script's message: its number, filled up to `size` bytes."""
    return b"%d" % number + b"." * (size - len(str(number)))


def world_of(script, faults, is_traced=False):
    world = World(
        script,
        faults=faults,
        settle_ms=_SETTLE_MS + 2000 * script.keepalive,
        lasts_ms=max(0, len(script.down) - 1) * script.spread_ms,
        is_traced=is_traced,
    )
    world.device.store_kind = script.store
    world.device.blocks = script.blocks
    world.device.is_deferred = script.deferred
    for number, qos in enumerate(script.down):
        payload = payload_of(number, script.size)
        world.call(number * script.spread_ms, partial(world.send, b"d", payload, int(qos)))
    return world


def run(script, faults=(), is_traced=False):
    world = world_of(script, faults, is_traced)
    world.run(Program(script, world))
    return world
