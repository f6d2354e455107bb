"""Device: what a simulated program finds at each boot, and the client it works with.

The client is the real one, of the core or of the options that it needs; what is put before
it here only tells the rules what the program asks for and is handed.
"""

from functools import cache

from host_tests.choice import class_for
from host_tests.standin.nor import MODES, Flash, cut

from .network import DeviceReset
from .store import Medium, SurvivingStore

from umqtt31 import (  # isort: skip
    AWAITING_REL, BUSY, CLOSED, FULL, JOURNAL, MQTTError, errors, journal, opening,
    queueing, v5,
)  # fmt: skip

_BLOCK_BYTES = 1024
_PROGRAM_BYTES = 128
_EIO = 5
_STUCK_MS = 200
_LONGEST_NAP_MS = 6 * 3_600_000

# Loaded before anything runs, or they would look at the real time.
OPTIONS = (errors, journal, opening, queueing, v5)


class HandlerError(Exception):
    """What a program's handler raises where a fault or the program says so."""


class Taking:
    """Tells the link when the client takes a packet from its buffer, which reads many at once."""

    __at = 0

    @property
    def _start(self):
        return self.__at

    @_start.setter
    def _start(self, at):
        n = at - self.__at
        self.__at = at
        if n > 0:
            self.world.link.take(n)


