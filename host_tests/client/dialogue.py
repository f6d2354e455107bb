"""One client and its scripted broker: `b2c()` and `c2b()` are what goes over the wire.

Runs under CPython and under MicroPython; `test_…` functions in `dialogues/` are
written with it.  It changes the names `time`, `socket` and, while a client is made,
`random` in the client's modules; under pytest `conftest.py` puts them back.
"""

import sys

import umqtt31
from host_tests.choice import class_for, loaded_modules, modules_with, turn
from host_tests.client import wire
from host_tests.standin.clock import Clock
from host_tests.standin.dice import Thrown
from host_tests.standin.sockets import Sockets
from host_tests.standin.stream import ScriptedStream

# What every client speaks that is not told otherwise: `conftest.py` and `on_board.py`
# run the dialogues at levels 3, 4 and 5.  Tests for level 5 alone stand in their module's
# LEVEL_5; a module for some levels has LEVELS.
default_level = 3


def levels_of(module, name):
    """-> the levels at which the test of this name in the module runs."""
    if name in getattr(module, "LEVEL_5", ()):
        return (5,)
    return getattr(module, "LEVELS", (3, 4, 5))


def speak(level):
    """Clients that are not told otherwise, and the packets of `wire`, are of this level."""
    global default_level
    default_level = level
    wire.speak(level)


def error_of(function, *args, **options):
    """-> the exception that the call raises; a call that raises none is an error."""
    try:
        function(*args, **options)
    except (Exception, KeyboardInterrupt) as error:
        return error
    raise AssertionError("nothing raised")


def refuses(kind, words, function, *args, **options):
    """The call raises an error of this kind that says these words."""
    error = error_of(function, *args, **options)
    assert isinstance(error, kind) and words in str(error), (args, options, error)


def code_of(function, *args, **options):
    """-> the code of the MQTTError that the call raises, and of nothing else."""
    error = error_of(function, *args, **options)
    if not isinstance(error, umqtt31.MQTTError):
        raise error
    return error.code


