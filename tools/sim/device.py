"""Device: what a simulated program finds at each boot, and the client it works with.

The client is the real `umqtt31.MQTTClient`; the subclass here only tells the rules
what the program asks for and is handed.
"""

from collections.abc import Callable
from typing import Any

from tools.flash import MODES, Flash, cut

from . import library  # noqa: F401 - makes umqtt31 importable
from .network import DeviceReset
from .store import Medium, SurvivingStore

from umqtt31 import CLOSED, Journal, MQTTClient, MQTTError  # isort: skip

_WINDOW = 4
_QUEUE = 16
_BLOCK_BYTES = 1024
_PROGRAM_BYTES = 128


class Client(MQTTClient):
    """A watched MQTTClient."""

    def __init__(self, world: Any, *args: Any, **options: Any):
        self._world = world
        self._rules = world.rules
        self._window = options.get("max_inflight", _WINDOW)
        self._most = self._window + options.get("max_mqueue_len", _QUEUE)
        self._store = options["store"]
        self._is_in_publish = False
        self._handler: Callable | None = None
        self._drop_handler: Callable | None = None
        self._revived = self._rules.outgoing.revived()
        super().__init__(*args, **options)

    @property  # type: ignore[override]
    def on_message(self) -> Callable | None:
        return self._hand_over if self._handler or self._handler is None else None

    @on_message.setter
    def on_message(self, handler: Callable | None) -> None:
        self._handler = handler

    def _hand_over(self, message: Any) -> None:
        incoming = self._rules.incoming
        key = message.topic + b"\0" + message.payload
        self._world.note(f"program is handed {message.payload[-24:]!r}")
        incoming.on_handling(key, message.qos, message.dup, message.packet_id)
        try:
            if self._handler:
                self._handler(message)
        except Exception:
            incoming.on_raised()
            raise
        incoming.on_handled()

    @property  # type: ignore[override]
    def on_drop(self) -> Callable:
        return self._give_away

    @on_drop.setter
    def on_drop(self, handler: Callable | None) -> None:
        self._drop_handler = handler

    def _give_away(self, packet_id: int, reason: int) -> None:
        self._world.note(f"client gives up id {packet_id} ({reason})")
        self._rules.outgoing.on_dropped(packet_id, reason == CLOSED)
        if self._drop_handler:
            self._drop_handler(packet_id, reason)

    def publish(
        self, topic: Any, msg: Any, retain: bool = False, qos: int = 0, max_age: Any = 0
    ) -> int:
        if self._is_in_publish:  # it calls itself in ordered mode
            return super().publish(topic, msg, retain, qos, max_age)
        key = _as_bytes(topic) + b"\0" + _as_bytes(msg)
        outgoing = self._rules.outgoing
        flow = outgoing.on_accepting(key, qos, self.is_connected)
        self._is_in_publish = True
        try:
            packet_id = super().publish(topic, msg, retain, qos, max_age)
        except Exception:
            outgoing.on_refused(flow)
            raise
        finally:
            self._is_in_publish = False
        is_deferred = getattr(self._store, "is_deferred", False)
        outgoing.on_accepted(flow, packet_id, is_deferred)
        self._check_bounds()
        return packet_id

    def poll(self, timeout_ms: int = 0) -> int:
        handled = super().poll(timeout_ms)
        link = self._world.link
        if link and not link.is_closed and not link.to_skip and link.jam_until <= self._world.now:
            self._rules.on_poll(link)
        self._check_bounds()
        return handled

    def _check_bounds(self) -> None:
        inflight = self.inflight
        most = self._window + self._revived
        if inflight > most or inflight + self.queued > self._most:
            text = f"{inflight} in flight and {self.queued} queued, {self._most} at most"
            self._rules.fail("RT-MQUEUE", text)


class Device:
    """The hardware of one simulated device; `medium` and `flash` outlive its resets.

    `store_kind`: "journal", "log" (a model of what a store promises, faster) or "ram".
    `is_deferred`: what publish() took is durable only with the next poll().
    """

    def __init__(self, world: Any):
        self._world = world
        self.medium = Medium()
        self.flash: Flash | None = None
        self.store_kind = "log"
        self.blocks = 8  # of the journal's flash
        self.is_deferred = False

    def store(self) -> Any:
        """The store of this boot; it holds what the boots before made durable."""
        if self.store_kind == "ram":
            return None
        if self.store_kind == "log":
            return SurvivingStore(self._world, self.medium, self.is_deferred)
        if not self.flash:
            self.flash = Flash(self.blocks, _BLOCK_BYTES, _PROGRAM_BYTES)
            self.flash.watch = self._on_flash
        return Journal(
            self.flash,
            program_bytes=_PROGRAM_BYTES,
            erase_bytes=_BLOCK_BYTES,
            group_commit=self.is_deferred,
        )

    def _on_flash(self, address: int, before: bytes, after: bytes) -> None:
        # Called before each operation of the flash; a reset leaves it half done.
        world = self._world
        if world.is_dead:
            raise DeviceReset
        struck = world.flash.step()
        if struck and self.flash:
            seed, mode = divmod(struck.value, len(MODES))
            torn = cut(before, after, MODES[mode], seed)
            self.flash.data[address : address + len(torn)] = torn
            world.strike(struck, None)
            raise DeviceReset

    def client(self, client_id: str = "device", **options: Any) -> Client:
        """A client for this boot with MQTTClient's options."""
        options.setdefault("store", self.store())
        rules = self._world.rules
        rules.keepalive_ms = 1000 * options.get("keepalive", 60)
        rules.outgoing.is_ordered = options.get("ordered", False)
        window = 1 if rules.outgoing.is_ordered else options.get("max_inflight", _WINDOW)
        rules.outgoing.window = window
        rules.incoming.most_held = options.get("max_awaiting_rel", 4)
        rules.incoming.buffer_bytes = options.get("buffer_size", 256)
        return Client(self._world, client_id, "broker", **options)

    def connect(self, client: MQTTClient, clean_session: bool = False) -> bool:
        """Connect through the simulated network -> connected?"""
        try:
            client.connect(clean_session, stream=self._world.open_link())
        except MQTTError as error:
            self._world.note(f"client: {error}")
            return False
        self._world.rules.outgoing.on_poll()
        return True

    def wait(self, client: MQTTClient) -> None:
        """Sleep as long as the client allows, or until something arrives."""
        world = self._world
        struck = world.turn.step()
        if struck:
            world.strike(struck, None)
            world.clock.offset += struck.value
        due_ms = client.next_due_ms()
        link = world.link
        if link and link.jam_until > world.now:
            due_ms = link.jam_until - world.now
        world.advance(max(1, world.next_event_in(due_ms)))

    @property
    def now_ms(self) -> int:
        """Milliseconds since the simulation began, resets included."""
        now: int = self._world.now
        return now

    def sleep_ms(self, ms: int) -> None:
        """Sleep, whatever arrives."""
        self._world.sleep(ms)


def _as_bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
