"""Policies for a full queue, ages, QoS 0 in the queue, and one message at a time.

from umqtt31.queueing import MQTTClient
"""

from typing import Any, Literal

import umqtt31

from ._types import Data

def extend(base: type[Any]) -> type[Any]:
    """-> the class of clients as those of `base` that queue as this module says, such as
    `extend(v5.MQTTClient)`.  For asyncio, give it to `aio.extend()`."""

class MQTTClient(umqtt31.MQTTClient):
    """`overflow`: what a full queue does: refuse the new message, give up the oldest, or replace
    the one of the same topic.  `mqueue_store_qos0`: QoS 0 waits, too.  `ordered`: one message at a
    time, all of one QoS above 0, none ever given up.  The rest as `umqtt31.MQTTClient`."""

    def __init__(
        self, client_id: Data, server: str | bytes, *args: Any,
        overflow: Literal["refuse", "drop_oldest", "latest"] = "refuse",
        mqueue_store_qos0: bool = False, ordered: bool = False, **options: Any,
    ) -> None: ...  # fmt: skip
    def publish(
        self, topic: Data, msg: Data, retain: bool = False, qos: int = 0, max_age: int = 0,
        properties: bytes | None = None,
    ) -> int:  # fmt: skip
        """As `umqtt31.MQTTClient.publish()`.  `max_age`: seconds, up to a day, after which the
        message is given up if it still waits in the queue, 0 for never."""
