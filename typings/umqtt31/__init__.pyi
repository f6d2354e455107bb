"""An MQTT client in fixed memory that loses nothing over a reset.

    from umqtt31 import MQTTClient, MQTTError, Journal

`Journal`, `FileBlockDevice` and the codes of `MQTTError` are loaded when they are first
asked for.
"""

from collections.abc import Callable
from typing import Any

from ._types import TLS, Data, Filters, OpenStream, Store, Stream
from .fileblockdevice import FileBlockDevice as FileBlockDevice
from .journal import Journal as Journal

__all__ = ("MQTTClient", "MQTTError", "Message")
__version__: str

REFUSED_VERSION: int
"""The broker does not speak this level of MQTT: try another one."""
REFUSED_CLIENT_ID: int
"""The broker does not take this client id."""
REFUSED_UNAVAILABLE: int
"""The broker is there and not ready: try again later."""
REFUSED_CREDENTIALS: int
"""User name or password are wrong."""
REFUSED_NOT_AUTHORIZED: int
"""The broker's access rules do not let this client in."""
NETWORK: int
"""No connection to the broker, or it broke."""
TIMEOUT: int
"""No answer in time."""
CLOSED: int
"""There is no connection, or the broker closed it."""
PROTOCOL: int
"""The broker sent what MQTT does not allow."""
TOO_LARGE: int
"""A packet larger than `buffer_size`; nothing was sent."""
FULL: int
"""The queue is full; nothing was changed."""
JOURNAL: int
"""The journal's block device failed, or holds what is not ours."""
BUSY: int
"""A handler called what only the program around it may call."""
AWAITING_REL: int
"""The broker sends more QoS 2 messages at once than `max_awaiting_rel`."""
REFUSED_FILTER: int
"""The broker refused a subscription."""

class MQTTError(OSError):
    """Why the client could not go on; `str(error)` says what to do.

    It is an OSError, so that programs which catch that to reconnect go on working.  The
    client is closed then, nothing is lost, and `connect()` or `reconnect()` work.
    """

    code: int
    """One of the names in `umqtt31` (`FULL`, `CLOSED` …), or the broker's return code."""
    errno: int | None
    """The system's number, if it was the system that failed."""

    def __init__(self, code: int, cause: Any = None, place: Any = None) -> None: ...

