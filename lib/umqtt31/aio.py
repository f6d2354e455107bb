"""MQTTClient for asyncio: it awaits, keeps itself connected, and hands messages to loops.

Theory of operation.  Two tasks drive the protocol: one reads when the stream has something,
one looks at the clock twice a second and connects again after a loss.  Both do the same, all
that is due, in `_turn()`, which never waits.  After each turn `_moved` wakes who waits for
room or an answer, and they look for themselves.  What needs no waiting is the waiting client's.

A message is copied out of the receive buffer, since while the body of a loop runs,
acknowledgements have to be read: a publish() in the body waits for them.  It stands in
`_taken` until its body is done, and is acknowledged then, in the order of arrival.  What
the broker sends again on the next connection meanwhile is found there by its id.

Only the name look-up of a connection waits for something else than asyncio.
MQTT 3.1 §4; MQTT 5 §4.3.3 and §4.6.
"""

import asyncio
import sys
import time

from micropython import const, heap_lock

from . import client as _client
from .errors import MQTTError
from .packet import as_bytes
from .topic import check, matches

if sys.implementation.name == "cpython":
    from .cpython import readable, release, sleep_ms
else:
    sleep_ms = asyncio.sleep_ms
    # Of all ports' asyncio, though its stubs do not tell; `_io_queue` is another with each loop.
    _core = asyncio.core  # type: ignore[attr-defined]

    def readable(stream):
        """To be awaited: the stream has something to read, or was released."""
        yield _core._io_queue.queue_read(getattr(stream, "raw", stream))

    def release(stream):
        """The stream is about to be closed: who waits for it goes on."""
        stream = getattr(stream, "raw", stream)  # TLS
        queue = _core._io_queue
        entry = queue.map.get(id(stream))
        if entry:
            queue._dequeue(stream)
            _core._task_queue.push(entry[0])


_NETWORK = const(256)
_CLOSED = const(258)
_TOO_LARGE = const(260)
_FULL = const(261)

_ONLINE = const(2)

_MOST_TAKEN = const(16)  # then reading waits, unless an answer is awaited
_MOST_PACKETS = const(64)
_MOST_QOS0 = const(64)
_TICK_MS = const(500)
_GLANCE_MS = const(5)  # between two looks at what asyncio cannot wait for

# Whose turn it is with a message.
_NOBODY = const(0)
_LOOP = const(1)
_BROKER = const(2)  # the body is done


class Message:
    """A received message of its own: `topic` and `payload` are bytes; `qos`, `retain`;
    `packet_id` is 0 at QoS 0, and when the broker knows it no more."""

    # What stays so needs no place in the message's own table of attributes.
    qos = packet_id = 0
    _reason = 0  # for which the program refused it
    retain = False
    properties = None  # at level 5 `properties.Properties`
    _turn = _NOBODY
    _pattern = None  # of the loop that has it
    _link = 0  # the connection that awaits the acknowledgement

    def __init__(self, message, level):
        self.topic, self.payload = message.copies()
        if message.retain:
            self.retain = True
        if level == 5:
            self.properties = message.properties

    def matches(self, pattern):
        """Does the topic match the filter `pattern` (bytes)?"""
        return matches(pattern, self.topic, 0, len(self.topic))

    def done(self):
        """Let it be acknowledged before its body ends: what a `break` needs."""
        self._turn = _BROKER

    def refuse(self, reason):
        """At level 5: have it answered with this reason code, 0x80 or more, when its body
        ends: the broker gives it up.  At QoS 0 nobody is told."""
        if self.properties is None or not 0x80 <= reason <= 0xFF:
            raise ValueError("refuse(): level 5, 0x80 to 0xFF")
        self._reason = reason


class _Messages:
    # What `async for` runs over.

    def __init__(self, client, pattern):
        self._client = client
        self._pattern = pattern
        self._last = None

    def __aiter__(self):
        # What a body has left is for this loop, one of this object's, too.
        self._last = None
        for one in self._client._taken:
            if one._turn == _LOOP and one._pattern == self._pattern:
                one._turn = _NOBODY
        return self

    async def __anext__(self):
        client = self._client
        if self._last:
            self._last.done()
            self._last = None
            client._turn(False)  # acknowledged before the next body begins
        pattern = self._pattern
        while not client._is_over:
            taken = client._taken
            for k in range(len(taken)):
                one = taken[k]
                if not one._turn and (pattern is None or one.matches(pattern)):
                    if one.qos:
                        one._turn = _LOOP
                        one._pattern = pattern
                        self._last = one
                    else:
                        client._drop(k)
                    return one
            await client._moved.wait()
        raise StopAsyncIteration


