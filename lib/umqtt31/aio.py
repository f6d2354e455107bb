"""MQTTClient for asyncio: it awaits, keeps itself connected, and hands messages to loops.

    from umqtt31.aio import MQTTClient              # for level 5: extend(v5.MQTTClient)

MQTT 3.1 §4; MQTT 5 §4.3.3 and §4.6.
"""

# Two tasks drive the client: one reads when the stream has something, one looks at the clock
# twice a second and connects again after a loss.  Both do the same, all that is due, in _turn(),
# which never waits.  After each turn the event _moved wakes all tasks that wait for room or an
# answer, and each looks whether it has come.
#
# A message is copied out of the receive buffer, since while the body of a loop runs,
# acknowledgements have to be read: a publish() in the body waits for them.  It stands in _taken
# until its body is done, and is acknowledged then, in the order of arrival.  If the broker sends
# it again on the next connection meanwhile, it is found there by its id.  A message with this id
# and without DUP is a new one: the broker lost the session.  The objects are used again.  Once
# there are enough, a message allocates only the 16 bytes of a traceback, in MicroPython.
#
# Only the look-up of the broker's name blocks all tasks.

from micropython import const  # isort: skip

import asyncio
from asyncio import sleep_ms
from time import ticks_diff, ticks_ms

from . import Message, MQTTError, as_bytes, as_filter, close, hold, owe, push, set_of
from . import MQTTClient as _Client

_PUBLISH = const(0x30)
_NETWORK = const(256)
_CLOSED = const(258)
_TOO_LARGE = const(260)
_FULL = const(261)

_MOST_ACKS = const(132)  # as in the core
_MOST_TAKEN = const(16)  # then reading waits, unless an answer is awaited
_MOST_QOS0 = const(64)
_TICK_MS = const(500)
_GLANCE_MS = const(5)  # between two looks at what asyncio cannot wait for

# Who has to act on a message next.
_NOBODY = const(0)
_LOOP = const(1)
_BROKER = const(2)  # the body is done

_core = getattr(asyncio, "core", None)  # None: CPython


def _readable(raw):
    # For `await`: until the stream has something to read, or is closed.
    yield _core._io_queue.queue_read(raw)


class _Messages:
    # What `async for` runs over, and what it awaits.

    _last = _waits = None

    def __init__(self, client, pattern):
        self._client = client
        self._pattern = pattern

    def __aiter__(self):
        # A message that a body left goes to this loop, also one of this object's last loop.
        client = self._client
        self._last = None
        self._moved = client._moved
        for one in client._taken:
            if one._turn == _LOOP and one._loop._pattern == self._pattern:
                one.pass_to(_NOBODY if one.qos else _BROKER)
        return self

    def __anext__(self):
        client = self._client
        last = self._last
        if last:
            self._last = None
            if last._loop is self:  # else another loop took it, and it may be another message
                last.pass_to(_BROKER)
                if not last._link:  # acknowledged already
                    client._free.append(last)
            # Acknowledged before the next body begins.  What reads is another task, so that
            # a flood keeps no task waiting.
            client._turn(False)
        return self

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        self.close()
        client = self._client
        if client._call is None or self._moved is not client._moved:
            raise StopAsyncIteration
        for one in client._taken:
            if not one._turn and (self._pattern is None or one.matches(self._pattern)):
                one.pass_to(_LOOP, self)
                self._last = one
                one._stop.__traceback__ = None
                raise one._stop
        self._waits = client._moved.wait()
        return self._waits.send(None)

    def throw(self, *error):
        self.close()
        raise error[0]

    def close(self):
        # The garbage collector might do it while CPython's Event goes over its waiters.
        if self._waits:
            self._waits.close()


