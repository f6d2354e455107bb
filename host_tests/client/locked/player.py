"""Plays scripts whose title says `locked`: each call of the client is made with the heap locked.

Stream, clock, handler and hooks allocate nothing.  What may allocate is called as ever: connect(),
subscribe(), disconnect().  Runs under MicroPython, and under CPython, where nothing is locked.
"""

from host_tests.client.dialogue import Dialogue
from host_tests.client.player import Player
from host_tests.standin.stream import FixedStream
from micropython import heap_lock, heap_unlock

_LOCKED = ("poll", "check_msg", "flush", "next_due_ms", "ping")
_MOST = 40  # messages, and calls of a hook, between two looks at them


class Locked:
    """`with locked:` the heap is; neither end of it allocates."""

    def __enter__(self):
        heap_lock()

    def __exit__(self, kind, error, trace):
        heap_unlock()


locked = Locked()


class Handler:
    """Uses all of Message that is said not to allocate, and keeps what it saw."""

    def __init__(self):
        self._rows = [[bytearray(32), bytearray(1100)] + [0] * 8 for _ in range(_MOST)]
        self._n = 0

    def on_message(self, message):
        row = self._rows[self._n]
        self._n += 1
        row[2] = message.topic_into(row[0])
        row[3] = message.payload_into(row[1])
        row[4] = message.qos
        row[5] = message.retain
        row[6] = message.dup
        row[7] = message.topic_is(b"t")
        row[8] = message.matches(b"home/+/temp")
        row[9] = message[message.payload_len - 1] if message.packet_id or not message.qos else -1

    def take(self):
        """-> what it saw since the last call, as a Dialogue's `messages`."""
        found = []
        for row in self._rows[: self._n]:
            topic, payload = bytes(row[0][: row[2]]), bytes(row[1][: row[3]])
            looks = [topic == b"t", topic == b"home/room1/temp", payload[-1]]
            assert row[7:] == looks, (topic, row[7:])
            found.append((topic, payload, row[4], row[5], row[6]))
        self._n = 0
        return found


class Pairs:
    """A hook that keeps the two numbers that it is told."""

    def __init__(self):
        self._numbers = [0] * (2 * _MOST)
        self._n = 0

    def hook(self, first, second):
        self._numbers[self._n] = first
        self._numbers[self._n + 1] = second
        self._n += 2

    def take(self):
        """-> what it was told since the last call."""
        numbers = self._numbers
        found = [(numbers[k], numbers[k + 1]) for k in range(0, self._n, 2)]
        self._n = 0
        return found


class LockedDialogue(Dialogue):
    make_stream = FixedStream

    def listen(self):
        self.handler, self.drops, self.oversize = Handler(), Pairs(), Pairs()
        self.client.on_message = self.handler.on_message
        self.client.on_drop = self.drops.hook
        self.client.on_oversize = self.oversize.hook

    def take_messages(self):
        return self.handler.take()

    def watch_drops(self):
        return []

    def work(self):
        with locked:
            while self.client.poll():
                pass

    def publish(self, payload=b"x", qos=1, topic=b"t", retain=False, max_age=0, properties=None):
        publish = self.client.publish
        topic = topic.encode() if isinstance(topic, str) else topic
        with locked:
            if max_age or properties:
                return publish(topic, payload, retain, qos, max_age, properties)
            return publish(topic, payload, retain, qos)


class LockedPlayer(Player):
    dialogue = LockedDialogue

    def _call(self, name, method, alone, named):
        if name not in _LOCKED:
            return method(*alone, **named)
        if not alone:
            with locked:
                return method()
        number = alone[0]
        with locked:
            return method(number)

    def do_on_oversize(self, text):
        assert not text  # listen() has done it

    def do_dropped(self, text):
        self.dropped = self.d.drops.take()
        super().do_dropped(text)

    def do_oversize(self, text):
        self.oversize = self.d.oversize.take()
        super().do_oversize(text)
