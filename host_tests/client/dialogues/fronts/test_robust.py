"""Programs for umqtt.robust: what loses its connection connects again."""

import sys

from host_tests.client import wire
from host_tests.client.dialogue import error_of, modules_with, turn, with_ids_from_1
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel, suback, subscribe
from host_tests.standin.clock import Clock
from host_tests.standin.sockets import Sockets
from host_tests.standin.stream import ScriptedStream
from umqtt31 import TOO_LARGE
from umqtt31.robust import MQTTClient, MQTTException

LEVELS = (4,)


class Program(MQTTClient):
    """What delay() and log() are told is in `told`."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.told = []

    def delay(self, i):
        self.told.append(i)

    def log(self, in_reconnect, e):
        assert isinstance(e, OSError)
        self.told.append("reconnect" if in_reconnect else "lost")


class Stream(ScriptedStream):
    """The broker answers CONNECT, a kept session asked for, with `reply`; then comes `more`."""

    def __init__(self, reply, *more, request=None):
        super().__init__()
        self.answer(request or wire.connect(b"dev", 0, 0, level=4), reply)
        self._more = more

    def write(self, buf, off, n):
        n = super().write(buf, off, n)
        if self.has_answered():
            self.feed(*self._more)
            self._more = ()
        return n


class Network:
    """Sockets in a row, one for each attempt to connect: a Stream, or None for no network."""

    def __init__(self, *streams, make=Program):
        turn(Clock())
        sys.modules["socket"] = Sockets(self._open)
        self.streams = list(streams)
        self.seen = []
        self.client = with_ids_from_1(make, b"dev", "broker")
        self.client.set_callback(lambda topic, msg: self.seen.append(msg))

    def _open(self, server, port):
        if not self.streams:
            raise SystemExit("connects once too often")  # no OSError, which is survived
        stream = self.streams.pop(0)
        if stream is None:
            raise OSError(113)
        return stream


def lost(stream):
    stream.write_error = OSError(104)
    stream.feed(OSError(104))


def test_publish_when_the_link_is_lost_then_connects_and_publishes_again():
    """C: PUBLISH 1, the link is lost, twice no network; C: PUBLISH 2; B: PUBACK 2."""
    first = Stream(wire.connack())
    second = Stream(wire.connack(0, 1))
    net = Network(first, None, None, second)
    net.client.connect(False)
    lost(first)
    second.answer(publish(b"t", b"x", 1, 2), puback(2))
    net.client.publish(b"t", b"x", False, 1)
    assert second.has_answered()
    assert net.client.told == ["lost", "reconnect", 1, "reconnect", 2]


def test_arguments_that_are_not_given_are_those_of_the_original():
    """QoS 0, not retained; check_msg() connects again twice."""
    present = wire.connack(0, 1)
    first = Stream(present)
    net = Network(first, Stream(present, b""), Stream(present, b""), Stream(present))
    net.client.connect(False)
    first.answer(publish(b"t", b"x"), b"")
    net.client.publish(b"t", b"x")
    assert first.has_answered()
    assert net.client.check_msg() is None
    assert net.client.told == ["lost", "lost"] and len(net.streams) == 1


def test_publish_at_qos2_when_the_link_is_lost_behind_pubrec_then_publishes_as_new():
    """C: PUBLISH 1; B: PUBREC 1, the link is lost; C: PUBLISH 2, for all that came of 1."""
    first = Stream(wire.connack())
    second = Stream(wire.connack(0, 1))
    net = Network(first, second)
    net.client.connect(False)
    first.answer(publish(b"t", b"x", 2, 1), pubrec(1))
    first.answer(pubrel(1), b"")
    second.answer(publish(b"t", b"x", 2, 2), pubrec(2))
    second.answer(pubrel(2), pubcomp(2))
    net.client.publish(b"t", b"x", False, 2)
    assert first.has_answered() and second.has_answered()


def test_wait_msg_and_check_msg_when_the_link_is_lost_then_go_on():
    present = wire.connack(0, 1)
    net = Network(Stream(present, b""), Stream(present, publish(b"t", b"1"), b""), Stream(present))
    net.client.connect(False)
    net.client.wait_msg()
    assert net.seen == [b"1"]
    assert net.client.check_msg() is None
    assert net.client.told == ["lost", "lost"] and not net.streams


def test_message_for_which_there_is_no_memory_when_it_comes_then_raises_on_the_same_connection():
    """B: PUBLISH 5, which is acknowledged and lost: nobody may overlook it."""

    def refuse(size):
        raise MemoryError

    for name in ("wait_msg", "check_msg"):
        first = Stream(wire.connack(), publish(b"t", bytes(900), 1, 5))
        net = Network(first)
        net.client.connect(False)
        modules = modules_with("__name__")
        for module in modules:
            module.bytearray = refuse
        error = None
        try:
            while error is None:
                try:
                    getattr(net.client, name)()
                except OSError as found:
                    error = found
        finally:
            for module in modules:
                del module.bytearray
        assert error.code == TOO_LARGE and first.take() == puback(5)
        assert not net.client.told and not first.is_closed


def test_check_msg_when_attempts_are_used_up_then_returns():
    present = wire.connack(0, 1)
    net = Network(Stream(present, b""), Stream(present, b""), Stream(present, publish(b"t", b"1")))
    net.client.connect(False)
    assert net.client.check_msg(2) is None and net.seen == []
    assert net.client.check_msg() == 0x30 and net.seen == [b"1"]


def test_filters_when_the_broker_lost_its_session_then_are_sent_again():
    """Unlike the original, which hears nothing from then on."""
    first = Stream(wire.connack())
    second = Stream(wire.connack(0, 1), b"")
    third = Stream(wire.connack())
    net = Network(first, second, third)
    net.client.connect(False)
    first.answer(subscribe(1, (b"a", 1)), suback(1, 1))
    first.answer(subscribe(2, (b"b", 0)), suback(2, 0))
    first.answer(wire.unsubscribe(3, b"b"), wire.unsuback(3))
    net.client.subscribe(b"a", 1)
    net.client.subscribe(b"b")
    net.client.unsubscribe(b"b")
    first.feed(b"")
    third.answer(subscribe(4, (b"a", 1)), suback(4, 1))
    assert net.client.check_msg() is None
    assert second.take() == b"" and third.has_answered()


def test_filters_when_a_callback_subscribes_while_they_are_sent_again_then_all_are_known():
    first = Stream(wire.connack())
    second = Stream(wire.connack())
    net = Network(first, second)
    net.client.connect(False)
    first.answer(subscribe(1, (b"a", 1)), suback(1, 1))
    first.answer(subscribe(2, (b"b", 1)), suback(2, 1))
    net.client.subscribe(b"a", 1)
    net.client.subscribe(b"b", 1)
    first.feed(b"")
    again = subscribe(3, (b"a", 1), (b"b", 1))
    second.answer(again, publish(b"t", b"x") + suback(3, 1, 1))
    second.answer(subscribe(4, (b"c", 1)), suback(4, 1))
    net.client.set_callback(lambda topic, msg: net.client.subscribe(b"c", 1))
    assert net.client.check_msg() == 0x30
    assert second.has_answered()


def test_reconnect_without_a_client_id_begins_anew_and_sends_the_filters_again():
    """No broker keeps a session without one: CONNECT says clean, which it has to."""
    clean = wire.connect(b"", 2, 0, level=4)
    first = Stream(wire.connack(), request=clean)
    second = Stream(wire.connack(), request=clean)
    net = Network(first, second, make=lambda client_id, server: Program("", server))
    net.client.connect()
    first.answer(subscribe(1, (b"t", 0)), suback(1, 0))
    net.client.subscribe(b"t")
    lost(first)
    second.answer(subscribe(2, (b"t", 0)), suback(2, 0))
    net.client.publish(b"t", b"x")
    assert second.take() == publish(b"t", b"x") and net.client.told == ["lost"]


def test_reconnect_when_refused_then_raises_but_not_when_unavailable():
    """CONNACK 3 is tried again, CONNACK 5 is for a person."""
    net = Network(Stream(wire.connack(3)), Stream(wire.connack()), Stream(wire.connack(5)))
    net.client.reconnect()
    assert net.client.told == ["reconnect", 1]
    error = error_of(net.client.reconnect)
    assert isinstance(error, MQTTException) and error.args[0] == 5


def test_publish_when_the_connection_is_refused_for_good_then_raises():
    """The link is lost, and with the next connection a person has to help."""
    first = Stream(wire.connack())
    net = Network(first, Stream(wire.connack(5)))
    net.client.connect(False)
    lost(first)
    error = error_of(net.client.publish, b"t", b"x", False, 1)
    assert isinstance(error, MQTTException) and error.args[0] == 5


def test_reconnect_when_a_subclass_has_a_connect_then_it_is_called():
    calls = []

    class Own(Program):
        def connect(self, clean_session=True):
            calls.append(clean_session)
            return super().connect(clean_session)

    net = Network(Stream(wire.connack(0, 1)), make=Own)
    assert net.client.reconnect() == 1
    assert calls == [False]


def test_delay_is_that_of_the_class_in_seconds():
    slept = []

    class Time:
        sleep = slept.append

    sys.modules["umqtt31.robust"].time = Time
    MQTTClient(b"dev", "broker").delay(1)
    assert slept == [MQTTClient.DELAY] and MQTTClient.DEBUG is False
