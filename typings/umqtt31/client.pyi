"""The client that waits."""

from collections.abc import Callable
from typing import Literal, overload

from ._types import TLS, Data, OpenStream, Stats, Store, Stream
from .errors import MQTTError
from .journal import Journal
from .message import Message
from .v5 import Message5

class MQTTClient:
    """An MQTT client in fixed memory: nothing is allocated between two connections.

    `client_id`: 1 to 23 characters at level 3; above up to 65,535 bytes, and it may be empty
    for clean sessions, at level 5 for all.  `port` 0: 1883, or 8883 with `ssl`.  `keepalive`,
    `retry_interval` (0: only on reconnect; None: 30 at level 3, else 0),
    `await_rel_timeout` and `connect_timeout` are seconds.

    `ssl`: `{"ca": …}`, with `cert` and `key` if the broker wants them (file names or bytes),
    True for the port's own roots, or an SSLContext.

    `level`: 3 (MQTT 3.1), 4 (3.1.1) or 5 (5.0).  `buffer_size`: the largest packet in bytes, both
    ways.  `store`: a `Journal`, None for RAM, or a store of your own.  `max_inflight`: messages
    sent and not yet acknowledged.  `max_mqueue_len`: messages that may wait behind them, or for a
    connection; with `mqueue_store_qos0` those of QoS 0, too.  `overflow`: what a full queue does:
    refuse the new message, give up the oldest, or replace the one of the same topic.
    `max_awaiting_rel`: received QoS 2 messages that may wait for their PUBREL.  `ordered`:
    one message at a time, all of one QoS above 0, none ever given up.

    Raises ValueError, TypeError, and with a journal MQTTError.
    """

    on_message: Callable[[Message], object] | Callable[[Message5], object] | None
    """`handler(message)`: allocates nothing; the message is valid until it returns.  At level
    5 it is a `v5.Message5`."""
    on_drop: Callable[[int, int], object] | None
    """`handler(packet_id, reason)` for a message given up: FULL (overflow), TIMEOUT
    (`max_age`), CLOSED (a clean session began), JOURNAL (flash no longer holds what it was) or, at
    level 5, the reason code with which the broker refused it."""
    on_oversize: Callable[[int, int], object] | None
    """`handler(topic_len, payload_len)` for a received message larger than the buffer."""
    last_error: MQTTError | None
    """Why `reconnect()` has failed so far."""
    look_up: Callable[[str, int], tuple[object, ...]] | None
    """`look_up(server, port)` -> the first of what `socket.getaddrinfo()` says; in place of that,
    which waits for the name server.  Where either raises OSError, the address that was found last
    is used."""

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
    def keepalive(self) -> int:
        """Seconds."""
    @property
    def stats(self) -> Stats:
        """Counters since the client was made."""
    def __init__(
        self,
        client_id: Data,
        server: str | bytes,
        port: int = 0,
        user: Data | None = None,
        password: Data | None = None,
        keepalive: int = 60,
        ssl: TLS = None,
        *,
        level: int = 3,
        buffer_size: int = 256,
        store: Journal | Store | None = None,
        max_inflight: int = 4,
        max_mqueue_len: int = 16,
        mqueue_store_qos0: bool = False,
        overflow: Literal["refuse", "drop_oldest", "latest"] = "refuse",
        max_awaiting_rel: int = 512,
        await_rel_timeout: int = 300,
        retry_interval: int | None = None,
        max_subscriptions: int = 8,
        ordered: bool = False,
        connect_timeout: int = 10,
    ) -> None: ...
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
        Waits before each attempt a random time of up to 1 s, 2 s, 4 s … 128 s.  Raises
        MQTTError only if the broker refuses for good, or CONNECT is larger than
        `buffer_size`; else `last_error` is why it is not connected yet.  Allocates.
        """
    def disconnect(self) -> None:
        """Say goodbye, so that no will is published, and close."""
    def publish(
        self,
        topic: Data,
        msg: Data,
        retain: bool = False,
        qos: int = 0,
        max_age: int = 0,
        properties: bytes | None = None,
    ) -> int:
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window, QoS 0 only with
        `mqueue_store_qos0`.  `max_age`: seconds, up to a day, after which the message is
        given up if it still waits in the queue, 0 for never.  `properties`: at level 5, as
        `properties.encode()` makes them.  Raises ValueError, TypeError; MQTTError: FULL,
        TOO_LARGE, CLOSED (QoS 0 offline), at level 5 the reason code 0x95, 0x9A or 0x9B of
        what the broker does not take.  Nothing changes then.
        """
    @overload
    def subscribe(
        self, topic: Data, qos: int = 0, properties: bytes | None = None
    ) -> list[int]: ...
    @overload
    def subscribe(
        self,
        topic: list[tuple[Data, int]] | tuple[tuple[Data, int], ...],
        qos: int = 0,
        properties: bytes | None = None,
    ) -> list[int]:
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        At level 5 options may be added to a QoS, see `v5`, and there may be `properties` as
        `properties.encode()` makes them.
        Waits for the broker's answer, `connect_timeout` at most, and before that as long for
        those that are just being sent again.  The filters are remembered and sent again
        where the broker forgot them; what it refuses then is not told.  Raises ValueError,
        TypeError, MQTTError: CLOSED, FULL (`max_subscriptions`), TOO_LARGE, TIMEOUT,
        REFUSED_FILTER.
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
