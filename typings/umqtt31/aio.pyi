"""The client for asyncio: it awaits, keeps itself connected, and hands messages to loops."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

import umqtt31 as _client

from ._types import Data, Filters, OpenStream

def extend(base: type[Any]) -> type[Any]:
    """-> the class of clients as those of `base`, for asyncio, such as `extend(v5.MQTTClient)`."""

class Message(_client.Message):
    """What a loop over `messages()` gets: a copy, valid until its body is done."""

    def done(self) -> None:
        """Let it be acknowledged before its body ends: what a `break` needs."""
    def refuse(self, reason: int) -> None:
        """At level 5: have it answered with this reason code, 0x80 or more, when its body
        ends: the broker gives it up.  At QoS 0 nobody is told."""

class MQTTClient(_client.MQTTClient):
    """`umqtt31.MQTTClient` for asyncio, with the same arguments, attributes and hooks.

    In place of `on_message` there is `messages()`.  From `connect()` to `disconnect()` it
    keeps itself connected.  What else could wait (`poll()`, `reconnect()`, `ping()`) is not
    for programs.
    """

    up: asyncio.Event
    """Set when a connection comes; the program clears it."""
    down: asyncio.Event
    """Set when a connection is gone; the program clears it."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *args: Any) -> None: ...
    async def connect(  # type: ignore[override]  # to be awaited
        self, clean_session: bool = True, stream: OpenStream | None = None
    ) -> bool:
        """Connect, however long that takes -> session present.

        `stream`: a callable that opens one, instead of a socket.  Raises MQTTError as
        `reconnect()` does; `last_error` says why it is not connected yet.
        """
    async def disconnect(self) -> None:  # type: ignore[override]  # to be awaited
        """Say goodbye and close.  Loops over `messages()` end, who waits for something gets
        MQTTError (CLOSED)."""
    def messages(self, pattern: Data | None = None) -> AsyncIterator[Message]:
        """`async for message in client.messages()`: each message is acknowledged when its
        body is done.

        `pattern`: only those whose topic matches this filter, so that several tasks share
        the messages; what nobody takes waits, and all acknowledgements after it.  Ends with
        `disconnect()`.  Raises ValueError, TypeError.
        """
    async def publish(  # type: ignore[override]  # to be awaited
        self, topic: Data, msg: Data, retain: bool = False, qos: int = 0, **options: Any
    ) -> int:
        """Accept a message -> packet id, 0 at QoS 0.  `options` are those of the client that
        was extended: `max_age`, `properties`.

        Waits for room, at QoS 0 for the connection too.  A cancelled one is accepted whole
        or not at all.
        """
    def publish_nowait(self, topic: Data, msg: Data, retain: bool = False, qos: int = 0) -> int:
        """As `umqtt31.MQTTClient.publish()`: never waits, raises MQTTError (FULL)."""
    async def subscribe(  # type: ignore[override]  # to be awaited
        self, topic: Data | Filters, qos: int = 0
    ) -> list[int]:
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Goes on after a lost connection.  Raises MQTTError: REFUSED_FILTER, TOO_LARGE,
        CLOSED (disconnected).
        """
    async def unsubscribe(  # type: ignore[override]  # to be awaited
        self, topic: Data | list[Data] | tuple[Data, ...]
    ) -> None:
        """Unsubscribe from a filter or a list of filters."""
    async def flush(self) -> None:  # type: ignore[override]  # to be awaited
        """Wait until nothing is in flight or queued: it is safe to switch off."""
    async def reconnected(self) -> bool:
        """Wait for the next connection after this one -> session present."""