class Dialogue:
    """`client` with a turned clock; `messages` are (topic, payload, qos, retain, dup).

    Packet ids begin at 1 or at `first_id`, unless `is_random`.  The broker keeps the session
    from one connection to the next if both were opened with `clean` False.  `front`: another
    class of clients, whose callback gets topic and payload alone.
    """

    make_stream = ScriptedStream

    def __init__(
        self,
        clean=False,
        is_connected=True,
        is_random=False,
        is_queueing=False,
        front=None,
        **options,
    ):
        self.clock = Clock()
        sys.modules["socket"] = Sockets(self._open)
        self.level = options.setdefault("level", default_level)
        make = front or self.class_for(options, is_queueing)
        turn(self.clock)
        wire.speak(self.level)
        self.keepalive = options.setdefault("keepalive", 0 if front else 60)
        self.size = options.get("buffer_size", 256)
        self.store = options.get("store")
        self.most_held = options.get("max_awaiting_rel", 512)
        client_id = options.pop("client_id", b"dev")
        first_id = options.pop("first_id", 1)
        with Thrown([] if is_random else modules_with("random"), first_id - 1):
            self.client = make(client_id, "broker", **options)
        if front:
            self.client.set_callback(lambda *message: self.messages.append(message + (0, 0, 0)))
        else:
            self.listen()
        self.messages = []
        self.opened = 0  # sockets asked for
        self.unreachable = 0  # so many of the next find nobody
        self.stream = None
        self.sockets = []  # what the next ones are
        if is_connected:
            self.connect(clean)

    def class_for(self, options, is_queueing):
        return class_for(self.level, options, is_queueing)

    def listen(self):
        self.client.on_message = self.keep

    def keep(self, message):
        """The handler: note what came, which is new bytes."""
        assert type(message.topic) is type(message.payload) is bytes
        self.messages.append(
            (message.topic, message.payload, message.qos, message.retain, message.dup)
        )

    def take_messages(self):
        """-> what came since the last call."""
        messages = self.messages
        self.messages = []
        return messages

    def watch_drops(self):
        """-> a list that grows with what is given up, (packet id, reason)."""
        dropped = []
        self.client.on_drop = lambda packet_id, reason: dropped.append((packet_id, reason))
        return dropped

    def connect_packet(self, clean):
        """CONNECT as this client sends it."""
        options = {}
        if self.level == 5:
            options["properties"] = wire.asked(clean, self.size, self.places())
        return wire.connect(b"dev", 2 if clean else 0, self.keepalive, level=self.level, **options)

    def places(self):
        """So many QoS 2 ids find their place, however they lie."""
        places = 7 if hasattr(self.store, "Held") else max(16, self.most_held // 15 + 2)
        return min(places, self.most_held)

    def new_stream(self, clean, is_present=None, said=b"", **limits):
        """A stream on which the broker takes CONNECT; the next that is opened.

        `is_present`: does the broker say that it kept the session?  `said`: its properties.
        """
        if is_present is None:
            is_present = self.level > 3 and not clean
        stream = self.make_stream(**limits)
        self.sockets = [stream]
        stream.answer(self.connect_packet(clean), wire.connack(0, int(is_present), said))
        return stream

    def connect(self, clean=True, is_present=None, said=b"", **limits):
        """CONNECT and CONNACK on a new stream; see `new_stream()`."""
        self.stream = self.new_stream(clean, is_present, said, **limits)
        self.sockets = []
        if is_present is None:
            is_present = self.level > 3 and not clean
        found = self.client.connect(clean, stream=self.stream)
        assert found == is_present, found
        assert self.stream.has_answered()

    def reconnect(self, clean, is_present=None):
        """reconnect() until it works; the sockets are scripted streams."""
        self.new_stream(clean, is_present)
        assert self.client.reconnect(200000) is True
        assert self.stream.has_answered()

    def lose(self):
        """The network takes the connection away; the client notices."""
        self.stream.write_error = OSError(104)
        self.stream.feed(OSError(104))
        assert code_of(self.client.poll) == umqtt31.NETWORK
        assert self.stream.is_closed and not self.client.is_connected

    def b2c(self, *packets):
        """The broker sends; the client works on it until there is nothing to do."""
        self.stream.feed(*packets)
        self.work()

    def work(self):
        while self.client.poll():
            pass

    def c2b(self, *packets):
        """The client sent just this since the last look."""
        sent = self.stream.take()
        expected = b"".join(packets)
        assert sent == expected, "sent %r\nexpected %r" % (wire.split(sent), wire.split(expected))

    def take_packets(self):
        """-> what the client sent since the last look, packet by packet."""
        return wire.split(self.stream.take())

    def take_publishes(self):
        """The same; all of it must be PUBLISH -> [(payload, QoS, packet id, dup)]."""
        return [wire.read_publish(packet) for packet in self.take_packets()]

    def wait(self, seconds):
        self.clock.now_ms += int(seconds * 1000 + 0.5)
        self.work()

    def publish(self, payload=b"x", qos=1, topic=b"t", **options):
        return self.client.publish(topic, payload, qos=qos, **options)

    def subscribe(self, request, reply, *args):
        """subscribe(), answered by the broker -> granted QoS."""
        self.stream.answer(request, reply)
        granted = self.client.subscribe(*args)
        assert self.stream.has_answered()
        return granted

    def _open(self, server, port):
        self.opened += 1
        if self.unreachable or not self.sockets:
            self.unreachable = max(0, self.unreachable - 1)
            raise OSError(111)
        self.stream = self.sockets.pop(0)
        return self.stream


class NoMemory:
    """`with NoMemory(64):` the library gets no buffer of so many bytes, or more.

    `kind`: of buffers; bytes: of copies, outside of the core.
    """

    def __init__(self, least, kind=bytearray):
        self._least = least
        self._kind = kind

    def _new_buffer(self, content):
        if (content if isinstance(content, int) else len(content)) >= self._least:
            raise MemoryError
        return self._kind(content)

    def __enter__(self):
        self._name = self._kind.__name__
        self._modules = [
            module for module in loaded_modules() if self._name not in module.__dict__
        ]
        for module in self._modules:
            setattr(module, self._name, self._new_buffer)

    def __exit__(self, *_):
        for module in self._modules:
            delattr(module, self._name)
