"""Types that the others speak of and that no module has at runtime: not to be imported."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, type_check_only

Data: TypeAlias = str | bytes | bytearray | memoryview
"""A topic or a message; `str` is encoded, which allocates."""

Filters: TypeAlias = list[tuple[Data, int]] | tuple[tuple[Data, int], ...]
"""Pairs of a filter and its QoS."""

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
    """Where messages wait over a reset, if not in a Journal: the end of lib/umqtt31/__init__.py.
    An entry is state, size, packet id and packet."""

    def open(
        self, client_id: bytes, level: int, buffer_size: int, most: int, hold: Any, held: Any,
        ring_bytes: int, /,
    ) -> Any:  # fmt: skip
        """Open it -> messages, those that may have been sent, last packet id, was it clean?"""
    def put(self, ring: Any, at: int, n: int, is_online: bool, is_behind: bool, /) -> Any:
        """Keep an entry -> is there room?"""
    def fetch(self, ring: Any, at: int, /) -> int:
        """Write the next entry that lies behind to `ring` -> its bytes."""
    def note(self, first: int, packet_id: int, /) -> object:
        """This packet came for a message, or this id is held or released."""
    def renew(self, is_clean: bool, /) -> object:
        """The broker has a new session: nothing was sent in it, no id is held."""
    def commit(self) -> object:
        """Make durable what must not be overtaken by the packets that follow."""
    def tidy(self) -> object:
        """As `commit()`, and the time for what takes long."""
    def sync(self) -> object:
        """Make everything durable, before a planned switch-off."""

@type_check_only
class MessageProperties:
    """The properties of a message.  Each is None, or an empty list, if it was not there."""

    payload_format_indicator: int | None
    """1: the payload is UTF-8 text."""
    message_expiry_interval: int | None
    """Seconds until the message is too old."""
    content_type: bytes | None
    """What the payload is, mostly a MIME type."""
    response_topic: bytes | None
    """Where an answer is to go."""
    correlation_data: bytes | None
    """What the answer has to bring back."""
    subscription_identifier: list[int]
    """The identifiers of the subscriptions that the message is for."""
    user_property: list[tuple[bytes, bytes]]
    """Pairs, in their order; names may repeat."""
