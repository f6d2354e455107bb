"""The subscriber: our own client, which acknowledges what the spool has on disk.

The spool is the client's store for received QoS 2 ids, in one line with their
message.  So a kill at any moment loses nothing at QoS 1 and 2, and repeats nothing
at QoS 2.  It publishes nothing.
"""

import threading
import time

from umqtt31 import MQTTClient, MQTTError
from umqtt31.errors import REFUSED_FILTER
from umqtt31.ram import RamStore

_PACKET_BYTES = 65535
_WINDOW = 1000  # QoS 2 messages of a broker under way; mosquitto's default is 20
_PAUSE_MS = 200
_SYNC_S = 0.2
_LEVEL = 4  # at level 3 a broker has no way to refuse a filter
_AGAIN_S = 5  # before a filter that was refused is asked for again


class _SpoolStore(RamStore):
    # `hold()` has nothing to do: the id stands in the line of its message.

    def __init__(self, spool):
        self._spool = spool

    def recover(self, session):
        for packet_id, _ in sorted(self._spool.held.items(), key=lambda pair: pair[1]):
            session.restore_held(packet_id)

    def release(self, packet_id):
        self._spool.release(packet_id)

    def commit(self):
        self._spool.sync()

    sync = commit


class Subscriber:
    """Takes all messages on `filters` into `spool`, in a thread of its own.

    `client_id` (1 to 23 characters) names the session at the broker: keep it.
    """

    def __init__(self, spool, client_id, server, port, filters, user=None, password=None):
        self._spool = spool
        self._filters = [(name.encode(), 2) for name in filters]
        self._is_stopping = threading.Event()
        self.is_subscribed = False  # did the broker confirm it, on any connection
        self._prune_before = 0
        self._synced_at = 0.0
        self.last_error = None  # why there is no connection just now
        self.client = MQTTClient(
            client_id,
            server,
            port,
            user,
            password,
            level=_LEVEL,
            buffer_size=_PACKET_BYTES,
            store=_SpoolStore(spool),
            max_inflight=1,
            max_mqueue_len=0,
            max_awaiting_rel=_WINDOW,
            await_rel_timeout=86400,
            max_subscriptions=len(filters),
        )
        self.client.on_message = self._take
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def prune(self, number):
        """Delete from the spool what is before message `number`, soon."""
        self._prune_before = number

    def synced_bytes(self, path):
        """How much of a file of the spool is on disk."""
        return self._spool.synced_bytes(path)

    def start(self):
        """Start to subscribe."""
        self._thread.start()

    def stop(self):
        """Disconnect and wait for the thread; the session stays at the broker."""
        self._is_stopping.set()
        self._thread.join()
        self._spool.close()

    def _take(self, message):
        self._spool.append(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.packet_id,
            message.dup,
        )

    def _run(self):
        client = self.client
        while not self._is_stopping.is_set():
            self._keep_house()
            try:
                if not client.is_connected:
                    client.reconnect(_PAUSE_MS)
                    self.last_error = client.last_error
                elif not self.is_subscribed:
                    self._subscribe()
                else:
                    self.last_error = None
                    client.poll(_PAUSE_MS)
            except MQTTError as error:
                self.last_error = error
                if error.code == REFUSED_FILTER:
                    self._is_stopping.wait(_AGAIN_S)
        client.disconnect()

    def _keep_house(self):
        # Messages at QoS 0 are not acknowledged, so they do not reach the disk by that.
        now = time.monotonic()
        if now - self._synced_at > _SYNC_S:
            self._synced_at = now
            self._spool.sync()
            self._spool.prune(self._prune_before)

    def _subscribe(self):
        self.client.subscribe(self._filters)
        self.is_subscribed = True
