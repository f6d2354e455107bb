"""Device: what a simulated program finds at each boot, and the client it works with.

The client is the real `umqtt31.MQTTClient`; the subclass here only tells the rules
what the program asks for and is handed.
"""

from collections.abc import Callable
from typing import Any

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from host_tests.standin.nor import MODES, Flash, cut

from .network import DeviceReset
from .store import Medium, SurvivingStore

from umqtt31 import (  # isort: skip
    AWAITING_REL,
    BUSY,
    CLOSED,
    FULL,
    JOURNAL,
    TIMEOUT,
    Journal,
    MQTTClient,
    MQTTError,
)

_WINDOW = 4
_QUEUE = 16
_BLOCK_BYTES = 1024
_PROGRAM_BYTES = 128
_EIO = 5
_STUCK_MS = 200
_LONGEST_NAP_MS = 6 * 3_600_000


class Client(MQTTClient):
    """A watched MQTTClient."""

    def __init__(self, world: Any, *args: Any, **options: Any):
        self._world = world
        self._rules = world.rules
        self._window = options.get("max_inflight", _WINDOW)
        self._queue = options.get("max_mqueue_len", _QUEUE)
        self._most = self._window + self._queue
        self._store = options["store"]
        self._is_starvable = "max_awaiting_rel" in options
        self._overflow = options.get("overflow")
        self._is_in_publish = False
        self._drops_for_room = 0  # in the publish() that goes on
        self._handler: Callable | None = None
        self._drop_handler: Callable | None = None
        self._revived = self._rules.outgoing.revived()
        super().__init__(*args, **options)

    # --- what the program is told -----------------------------------------------------

    @property
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
                self._as_program(self._handler, message)
        except Exception:
            incoming.on_raised()
            raise
        reason = getattr(message, "reason", 0)
        incoming.on_handled()
        if reason:
            incoming.on_declined(reason)

    @property  # type: ignore[override]
    def on_drop(self) -> Callable:
        return self._give_away

    @on_drop.setter
    def on_drop(self, handler: Callable | None) -> None:
        self._drop_handler = handler

    def _give_away(self, packet_id: int, reason: int) -> None:
        self._world.note(f"client gives up id {packet_id} ({reason})")
        if reason == JOURNAL:
            self._rules.fail("overflow", f"id {packet_id} is given up, and its flash kept it")
        if reason == FULL and self._overflow in (None, "refuse"):
            self._rules.fail("overflow", f"id {packet_id} is given up, and that was not asked for")
        self._drops_for_room += reason == FULL
        is_clean, is_old = reason == CLOSED, reason == TIMEOUT
        self._rules.outgoing.on_dropped(packet_id, is_clean, is_old, reason)
        if self._drop_handler:
            self._as_program(self._drop_handler, packet_id, reason)

    def _as_program(self, hook: Callable, *args: Any) -> None:
        # What a hook calls are calls of the program, wherever it is called from.
        was_in_publish = self._is_in_publish
        self._is_in_publish = False
        try:
            hook(*args)
        finally:
            self._is_in_publish = was_in_publish

    # --- what the program does ----------------------------------------------------------

    def publish(
        self,
        topic: Any,
        msg: Any,
        retain: bool = False,
        qos: int = 0,
        max_age: Any = 0,
        properties: Any = None,
    ) -> int:
        if self._is_in_publish:  # it calls itself in ordered mode
            return super().publish(topic, msg, retain, qos, max_age, properties)
        key = _as_bytes(topic) + b"\0" + _as_bytes(msg)
        outgoing = self._rules.outgoing
        was_connected = self.is_connected
        flow = outgoing.on_accepting(key, qos, was_connected, max_age)
        self._is_in_publish = True
        self._drops_for_room = 0
        failed_loads = self._world.device.failed_loads
        try:
            packet_id = super().publish(topic, msg, retain, qos, max_age, properties)
        except Exception as error:
            may_be_kept = self._world.device.failed_loads > failed_loads
            outgoing.on_refused(flow, getattr(error, "code", 0) in (FULL, JOURNAL), may_be_kept)
            if self.is_connected == was_connected:  # no hook changed that
                self._check_refusal(error, qos)
            raise
        finally:
            self._is_in_publish = False
        is_deferred = getattr(self._store, "is_deferred", False)
        outgoing.on_accepted(flow, packet_id, is_deferred)
        self._check_bounds()
        return packet_id

    def _check_refusal(self, error: Exception, qos: int) -> None:
        if getattr(error, "code", 0) == FULL:
            has_bad_blocks = isinstance(self._store, Journal) and self._store.bad_blocks()
            if self._drops_for_room and not has_bad_blocks:
                self._rules.fail("RT-MQUEUE", "a message was given up for one that is refused")
            # Offline and without a queue there is no place, whatever is given up.
            has_places = self._queue or self.is_connected
            if self._overflow == "drop_oldest" and self.queued and qos and has_places:
                self._rules.fail("RT-MQUEUE", f"refused, and {self.queued} wait to be given up")
            self._rules.outgoing.check_expired("is refused for want of room")

    def poll(self, timeout_ms: int = 0) -> int:
        was_connected = self.is_connected
        try:
            handled = super().poll(timeout_ms)
        except MQTTError as error:
            if error.code == JOURNAL:
                self._rules.outgoing.on_unrecorded()
            # A call that the connection ended is not done.
            if not was_connected or error.code == AWAITING_REL:
                self._on_called(error)
            raise
        self._on_called(None)
        link = self._world.link
        if link and not link.is_closed and not link.is_stuck():
            self._rules.on_poll(link)
        self._check_bounds()
        return handled

    def connect(self, clean_session: bool = True, stream: Any = None) -> bool:
        try:
            is_present = self._closing(super().connect, clean_session, stream)
        except MQTTError as error:
            if error.code != BUSY and self.is_connected:
                self._rules.fail("connection", f"connect() raised {error!r} and is connected")
            self._on_called(error)
            raise
        self._on_called(None)
        return bool(is_present)

    def reconnect(self, timeout_ms: int = 0) -> bool:
        if self.is_connected:
            return bool(super().reconnect(timeout_ms))  # which does nothing
        try:
            is_connected = self._closing(super().reconnect, timeout_ms)
        except MQTTError as error:
            self._on_called(error)
            raise
        self._on_called(None)
        return bool(is_connected)

    def disconnect(self) -> None:
        self._closing(super().disconnect)

    def _closing(self, call: Callable, *args: Any) -> Any:
        # Inside these the client may close a connection.
        self._rules.closers += 1
        try:
            return call(*args)
        finally:
            self._rules.closers -= 1

    def _on_called(self, error: MQTTError | None) -> None:
        # poll(), connect() or reconnect() is over, and the device still lives.
        code = error.code if error else 0
        if code == AWAITING_REL and not self._is_starvable:
            self._rules.fail("31-4.1-Q2", "QoS 2 messages found no room")
        if code in (BUSY, JOURNAL):
            return
        self._rules.outgoing.on_kept()
        if code in (0, CLOSED):
            self._rules.outgoing.check_expired("still waits")

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
        self._flash_failures = self._load_failures = 0
        self.failed_loads = 0  # so far

    def store(self) -> Any:
        """The store of this boot; it holds what the boots before made durable."""
        if self.store_kind == "ram":
            return None
        if self.store_kind == "log":
            return SurvivingStore(self._world, self.medium, self.is_deferred)
        if not self.flash:
            self.flash = Flash(self.blocks, _BLOCK_BYTES, _PROGRAM_BYTES)
            self.flash.watch = self._on_flash
            self.flash.watch_read = self._on_load
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
        if struck and struck.kind == "fail":
            world.strike(struck, None)
            self._flash_failures = struck.value
        if self._flash_failures:
            self._flash_failures -= 1
            raise OSError(_EIO, "flash failed")
        if struck and self.flash:
            seed, mode = divmod(struck.value, len(MODES))
            torn = cut(before, after, MODES[mode], seed)
            self.flash.data[address : address + len(torn)] = torn
            world.strike(struck, None)
            raise DeviceReset

    def _on_load(self) -> None:
        # Called before each read of the flash.
        struck = self._world.load.step()
        if struck:
            self._world.strike(struck, None)
            self._load_failures = struck.value
        if self._load_failures:
            self._load_failures -= 1
            self.failed_loads += 1
            raise OSError(_EIO, "flash cannot be read")

    def client(self, client_id: str = "device", **options: Any) -> Client:
        """A client for this boot with MQTTClient's options."""
        options.setdefault("store", self.store())
        rules = self._world.rules
        rules.keepalive_ms = 1000 * options.get("keepalive", 60)
        rules.stuck_ms = 1000 * options.get("connect_timeout", 10)
        rules.outgoing.is_ordered = options.get("ordered", False)
        window = 1 if rules.outgoing.is_ordered else options.get("max_inflight", _WINDOW)
        rules.outgoing.window = window
        rules.incoming.most_held = options.get("max_awaiting_rel", 65535)
        rules.incoming.held_ms = 1000 * options.get("await_rel_timeout", 300)
        rules.record.is_forgetful = self.store_kind == "ram"
        rules.incoming.buffer_bytes = options.get("buffer_size", 256)
        return Client(self._world, client_id, "broker", **options)

    def connect(self, client: MQTTClient, clean_session: bool = False) -> bool:
        """Connect through the simulated network -> connected?"""
        try:
            client.connect(clean_session)
        except MQTTError as error:
            self._world.note(f"client: {error}")
            return False
        return True

    def nap(self, most_ms: int) -> None:
        """Sleep a while without a connection: long, where there is none for long."""
        left_ms = self._world.away_until - self._world.now
        self.sleep_ms(min(max(left_ms, most_ms), _LONGEST_NAP_MS))

    def wait(self, client: MQTTClient, most_ms: int = 0) -> None:
        """Sleep as long as the client allows, `most_ms` at most if that is not 0, or until
        something arrives."""
        world = self._world
        struck = world.turn.step()
        if struck:
            world.strike(struck, None)
            world.clock.offset += struck.value
        due_ms = client.next_due_ms()
        if most_ms:
            due_ms = min(due_ms, most_ms)
        link = world.link
        if link and link.jam_until > world.now:
            due_ms = link.jam_until - world.now
        elif link and not link.is_closed and link.is_stuck():
            due_ms = max(due_ms, _STUCK_MS)
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