class MQTTClient:
    """An MQTT client in fixed memory: nothing is allocated between two connections.

    `client_id`: 1 to 23 characters at level 3; above up to 65,535 bytes, and it may be empty
    for clean sessions, at level 5 for all.  `port` 0: 1883, or 8883 with `ssl`.  `keepalive`,
    `retry_interval` (0: only on reconnect; None: 30 at level 3, else 0),
    `await_rel_timeout` and `connect_timeout` are seconds.

    `ssl`: `{"ca": …}`, with `cert` and `key` if the broker wants them (file names or bytes),
    True for the port's own roots, or an SSLContext.

    `level`: 3 (MQTT 3.1) or 4 (3.1.1); level 5 is `umqtt31.v5`.  `buffer_size`: the largest packet
    in bytes, both ways, 16,383 at most.  `queue_bytes`: what the queue in RAM holds beside a
    largest message; None: 64 for each message that may be in flight or, without a store, wait.
    `store`: a `Journal`, None for RAM, or a store of your own.  `max_inflight`: messages sent and
    not yet acknowledged.  `max_mqueue_len`: messages that may wait behind them, or for a
    connection.  `max_awaiting_rel`: received QoS 2 messages that may wait for their PUBREL.
    `max_pause`: seconds that `reconnect()` waits at most before an attempt.

    Raises ValueError, TypeError, and with a journal MQTTError.
    """

    on_message: Callable[[Message], object] | None
    """`handler(message)`: allocates nothing; the message is valid until it returns."""
    on_drop: Callable[[int, int], object] | None
    """`handler(packet_id, reason)` for a message given up: CLOSED (a clean session began), JOURNAL
    (flash no longer holds what it was); `queueing` and `v5` have further reasons."""
    on_oversize: Callable[[int, int], object] | None
    """`handler(topic_len, payload_len)` for a received message larger than the buffer."""
    last_error: MQTTError | None
    """Why `reconnect()` has failed so far."""
    keepalive: int
    """Seconds."""
    level: int
    """3 or 4."""
    buffer_size: int
    """The largest packet in bytes."""

    def __init__(
        self, client_id: Data, server: str | bytes, port: int = 0, user: Data | None = None,
        password: Data | None = None, keepalive: int = 60, ssl: TLS = None, *,
        level: int = 3, buffer_size: int = 256, queue_bytes: int | None = None,
        store: Journal | Store | None = None, max_inflight: int = 4, max_mqueue_len: int = 16,
        max_awaiting_rel: int = 512, await_rel_timeout: int = 300,
        retry_interval: int | None = None, connect_timeout: int = 10, max_pause: int = 30,
    ) -> None: ...  # fmt: skip
    @property
    def is_connected(self) -> bool:
        """Is there a connection that the broker accepted?"""
    @property
    def inflight(self) -> int:
        """Messages sent and not yet acknowledged."""
    @property
    def queued(self) -> int:
        """Messages accepted that wait for the window or for a connection."""
    @property
    def stats(self) -> Stats:
        """Counters since the client was made."""
    def look_up(self, server: str, port: int) -> tuple[Any, ...]:
        """-> the first of what `socket.getaddrinfo()` says.  A program may put another function in
        its place, since this waits for the name server."""
    def set_last_will(self, topic: Data, msg: Data, retain: bool = False, qos: int = 0) -> None:
        """What the broker publishes when the connection is lost."""
    def set_callback(self, f: Callable[[bytes, bytes], object] | None) -> None:
        """Call `f(topic, msg)` with new bytes for each message, as umqtt.simple: allocates.
        None: nothing is called."""
    def connect(
        self, clean_session: bool = True, stream: Stream | OpenStream | None = None
    ) -> bool:
        """Connect now -> session present (False at level 3, which cannot tell).

        A clean session gives up what is in flight or was accepted before the last reset.
        `stream` takes the place of a socket; if it is a callable that opens one,
        `reconnect()` will use it, too.  It returns None where it has nothing now, or no
        room; what it raises, EAGAIN as well, ends the connection.  Allocates.  Raises
        MQTTError within `connect_timeout`.
        """
    def reconnect(self, timeout_ms: int = 0) -> bool:
        """Connect, or go on connecting, in at most `timeout_ms` -> connected?

        With a clean session if the last `connect()` asked for one, with a kept one without any.
        Waits before each attempt a random time of up to 1 s, 2 s, 4 s … `max_pause`.  Raises
        MQTTError only if the broker refuses for good, or CONNECT is larger than
        `buffer_size`; else `last_error` is why it is not connected yet.  Allocates.
        """
    def disconnect(self) -> None:
        """Say goodbye, so that no will is published, and close."""
    def publish(self, topic: Data, msg: Data, retain: bool = False, qos: int = 0) -> int:
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window.  Raises ValueError, TypeError;
        MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0 offline), JOURNAL.  Nothing changes then.
        """
    def subscribe(self, topic: Data | Filters, qos: int = 0) -> list[int]:
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Waits for the broker's answer, `connect_timeout` at most.  The filters are remembered and
        sent again, in one packet, where the broker forgot them; what it refuses then is not
        told.  Raises ValueError, TypeError, MQTTError: CLOSED, TOO_LARGE (all of them are more
        than `buffer_size`), TIMEOUT, REFUSED_FILTER.
        """
    def unsubscribe(self, topic: Data | list[Data] | tuple[Data, ...]) -> None:
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
    def poll(self, timeout_ms: int = 0) -> int:
        """Do all that is due: receive, deliver, acknowledge, send, ping.

        Waits up to `timeout_ms` for a packet -> packets handled.  Raises what a handler
        raises (its message stays unacknowledged), and MQTTError when the connection is lost
        or closed: then call `reconnect()`.
        """
    def check_msg(self, timeout_ms: int = 0) -> int:
        """`poll()` by its name in umqtt.simple."""
    def wait_msg(self) -> int:
        """Wait for a packet, `connect_timeout` at most -> packets handled."""
    def flush(self, timeout_ms: int) -> bool:
        """Poll until nothing is in flight or queued -> is it safe to switch off?

        False after `timeout_ms`, and at once without a connection.  Raises as `poll()` when the
        connection is lost meanwhile.
        """
    def next_due_ms(self) -> int:
        """How long the program may sleep before `poll()` or `reconnect()` has work; what
        arrives meanwhile waits.  At most a day."""
    def ping(self) -> None:
        """Send PINGREQ now; `poll()` raises if no answer comes in time."""

class Message:
    """A received message, in place in the client's buffer.

    One object serves all messages of a client, and is valid until the handler returns.
    Only `topic` and `payload` allocate.
    """

    qos: int
    """0, 1 or 2."""
    retain: bool
    """Was it kept by the broker from before the subscription?"""
    dup: bool
    """Has the broker sent it before, as far as it knows?"""
    packet_id: int
    """0 at QoS 0."""
    topic_len: int
    """Length of the topic in bytes."""
    payload_len: int
    """Length of the payload in bytes."""

    @property
    def topic(self) -> bytes:
        """The topic, in new bytes: allocates."""
    @property
    def payload(self) -> bytes:
        """The payload, in new bytes: allocates."""
    def topic_is(self, name: Data) -> bool:
        """Is the topic just `name`?"""
    def matches(self, pattern: Data) -> bool:
        """Does the topic match the filter `pattern`, such as b"home/+/led"?  As at the broker,
        no wildcard takes a topic that begins with $."""
    def topic_into(self, target: bytearray | memoryview) -> int:
        """Copy the topic to the start of `target` -> bytes copied (what fits)."""
    def payload_into(self, target: bytearray | memoryview) -> int:
        """Copy the payload to the start of `target` -> bytes copied (what fits)."""
    def __getitem__(self, index: int) -> int:
        """Byte `index` of the payload.  Raises IndexError."""

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