class Watched(Taking):
    """What stands before the client's own class; its private names are no attributes of that."""

    def __init__(self, world, *args, **options):
        self.world = self.__world = world
        self.__rules = rules = world.rules
        rules.know(options)
        self.__queue = options.get("max_mqueue_len", 16)
        self.__most_inflight = options.get("max_inflight", 4) + rules.outgoing.revived()
        self.__most = options.get("max_inflight", 4) + self.__queue
        self.__store = options["store"]
        self.__is_starvable = "max_awaiting_rel" in options
        self.__overflow = options.get("overflow")
        self.__is_in_publish = False
        self.__drops_for_room = 0  # in the publish() that goes on
        self.__handler = None
        self.__drop_handler = None
        self.__is_clean = False  # the session of the last connect()
        self.refusal = 0  # the reason for which the handler refuses the message
        super().__init__(*args, **options)

    # --- what the program is told -----------------------------------------------------

    @property
    def on_message(self):
        return self.__hand_over

    @on_message.setter
    def on_message(self, handler):
        self.__handler = handler

    def __hand_over(self, message):
        incoming = self.__rules.incoming
        key = message.topic + b"\0" + message.payload
        self.__world.note(f"program is handed {message.payload[-24:]!r}")
        incoming.on_handling(key, message.qos, message.dup, message.packet_id)
        self.refusal = 0
        try:
            if self.__world.meet(self.__world.handler):
                raise HandlerError
            if self.__handler:
                self.__as_program(self.__handler, message)
        except Exception:
            incoming.on_raised()
            raise
        incoming.on_handled()
        if self.refusal:
            incoming.on_declined(self.refusal)

    @property
    def on_drop(self):
        return self.__give_away

    @on_drop.setter
    def on_drop(self, handler):
        self.__drop_handler = handler

    def __give_away(self, packet_id, reason):
        rules = self.__rules
        self.__world.note(f"client gives up id {packet_id} ({reason})")
        if reason == JOURNAL:
            rules.fail("overflow", f"id {packet_id} is given up, and its flash kept it")
        if reason == FULL and self.__overflow in (None, "refuse"):
            rules.fail("overflow", f"id {packet_id} is given up, and that was not asked for")
        self.__drops_for_room += reason == FULL
        rules.outgoing.on_dropped(packet_id, reason)
        if self.__drop_handler:
            self.__as_program(self.__drop_handler, packet_id, reason)

    def __as_program(self, hook, *args):
        # What a hook calls are calls of the program, wherever it is called from.
        was_in_publish = self.__is_in_publish
        self.__is_in_publish = False
        try:
            hook(*args)
        finally:
            self.__is_in_publish = was_in_publish

    # --- what the program does ----------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, **more):
        if max_age:
            more["max_age"] = max_age
        if self.__is_in_publish:  # it calls itself
            return super().publish(topic, msg, retain, qos, **more)
        outgoing, device = self.__rules.outgoing, self.__world.device
        key = b"\0".join(one.encode() if isinstance(one, str) else one for one in (topic, msg))
        was_connected = self.is_connected
        flow = outgoing.on_accepting(key, qos, was_connected, max_age)
        self.__is_in_publish = True
        self.__drops_for_room = 0
        failed_loads = device.failed_loads
        try:
            packet_id = super().publish(topic, msg, retain, qos, **more)
        except Exception as error:
            is_full = getattr(error, "code", 0) in (FULL, JOURNAL)
            outgoing.on_refused(flow, is_full, device.failed_loads > failed_loads)
            if self.is_connected == was_connected:  # no hook changed that
                self.__check_refusal(error, qos)
            raise
        finally:
            self.__is_in_publish = False
        outgoing.on_accepted(flow, packet_id, device.is_deferred)
        self.__check_bounds()
        return packet_id

    def __check_refusal(self, error, qos):
        if getattr(error, "code", 0) != FULL:
            return
        has_bad_blocks = getattr(self.__store, "bad_blocks", None) and self.__store.bad_blocks()
        if self.__drops_for_room and not has_bad_blocks:
            self.__rules.fail("RT-MQUEUE", "a message was given up for one that is refused")
        # Offline and without a queue there is no place, whatever is given up.
        has_places = self.__queue or self.is_connected
        if self.__overflow == "drop_oldest" and self.queued and qos and has_places:
            if not self._is_fixed():  # QoS 0 is half written in the room that is needed
                self.__rules.fail("RT-MQUEUE", f"refused, and {self.queued} are there")
        if qos:
            self.__check_expired("is refused for want of room")

    def poll(self, timeout_ms=0):
        was_connected = self.is_connected
        try:
            handled = super().poll(timeout_ms)
        except MQTTError as error:
            if error.code == JOURNAL:
                self.__rules.outgoing.on_unrecorded()
            # A call that the connection ended is not done.
            if not was_connected or error.code == AWAITING_REL:
                self.__on_called(error)
            raise
        self.__on_called(None)
        link = self.__world.link
        if link and not link.is_closed and not link.is_stuck():
            self.__rules.on_poll(link)
        self.__check_bounds()
        return handled

    def connect(self, clean_session=True, stream=None):
        self.__is_clean = clean_session
        return self.__opening(super().connect, clean_session, stream)

    def reconnect(self, timeout_ms=0):
        if self.is_connected:
            return bool(super().reconnect(timeout_ms))  # which does nothing
        return self.__opening(super().reconnect, timeout_ms)

    def __opening(self, call, *args):
        try:
            answer = self.__closing(call, *args)
        except MQTTError as error:
            if error.code != BUSY and self.is_connected:
                self.__rules.fail("connection", f"{call.__name__}() raised {error!r} and is open")
            self.__on_called(error)
            raise
        self.__on_called(None)
        return bool(answer)

    def disconnect(self):
        self.__closing(super().disconnect)

    def __closing(self, call, *args):
        # Inside these the client may close a connection, and end its session.
        self.__rules.closers += 1
        self.__rules.is_ending = self.__is_clean
        try:
            return call(*args)
        finally:
            self.__rules.closers -= 1
            self.__rules.is_ending &= self.__world.is_dead

    def __on_called(self, error):
        # poll(), connect() or reconnect() is over, and the device still lives.
        code = error.code if error else 0
        if code == AWAITING_REL and not self.__is_starvable:
            self.__rules.fail("31-4.1-Q2", "QoS 2 messages found no room")
        if code in (BUSY, JOURNAL):
            return
        self.__rules.outgoing.on_kept()
        if code in (0, CLOSED):
            self.__check_expired("still waits")

    def __check_expired(self, what):
        # What the store alone has is looked at when it comes into the ring.
        if not self._behind:
            self.__rules.outgoing.check_expired(what)

    def __check_bounds(self):
        inflight = self.inflight
        if inflight > self.__most_inflight or inflight + self.queued > self.__most:
            text = f"{inflight} in flight and {self.queued} queued, {self.__most} at most"
            self.__rules.fail("RT-MQUEUE", text)