class MQTTClient(_client.MQTTClient):
    """As `umqtt31.MQTTClient`, for asyncio: docs/guides/asyncio.md.

    The same arguments, attributes and hooks, but `on_message`, in place of which there is
    `messages()`.  `subscribe()` and `unsubscribe()` are to be awaited and go on after a lost
    connection.  What else could wait (`poll()`, `reconnect()`, `ping()`) is not for programs.
    """

    _keeper = None  # the task that keeps the client connected, once it is
    _is_over = False  # nobody waits for a connection: disconnected, or connect() failed
    _call = None  # the last one of connect()

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._taken = []  # messages, in the order of arrival, that are not acknowledged
        self._link = 0  # counts connections
        self._moved = asyncio.Event()
        self.on_message = self._take_in
        self._waiting = 0  # tasks
        self._asking = asyncio.Lock()
        if self._protocol.is_ordered:
            from .ordered import Ordered

            del self.publish
            self.publish_nowait = Ordered(self.publish_nowait, self._protocol).publish

    async def __aenter__(self):
        if not self._keeper:
            await self.connect()
        return self

    async def __aexit__(self, *args):
        await self.disconnect()

    # --- connecting ----------------------------------------------------------------------

    async def connect(self, clean_session=True, stream=None):
        """Connect, however long that takes -> session present; from then on the client
        keeps itself connected until `disconnect()`.

        `stream`: a callable that opens one, instead of a socket.  Waits between attempts
        as `reconnect()` does.  Raises MQTTError as that does, or CLOSED if meanwhile another
        task calls this or `disconnect()`; `last_error` says why it is not connected yet.
        """
        if stream and not callable(stream):
            raise TypeError("stream must be a function that opens one")
        self._make_connect(clean_session)
        await self.disconnect()
        self._is_over = False
        if stream:
            self._opener = stream
        if clean_session:
            from .giveup import start_over

            start_over(self._protocol, self._give_up)
        self._clean = clean_session
        self._attempts = 0
        self._attempt_at = time.ticks_ms()
        self._call = call = object()
        try:
            while not self._step():
                await self._pace()
                if self._is_over or self._call is not call:
                    raise MQTTError(_CLOSED)
        except BaseException:
            if self._call is call:
                self._close()
                self._end()
            raise
        self._keeper = asyncio.create_task(self._keep())
        return self._protocol.is_present

    def _step(self):
        # Go on connecting -> connected?
        protocol = self._protocol
        if not self.reconnect():
            return False
        if protocol.is_new:
            protocol.is_new = False
            for one in self._taken:
                one.packet_id = 0  # the broker's new session knows nothing of it
        self._link += 1
        self._reader = asyncio.create_task(self._read(self._raw))
        return True

    def _pace(self):
        return sleep_ms(min(max(self.next_due_ms(), _GLANCE_MS), _TICK_MS))

    async def _keep(self):
        # Look at the clock, and connect again after a loss.
        while True:
            self._turn()
            await self._pace()

    async def _read(self, raw):
        # Until this stream is closed.
        protocol = self._protocol
        while self._raw is raw:
            if self._turn():
                await sleep_ms(0)  # there may be more, and others want their turn
            elif not self._most_packets:
                await self._moved.wait()  # _drop() and _next_turn() say when
            elif self._opener or protocol.left:
                await sleep_ms(_GLANCE_MS)
            elif self._raw is raw:
                await readable(raw)

    def _turn(self, is_reading=True):
        # All that is due, without waiting -> packets handled.
        protocol = self._protocol
        handled = 0
        try:
            if protocol.state == _ONLINE:
                self._settle()
                if not is_reading:
                    heap_lock()
                    self._push()
                    self._tell()
                    return 0
                # What waits for the broker, or a body that does, must not wait for a body.
                taken = self._taken
                if self._waiting or protocol.is_pinging or taken and taken[0]._turn == _BROKER:
                    self._most_packets = _MOST_PACKETS
                else:
                    self._most_packets = max(0, _MOST_TAKEN - len(taken))
                handled = self.poll()
            elif self._keeper:
                self._step()
        except Exception as error:
            # A new connection heals most; what it does not comes again, and is told again.
            # A message too large for the buffer was acknowledged, and others come after it.
            if getattr(error, "code", 0) == _TOO_LARGE:
                handled = 1
            else:
                self._close()
            self.last_error = error
        self._wake()
        return handled

    def _wake(self):
        # Who waits for anything looks for it.
        self._moved.set()
        self._moved.clear()

    def _end(self):
        self._is_over = True
        self._wake()
        # The next connect() may be in another loop.
        self._moved = asyncio.Event()
        self._asking = asyncio.Lock()

    def _close(self):
        if self._raw:
            release(self._raw)
        super()._close()

    async def disconnect(self):
        """Say goodbye and close, as soon as what was begun is written.  Loops over
        `messages()` end, who waits for something gets MQTTError (CLOSED)."""
        if self._keeper:
            self._keeper.cancel()
            self._keeper = None
        try:
            self._turn(False)
            if self._protocol.left:
                await sleep_ms(_TICK_MS)
                self._turn(False)
        finally:
            if self._protocol.left:
                self._close()  # the stream takes nothing
            self._end()
            super().disconnect()

    # --- messages ------------------------------------------------------------------------

    def messages(self, pattern=None):
        """`async for message in client.messages()`: each message is acknowledged when its
        body is done.

        `pattern`: only those whose topic matches this filter, so that several tasks
        share the messages; what nobody takes waits, and all acknowledgements after it.
        A message whose body was left comes again in the next loop with the same filter.
        Ends with `disconnect()`.  Raises ValueError, TypeError.
        """
        if pattern is not None:
            pattern = as_bytes("pattern", pattern)
            check(pattern, True)
        return _Messages(self, pattern).__aiter__()

    def _take_in(self, message):
        # As `on_message`.  A QoS of 0 keeps poll() from acknowledging it already.
        taken = self._taken
        if message.qos:
            one = Message(message, self._protocol.level)
            one.qos = message.qos
            one.packet_id = packet_id = message.packet_id
            for other in taken:
                if other.packet_id == packet_id:
                    if (
                        other.qos == one.qos
                        and other.topic == one.topic
                        and other.payload == one.payload
                    ):
                        one = other  # it came again: is acknowledged here
                    else:
                        other.packet_id = 0  # of a session that the broker has lost
            link = self._link
            if one._link != link:
                if one._link:
                    taken.remove(one)
                one._link = link
                # In the order of arrival here: before those that are still to come again.
                k = len(taken)
                if k and taken[-1]._link != link:
                    k = 0
                    while k < len(taken) and (taken[k]._link == link or not taken[k].packet_id):
                        k += 1
                taken.insert(k, one)
            message.qos = 0
        elif len(taken) < _MOST_QOS0:
            taken.append(Message(message, self._protocol.level))
        else:
            self._protocol.stats.dropped += 1

    def _drop(self, k):
        # The reader may wait for room.
        del self._taken[k]
        if len(self._taken) == _MOST_TAKEN - 1:
            self._wake()

    def _settle(self):
        # MQTT-4.6.0-2, -3: acknowledge what is done, in the order of arrival.
        protocol = self._protocol
        while self._taken and self._taken[0]._turn == _BROKER and protocol.room > 0:
            one = self._taken[0]
            packet_id = one.packet_id
            if packet_id:
                now = time.ticks_ms()
                is_here = one._link == self._link
                if one.qos == 2 and not protocol.held.has_room(packet_id):
                    return
                # What this connection does not take for want of room gets no PUBREL on it, that
                # would end its being held.
                if protocol.is_starved and not is_here:
                    return
                if is_here:
                    if one._reason:
                        protocol.message.reason = one._reason
                    protocol.acknowledge(one.qos, packet_id, now)
                elif one.qos == 2 and not one._reason:
                    # Its connection is gone: what this one repeats is a repetition.
                    protocol.store.hold(packet_id)
                    protocol.held.add(packet_id, now)
            self._drop(0)

    # --- publishing ----------------------------------------------------------------------

    # As `umqtt31.MQTTClient.publish()`: never waits, raises MQTTError (FULL).
    publish_nowait = _client.MQTTClient.publish

    async def publish(self, *args, **options):
        """`publish(topic, msg, retain=False, qos=0, max_age=0)` -> packet id, 0 at QoS 0;
        waits for room, at QoS 0 for the connection too.  A cancelled one is accepted whole
        or not at all."""
        while True:
            try:
                return self.publish_nowait(*args, **options)
            except MQTTError as error:
                if error.code not in (_FULL, _CLOSED, _NETWORK):
                    raise
            await self._next_turn()

    async def _next_turn(self, readers=1):
        if self._is_over:
            raise MQTTError(_CLOSED)
        if self._protocol.left:
            release(self._raw)  # the reader looks after what is half written
        if readers and not self._waiting:
            self._wake()  # the reader reads on, whatever waits for a body
        self._waiting += readers
        try:
            await self._moved.wait()
        finally:
            self._waiting -= readers

    async def flush(self):
        """Wait until nothing is in flight or queued: it is safe to switch off."""
        while self._protocol.count or self._protocol.left:
            await self._next_turn()
        self._protocol.store.sync()

    async def reconnected(self):
        """Wait for the next connection after this one -> session present."""
        link = self._link
        while link == self._link:
            await self._next_turn(0)
        return self._protocol.is_present

    # --- subscriptions -------------------------------------------------------------------

    async def _request(self, *request):
        request, alone = self._make_requests(*request)
        link = 0  # the connection that was asked
        async with self._asking:
            while True:
                if self.is_connected:
                    if not self._protocol.request:
                        if link == self._link:
                            return self._granted(request)
                        link = self._link
                        start = time.ticks_ms()
                        self._ask(request, alone)
                        self._turn()
                    elif link == self._link and self._since(start) >= self._protocol.timeout_ms:
                        self._close()
                await self._next_turn()
