"""Types that the others speak of and that no module has at runtime: not to be imported."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, type_check_only

Data: TypeAlias = str | bytes | bytearray | memoryview
"""A topic or a message; `str` is encoded, which allocates."""

@type_check_only
class Stream(Protocol):
    """What may take the socket's place: MicroPython's stream methods, never waiting."""

    def readinto(self, buf: Any, n: int, /) -> int | None:
        """Fill `buf` from its start with up to `n` bytes -> how many, None if there are none
        yet, 0 at the end of the stream."""
    def write(self, buf: Any, off: int, n: int, /) -> int | None:
        """Write `n` bytes of `buf` from `off` on -> how many were taken, None for none."""
    def close(self) -> object:
        """Close it."""

@type_check_only
class Context(Protocol):
    """An SSLContext, MicroPython's or Python's own."""

    # A property, as the ports' own differ in all arguments.
    @property
    def wrap_socket(self) -> Any:
        """-> the socket over TLS."""

TLS: TypeAlias = bool | dict[str, Any] | Context | None
"""True, False, {"ca", "cert", "key"} or an SSLContext."""

OpenStream: TypeAlias = Callable[[], Stream]
"""What opens a stream; `reconnect()` calls it again."""

@type_check_only
class BlockDevice(Protocol):
    """MicroPython's extended block device: esp32.Partition, rp2.Flash, FileBlockDevice or
    your own.  It fails by an error or by a number other than 0."""

    # Positional, and `Any` as answer: the ports' own differ in both.
    def readblocks(self, block: int, buf: Any, offset: int, /) -> Any:
        """Fill `buf` with what is at `offset` in `block`."""
    def writeblocks(self, block: int, buf: Any, offset: int, /) -> Any:
        """Write `buf` at `offset` in `block`, which was erased there; it is durable on
        return."""
    def ioctl(self, op: int, arg: int, /) -> Any:
        """Block count (4), block size (5), erase block `arg` (6)."""

@type_check_only
class Store(Protocol):
    """Where messages wait, if neither in RAM nor in a Journal.  A message is a packet, and its
    place a number, the slot.  `lib/umqtt31/ram.py` is the smallest one."""

    level: int
    """Of the protocol that the packets are for; the client sets it before `open()`."""
    is_deferred: bool
    """Is what `put()` took durable from `commit()` on only?  Then nothing is sent before."""

    def open(self, client_id: bytes, slots: int, size: int, held: int, /) -> object:
        """Allocate room for packets in `slots` slots of `size` bytes, and for `held` received
        QoS 2 ids; called once, by the client's constructor."""
    def recover(self, session: Any, /) -> object:
        """Tell `session` what an earlier life left, oldest message first."""
    def put(
        self, slot: int, packet_id: int, qos: int, buf: Any, n: int, maybe_sent: bool, /
    ) -> Any:
        """Keep the packet `buf[:n]` -> False if there is no room."""
    def get(self, slot: int, buf: Any, /) -> Any:
        """Read the packet back into `buf` -> 0 if it is lost."""
    def remove(self, slot: int, /) -> object:
        """The message is done or given up; need not survive a reset."""
    def renew(self, is_clean: bool, /) -> object:
        """The broker has a new session: nothing was sent in it, no id is held.  `is_clean`: it
        ends with its connection."""
    def pubrec(self, slot: int, /) -> object:
        """PUBREC came for the message: no PUBLISH of it any more."""
    def hold(self, packet_id: int, /) -> object:
        """A QoS 2 message with this id was handed over."""
    def release(self, packet_id: int, /) -> object:
        """Its PUBREL came: the id is free."""
    def online(self) -> object:
        """A connection is open: every message may have been sent from now on."""
    def commit(self) -> object:
        """Make durable what must not be overtaken by the packets that follow."""
    def sync(self) -> object:
        """Make everything durable, before a planned switch-off."""
    def clear(self) -> object:
        """Forget everything."""

@type_check_only
class Stats:
    """Counters since the client was made; also `stats["sent"]`."""

    sent: int
    """Messages sent for the first time."""
    received: int
    """Messages handed over."""
    retried: int
    """PUBLISH and PUBREL sent again."""
    duplicates: int
    """Repetitions of QoS 2 messages kept from the handler."""
    strays: int
    """Acknowledgements of nothing in flight."""
    dropped: int
    """Messages given up, each told to `on_drop`; in asyncio also received ones of QoS 0 for
    which there was no room, which are not."""
    oversize: int
    """Received messages larger than the buffer."""
    refused: int
    """QoS 2 messages beyond `max_awaiting_rel`."""
    reconnects: int
    """Connections after the first."""
    pings: int
    """PINGREQ sent."""
    def __getitem__(self, name: str) -> int: ...