def extend(base):
    """-> the class of clients that are as those of `base`, for asyncio."""
    message_class = getattr(base, "_message_class", Message)
    fields = ["qos", "packet_id", "retain", "dup"]
    fields += ["topic_len", "payload_len", "_topic", "_payload"]

    class Taken(message_class):
        """A message, valid until its body is done."""

        def __init__(self, like):
            self._buf = bytearray(len(like._buf))
            self._copier = like._copier
            self._stop = StopIteration(self)
            self._link = 0  # the connection that awaits the acknowledgement

        def take(self, other):
            # What `other` is now.
            self.pass_to(_NOBODY)
            for name in fields:
                setattr(self, name, getattr(other, name))
            other.copy(0, other._payload + other.payload_len, self._buf)

        def pass_to(self, turn, loop=None):
            # `loop`: whose body has it, until that ends.
            self._turn = turn
            self._loop = loop
            if turn == _LOOP:
                self._reason = 0  # for which the body refused it

        def came_on(self, link):
            self._link = link

        def orphan(self):
            self.packet_id = 0

        def done(self):
            """Let it be acknowledged before its body ends: what a `break` needs."""
            self._turn = _BROKER

        def refuse(self, reason):
            """At level 5: have it answered with this reason code, 0x80 or more, when its body
            ends: the broker gives it up.  At QoS 0 nobody is told."""
            if message_class is Message or reason >> 7 != 1:
                raise ValueError("refuse(): level 5, 0x80 to 0xFF")
            self._reason = reason

    class MQTTClient(base):
        """As `umqtt31.MQTTClient`, for asyncio: docs/guides/asyncio.md.

        The same arguments, attributes and hooks; in place of `on_message` there is `messages()`.
        `up` and `down`: asyncio.Event, set when a connection comes and when it is gone; the
        program clears them.  `subscribe()` and `unsubscribe()` are to be awaited and go on after
        a lost connection.  What else could wait (`poll()`, `reconnect()`, `ping()`) is not for
        programs.
        """

        _keeper = None  # the task that keeps the client connected, once it is
        _call = 0  # the last one of connect(); None: disconnected, or connect() failed
        _is_up = False

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self._taken = []  # messages, in the order of arrival, that are not acknowledged
            self._free = []
            self._link = 0  # counts connections
            self._moved = asyncio.Event()  # until disconnect(); then there is another one
            self.up = asyncio.Event()
            self.down = asyncio.Event()
            self.on_message = self._take_in

        async def __aenter__(self):
            if not self._keeper:
                await self.connect()
            return self

        async def __aexit__(self, *args):
            await self.disconnect()

        # --- connecting ------------------------------------------------------------------

        async def connect(self, clean_session=True, stream=None):
            """Connect, however long that takes -> session present; from then on the client
            keeps itself connected until `disconnect()`.

            `stream`: a callable that opens one, instead of a socket.  Waits between attempts
            as `reconnect()` does.  Raises MQTTError as that does, or CLOSED if meanwhile another
            task calls this or `disconnect()`; `last_error` says why it is not connected yet.
            """
            if stream and not callable(stream):
                raise TypeError("stream must be a function")
            self._make_connect(clean_session)
            call = object()
            try:
                await self._leave(call)
                if self._call is call:
                    self._opener = stream or self._opener
                    if clean_session:
                        self._start_over()
                    self._is_clean = clean_session
                    self._fails = 0
                    self._try_at = ticks_ms()
                    self._look()
                while True:
                    if self._call is not call:
                        raise MQTTError(_CLOSED)
                    if self.reconnect():
                        break
                    await self._pace()
                self._keeper = asyncio.create_task(self._tend())
            finally:
                if self._call is call and not self._keeper:
                    await self._leave()
            return self._is_present

        def _on_connack(self, value):
            is_new = self._was_clean or self._is_clean
            super()._on_connack(value)
            self._link += 1
            if is_new or self.level > 3 and not self._is_present:
                for one in self._taken:
                    one.orphan()  # the broker's new session knows nothing of it
            self._is_up = True
            self.up.set()
            asyncio.create_task(self._listen(self._stream))

        def _pace(self):
            return sleep_ms(min(self.next_due_ms() + _GLANCE_MS, _TICK_MS))

        async def _tend(self):
            # Look at the clock, and connect again after a loss.
            while True:
                self._turn()
                await self._pace()

        async def _listen(self, stream):
            # Until this stream is closed.
            while self._stream is stream:
                if self._turn():
                    await sleep_ms(0)  # there may be more, and others want their turn
                elif not self._most_acks:
                    await self._moved.wait()
                elif self._opener or self._left or not _core:
                    await sleep_ms(_GLANCE_MS)
                elif self._stream is stream:
                    await _readable(getattr(stream, "raw", stream))

        def _turn(self, reads=True):
            # All that is due, without waiting -> packets handled.
            handled = 0
            try:
                self._settle()
                self._look()
                if not reads:
                    push(self)
                elif self.is_connected:
                    handled = self.poll()
                elif self._keeper:
                    self.reconnect()
            except Exception as error:
                # A new connection mends most errors.  The others come again, and are told again.
                # A message too large for the buffer was acknowledged, and others come after it.
                handled = getattr(error, "code", 0) == _TOO_LARGE
                if not handled:
                    close(self)
                self.last_error = error
            self._stir()
            return handled

        def _look(self):
            # A task that waits for the broker must not wait for a body, too.
            taken = self._taken
            is_full = self.is_connected and len(taken) >= _MOST_TAKEN and not (
                taken[0]._turn == _BROKER
                or self.inflight
                or self._request
                or self._ping_at is not None
            )  # fmt: skip
            self._most_acks = 0 if is_full else _MOST_ACKS

        def _stir(self):
            # Wake all tasks that wait for something.
            if self._is_up and not self.is_connected:
                self._is_up = False
                self.down.set()
            self._moved.set()
            self._moved.clear()

        async def disconnect(self):
            """Say goodbye and close, as soon as what was begun is written.  Loops over
            `messages()` end, and tasks that wait for something get MQTTError (CLOSED)."""
            await self._leave()

        async def _leave(self, call=None):
            # `call`: the connect() for which it is.
            self._call = call
            if self._keeper:
                self._keeper.cancel()
                self._keeper = None
            try:
                self._settle()
                if self.is_connected:
                    self.is_connected = False  # no message goes out any more
                    if self.level > 4:
                        self._farewell(0)
                    self._first = self._goodbye
                    push(self)
                    if self._left:
                        await sleep_ms(_TICK_MS)
                        push(self)
            finally:
                if self._call is call:  # else another one closed it, and went on
                    self.is_connected = False
                    self._stir()
                    if not call:
                        self._moved = asyncio.Event()
                    super().disconnect()

        # --- messages --------------------------------------------------------------------

        def messages(self, pattern=None):
            """`async for message in client.messages()`: each message is acknowledged when its
            body is done, and valid until then.

            `pattern`: only those whose topic matches this filter, so that several tasks
            share the messages; what nobody takes waits, and all acknowledgements after it.
            A message whose body was left comes again in the next loop with the same filter.
            Ends with `disconnect()`.  Raises ValueError, TypeError.
            """
            if pattern is not None:
                pattern = as_filter(as_bytes("pattern", pattern))
            return _Messages(self, pattern).__aiter__()

        def _take_in(self, message):
            # As `on_message`.
            taken = self._taken
            link = self._link
            packet_id = message.packet_id
            one = None
            if packet_id:
                for other in taken:
                    if other.packet_id == packet_id:
                        if message.dup:
                            one = other  # it came again: is acknowledged here
                        else:
                            other.orphan()  # of a session that the broker has lost
            elif len(taken) > _MOST_QOS0:
                self.stats.dropped += 1
                return
            if not one:
                one = self._free.pop() if self._free else Taken(message)
                one.take(message)
            elif one._link != link:
                taken.remove(one)
            message.keep()
            if one._link != link:
                one.came_on(link)
                # In the order of arrival here: before those that are still to come again.
                k = 0
                while k < len(taken) and (taken[k]._link == link or not taken[k].packet_id):
                    k += 1
                taken.insert(k, one)
            self._look()

        def _settle(self):
            # MQTT-4.6.0-2, -3: acknowledge what is done, in the order of arrival.  Without a
            # connection it is recorded, but not where CONNECT may begin another session.
            # -> does one wait for a place or a connection?
            taken = self._taken
            while taken and taken[0]._turn == _BROKER and self._acks_n < _MOST_ACKS:
                one = taken[0]
                packet_id = one.packet_id
                is_here = self.is_connected and one._link == self._link
                if packet_id:
                    if one.qos == 2 and not one._reason:
                        # A message that is not accepted, for want of room, gets no PUBREL on this
                        # connection, so its id would stay held.
                        if (
                            self._held_n >= self._places
                            or self._is_starved and not is_here
                            or self._is_clean and not self.is_connected
                            or set_of(self, packet_id) < 0 and self._held_end == len(self._held)
                        ):  # fmt: skip
                            return True
                        # If its connection is gone, the broker's next copy is a repetition.
                        if self._store:
                            self._store.note(_PUBLISH, packet_id)
                        hold(self, packet_id, ticks_ms())
                    if not is_here:
                        pass
                    elif one._reason:
                        self.refuse(one.qos, packet_id, one._reason)
                    else:
                        owe(self, one.qos + 3 << 4, packet_id)
                one.came_on(0)
                if not one._loop:
                    self._free.append(one)
                del taken[0]

        # --- publishing ------------------------------------------------------------------

        # As `umqtt31.MQTTClient.publish()`: never waits, raises MQTTError (FULL).
        publish_nowait = base.publish

        async def publish(self, topic, msg, retain=False, qos=0, **options):
            """As `umqtt31.MQTTClient.publish()`, but waits for room, at QoS 0 for the connection
            too.  A cancelled one is accepted whole or not at all."""
            while True:
                try:
                    return self.publish_nowait(topic, msg, retain, qos, **options)
                except MQTTError as error:
                    code = error.code
                    if code == _NETWORK:
                        return 0  # QoS 0: it may be sent
                    if code != _FULL and code != _CLOSED:
                        raise
                await self._next_turn()

        async def _next_turn(self):
            moved = self._moved
            if self._left or self._acks_n:
                self._turn()
                await sleep_ms(_GLANCE_MS)
            elif self._call is not None:
                await moved.wait()
            if self._call is None or self._moved is not moved:
                raise MQTTError(_CLOSED)

        async def reconnected(self):
            """Wait for the next connection after this one -> session present."""
            link = self._link
            while link == self._link:
                await self._next_turn()
            return self._is_present

        async def flush(self):
            """Wait until nothing is in flight, queued or owed: it is safe to switch off."""
            while self._settle() or self.inflight or self.queued or self._left or self._acks_n:
                await self._next_turn()
            if self._store:
                self._store.sync()

        # --- subscriptions ---------------------------------------------------------------

        async def _ask(self, first, topics):
            request = self._make_request(first, topics)
            link = 0  # the connection that was asked
            awaited = None  # another task's request, or that of a task that was cancelled, too
            while True:
                if self.is_connected and self._request is not request:
                    if link == self._link:
                        return self._granted(request)
                    if not self._request:
                        link = self._link
                        self._send_request(request)
                        self._turn()
                if self._request is not awaited:
                    awaited = self._request
                    start = ticks_ms()
                elif awaited and ticks_diff(ticks_ms(), start) >= self._timeout_ms:
                    close(self)
                await self._next_turn()

    return MQTTClient


MQTTClient = extend(_Client)