@cache
def watched(level, named):
    return type("Client", (Watched, class_for(level, dict.fromkeys(named))), {})


class Device:
    """The hardware of one simulated device; `medium` and `flash` outlive its resets.

    `store_kind`: "journal", "log" (a model of what a store promises, faster) or "ram".
    `is_deferred`: what publish() took is durable only with the next poll().
    """

    def __init__(self, world):
        self._world = world
        self.medium = Medium()
        self.flash = None
        self.store_kind = "log"
        self.blocks = 8  # of the journal's flash
        self.is_deferred = False
        self._flash_failures = self._load_failures = 0
        self.failed_loads = 0  # so far

    def store(self):
        """The store of this boot; it holds what the boots before made durable."""
        if self.store_kind == "ram":
            return None
        if self.store_kind == "log":
            return SurvivingStore(self._world, self.medium, self.is_deferred)
        if not self.flash:
            self.flash = Flash(self.blocks, _BLOCK_BYTES, _PROGRAM_BYTES)
            self.flash.watch = self._on_flash
            self.flash.watch_read = self._on_load
        return journal.Journal(
            self.flash,
            program_bytes=_PROGRAM_BYTES,
            erase_bytes=_BLOCK_BYTES,
            group_commit=self.is_deferred,
        )

    def _on_flash(self, address, before, after):
        # Called before each operation of the flash; a reset leaves it half done.
        world = self._world
        if world.is_dead:
            raise DeviceReset
        struck = world.meet(world.flash)
        if struck and struck.kind == "fail":
            self._flash_failures = struck.value
        if self._flash_failures:
            self._flash_failures -= 1
            raise OSError(_EIO, "flash failed")
        if struck and self.flash:
            seed, mode = divmod(struck.value, len(MODES))
            torn = cut(before, after, MODES[mode], seed)
            self.flash.data[address : address + len(torn)] = torn
            raise DeviceReset

    def _on_load(self):
        # Called before each read of the flash.
        struck = self._world.meet(self._world.load)
        if struck:
            self._load_failures = struck.value
        if self._load_failures:
            self._load_failures -= 1
            self.failed_loads += 1
            raise OSError(_EIO, "flash cannot be read")

    def client(self, client_id="device", **options):
        """A client for this boot with MQTTClient's options."""
        options.setdefault("store", self.store())
        self._world.rules.is_forgetful = self.store_kind == "ram"
        named = frozenset(options) & {"overflow", "mqueue_store_qos0", "ordered"}
        make = watched(options.get("level", 3), named)
        return make(self._world, client_id, "broker", **options)

    def connect(self, client, clean_session=False):
        """Connect through the simulated network -> connected?"""
        try:
            client.connect(clean_session)
        except MQTTError as error:
            self._world.note(f"client: {error}")
            return False
        return True

    def nap(self, most_ms):
        """Sleep a while without a connection: long, where there is none for long."""
        left_ms = self._world.away_until - self._world.now
        self.sleep_ms(min(max(left_ms, most_ms), _LONGEST_NAP_MS))

    def wait(self, client, most_ms=0):
        """Sleep as long as the client allows, `most_ms` at most if that is not 0, or until
        something arrives."""
        world = self._world
        struck = world.meet(world.turn)
        if struck:
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
    def now_ms(self):
        """Milliseconds since the simulation began, resets included."""
        now = self._world.now
        return now

    def sleep_ms(self, ms):
        """Sleep, whatever arrives."""
        self._world.sleep(ms)
