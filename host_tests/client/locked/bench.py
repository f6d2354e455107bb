"""What the tests with a locked heap share: a client on a stream that allocates
nothing, its turned clock, and a handler that uses all that is said not to allocate.
MicroPython.
"""

from host_tests.client import dialogue, wire
from host_tests.client.dialogue import class_for, turn, with_ids_from_1
from host_tests.standin.clock import Clock
from host_tests.standin.stream import FixedStream
from micropython import heap_lock, heap_unlock

TOPIC = b"home/room 1/temp"
PAYLOAD = b"21.5 C"
LONG = b"0123456789abcdef" * 64  # more than the copy in one piece takes


class Locked:
    """`with locked:` the heap is; neither end of it allocates."""

    def __enter__(self):
        heap_lock()

    def __exit__(self, kind, error, trace):
        heap_unlock()


locked = Locked()


class Handler:
    """Uses all of Message that is said not to allocate; keeps what it saw."""

    def __init__(self):
        self.topic = bytearray(64)
        self.payload = bytearray(2048)
        self.calls = self.length = self.dropped = self.reason = self.oversize = self.misses = 0

    def on_message(self, message):
        self.calls += 1
        if not message.topic_is(TOPIC) or message.topic_is(b"home/room 2/temp"):
            self.misses += 1
        if not message.matches(b"home/+/temp") or message.matches(b"home/+"):
            self.misses += 1
        if message.topic_into(self.topic) != message.topic_len or message.retain or message.dup:
            self.misses += 1
        if message.qos and not message.packet_id:
            self.misses += 1
        self.length = message.payload_into(self.payload)
        if message[message.payload_len - 1] != self.payload[self.length - 1]:
            self.misses += 1

    def on_drop(self, packet_id, reason):
        self.dropped = packet_id
        self.reason = reason

    def on_oversize(self, topic_len, payload_len):
        self.oversize = payload_len


class Bench:
    """A client just connected over a FixedStream, its clock and its handler."""

    def __init__(self, make=None, **options):
        self.clock = Clock()
        options.setdefault("level", dialogue.default_level)
        make = make or class_for(options["level"], options)
        turn(self.clock)
        self.client = with_ids_from_1(make, b"dev", "broker", **options)
        self.handler = Handler()
        self.client.on_message = self.handler.on_message
        self.client.on_drop = self.handler.on_drop
        self.client.on_oversize = self.handler.on_oversize
        self.is_kept = False
        self.connect()

    def connect(self, room=8192):
        self.stream = FixedStream()
        # The broker keeps the session, and from level 4 on says so.
        is_kept = self.is_kept and dialogue.default_level > 3
        self.is_kept = True
        self.stream.feed(wire.connack(0, int(is_kept)))
        self.client.connect(False, stream=self.stream)
        self.stream.take()
        self.stream.room = room

    def pass_ms(self, ms):
        self.clock.now_ms += ms

    def expect(self, *packets):
        sent = self.stream.take()
        assert sent == b"".join(packets), sent


def poll_all(client):
    while client.poll():
        pass
