"""umqtt.simple's client over umqtt31: change the import line, nothing else."""

from collections.abc import Callable
from typing import Any

import umqtt31 as _client

from . import MQTTError
from ._types import TLS, Data, OpenStream, Stream

class MQTTException(MQTTError):
    """The broker's refusal: `args[0]` is its code, as umqtt.simple has it.  A program may
    raise it, too, with anything in the place of the code."""

    def __init__(self, code: Any = 0, cause: Any = None, place: Any = None) -> None: ...

class MQTTClient(_client.MQTTClient):
    """umqtt.simple's client: `publish()` at QoS 1 and 2 returns when it is acknowledged,
    messages come as `f(topic, msg)`, keep alive is off unless asked for.

    Its attributes may be changed between two connections.  No wait for an answer is
    endless: after `connect_timeout` seconds OSError is raised.  While one thread waits for
    messages, another or a timer may publish at QoS 0.  An error's `args[0]` and `errno` are
    -1 where the broker closed the connection and the system's ETIMEDOUT for a time-out.
    """

    client_id: Data
    """As given; may be changed between two connections."""
    server: str | bytes
    """Host name or address."""
    port: int
    """TCP port."""
    ssl: Any
    """What `ssl` was given, as a context."""
    user: Data | None
    """User name."""
    pswd: Data | None
    """Password; sent only with a user."""
    keepalive: int
    """Seconds, 0 for none."""
    cb: Callable[[bytes, bytes], object] | None
    """Set by set_callback()."""
    lw_topic: Data | None
    """The will, as set_last_will() or the program has set it; None for none."""
    lw_msg: Data | None
    """Its message."""
    lw_qos: int
    """Its QoS."""
    lw_retain: bool
    """Is it retained?"""
    sock: Any
    """None before connect(), then the connection's stream until the next connect().  What
    select.poll() takes; `close()`; `setblocking(False)` lets the next wait_msg() return None,
    and after `settimeout(seconds)` it raises MQTTError, TIMEOUT, while the connection lives
    on, until something came, as umqtt.simple sets both back."""

    def __init__(
        self, client_id: Data, server: str | bytes, port: int | str = 0, user: Data | None = None,
        password: Data | None = None, keepalive: int | None = 0, ssl: TLS = None,
        ssl_params: dict[str, Any] | None = None, *, level: int = 4, buffer_size: int = 256,
        connect_timeout: int = 10, retry_interval: int | None = None,
    ) -> None: ...  # fmt: skip
    def connect(  # type: ignore[override]  # umqtt.simple has its time-out here
        self,
        clean_session: bool = True,
        timeout: float | None = None,
        stream: Stream | OpenStream | None = None,
    ) -> int:
        """Connect -> session present, 1 or 0; `timeout` in seconds, `connect_timeout` if None."""
    def publish(  # type: ignore[override]  # umqtt.simple answers nothing
        self, topic: Data, msg: Data, retain: bool = False, qos: int = 0
    ) -> None:
        """Publish; at QoS 1 and 2 wait until the broker has acknowledged it."""
    def subscribe(  # type: ignore[override]  # one filter, as umqtt.simple
        self, topic: Data, qos: int = 0
    ) -> None:
        """Subscribe; raises MQTTException(128) if the broker refuses."""
    def unsubscribe(self, topic: Data) -> None:  # type: ignore[override]  # one at a time
        """Unsubscribe from a filter."""
    def check_msg(self) -> int | None:  # type: ignore[override]  # as umqtt.simple
        """Handle one message, if one is there -> its first byte; else None."""
    def wait_msg(self) -> int | None:  # type: ignore[override]  # as umqtt.simple
        """Wait for a packet -> the first byte of a message; None for others."""
