"""One client and its scripted broker: `b2c()` and `c2b()` are what goes over the wire.

Runs under CPython and under MicroPython; `test_…` functions in `dialogues/` are
written with it.  It changes the names `time` and `open_socket` in the client's
modules; under pytest `conftest.py` puts them back.
"""

import sys

import umqtt31
import umqtt31.connection
from host_tests.client import wire
from host_tests.client.scripted import Clock, ScriptedStream


def clocked_modules():
    """-> the client's modules that look at the clock."""
    names = [name for name in sys.modules if name.startswith("umqtt31.")]
    modules = [sys.modules[name] for name in names if name != "umqtt31.cpython"]
    return [module for module in modules if hasattr(module, "time")]


def error_of(function, *args, **options):
    """-> the exception that the call raises; a call that raises none is an error."""
    try:
        function(*args, **options)
    except Exception as error:
        return error
    raise AssertionError("nothing raised")


def code_of(function, *args, **options):
    """-> the code of the MQTTError that the call raises, and of nothing else."""
    error = error_of(function, *args, **options)
    if not isinstance(error, umqtt31.MQTTError):
        raise error
    return error.code


def _split(data):
    # Whole packets, for messages only.
    packets = []
    while data:
        end, length, shift = 1, 0, 0
        while True:
            length |= (data[end] & 127) << shift
            shift += 7
            end += 1
            if data[end - 1] < 128:
                break
        packets.append(data[: end + length])
        data = data[end + length :]
    return packets


class Dialogue:
    """`client` with a turned clock; `messages` are (topic, payload, qos, retain, dup)."""

    def __init__(self, clean=True, is_connected=True, **options):
        self.clock = Clock()
        for module in clocked_modules():
            module.time = self.clock
        umqtt31.connection.open_socket = self._open
        self.keepalive = options.setdefault("keepalive", 60)
        self.client = umqtt31.MQTTClient(b"dev", "broker", **options)
        self.client.on_message = self.keep
        self.messages = []
        self.opened = 0  # sockets asked for
        self.stream = None
        self._next_stream = None
        if is_connected:
            self.connect(clean)

    def keep(self, message):
        """The handler: note what came."""
        self.messages.append(
            (message.topic, message.payload, message.qos, message.retain, message.dup)
        )

    def take_messages(self):
        """-> what came since the last call."""
        messages = self.messages
        self.messages = []
        return messages

    def new_stream(self, clean=True, read_most=0, write_most=0):
        """A stream on which the broker takes CONNECT; the next that is opened."""
        stream = self._next_stream = ScriptedStream(read_most, write_most)
        stream.answer(wire.connect(b"dev", 2 if clean else 0, self.keepalive), wire.connack())
        return stream

    def connect(self, clean=True, **limits):
        """CONNECT and CONNACK on a new stream."""
        self.stream = self.new_stream(clean, **limits)
        self._next_stream = None
        assert self.client.connect(clean, stream=self.stream) is False
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
        assert sent == expected, "sent %r\nexpected %r" % (_split(sent), _split(expected))

    def wait(self, seconds):
        """Time passes; then the client is polled."""
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

    def _open(self, server, port, tls):
        self.opened += 1
        if self._next_stream is None:
            raise OSError(111)
        self.stream = self._next_stream
        self._next_stream = None
        return self.stream
