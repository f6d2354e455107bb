"""Programs for umqtt.simple and others, what scripts cannot say: docs/guides/moving.md."""

import sys

from host_tests.client import wire
from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.player import Robust
from host_tests.client.wire import puback, publish, suback, subscribe, unsuback, unsubscribe
from host_tests.standin.stream import ScriptedStream
from umqtt31 import MQTTClient as Core
from umqtt31 import robust
from umqtt31.simple import MQTTClient, MQTTException

LEVELS = (4,)


def test_sock_is_the_stream_of_the_connection():
    """None before the first one; the same until the next one, and always to be closed."""
    d = Dialogue(is_connected=False, front=MQTTClient)
    client = d.client
    assert client.sock is None
    d.connect()
    sock = client.sock
    d.stream.feed(publish(b"t", b"x"))
    assert sock.readinto(bytearray(2)) == 2
    client.disconnect()
    assert client.sock is sock
    d.connect()
    assert client.sock is not sock
    sock.close()
    assert not d.stream.is_closed
    client.sock.close()
    client.sock.close()
    assert d.stream.is_closed and d.stream.take() == b""
    assert error_of(client.check_msg).args[0] == -1
    d.connect()
    d.stream.feed(b"")
    error_of(client.check_msg)
    client.sock.close()  # asked for when it is lost


def test_exception_raised_by_a_program_takes_what_it_gives():
    """Own copies of umqtt.robust give up with MQTTException(e)."""
    for given in (OSError(104), "too many attempts", 5):
        error = MQTTException(given)
        assert error.args[0] == given and isinstance(error, OSError)
    assert MQTTException(5).code == 5
    assert MQTTException().args


def test_subclass_may_have_names_of_its_own():
    """What umqtt.simple has no name for is the program's: poll(), flush(), _publish() …"""

    class Node(MQTTClient):
        def poll(self):
            return self.check_msg()

        def flush(self):
            raise RuntimeError

        def _publish(self, key, value):
            self.publish("s/" + key, str(value), qos=1)

        is_connected = next_due_ms = stats = inflight = queued = flush

    d = Dialogue(True, front=Node)
    d.stream.answer(subscribe(1, (b"n/#", 0)), suback(1, 0))
    d.client.subscribe(b"n/#")
    d.stream.answer(publish(b"s/t", b"21", 1, 2), puback(2))
    d.client._publish("t", 21)
    d.stream.feed(publish(b"n/1", b"x"))
    d.client.poll()
    d.stream.answer(unsubscribe(3, b"n/#"), unsuback(3))
    d.client.unsubscribe(b"n/#")
    assert [message[:2] for message in d.messages] == [(b"n/1", b"x")] and d.stream.has_answered()
    d.client.disconnect()


def test_what_others_do_without_a_word_is_an_argument():
    """simple2, mqtt_as, MiniMQTT: MQTT 3.1.1, a client id of their own."""
    for options, level in (({}, 3), ({"level": 4}, 4)):
        assert_connects(Core("dev", "broker", **options), 2, 60, level=level)
    for options in ({}, {"client_id": b"dev", "port": "1883"}):
        assert isinstance(error_of(Core, server="broker", **options), TypeError)


def assert_connects(client, flags, *fields, level=4):
    stream = ScriptedStream()
    stream.answer(wire.connect(b"dev", flags, *fields, level=level), wire.connack())
    client.connect(stream=stream)
    assert stream.has_answered()


def test_arguments_stand_in_the_order_of_the_table():
    """MiniMQTT: MQTT(broker=, port=, username=, password=, client_id=, keep_alive=)."""
    client = Core("dev", "broker", 1884, "name", "secret", 30, level=4)
    assert_connects(client, 2 | 0xC0, 30, b"name", b"secret")


def test_arguments_of_robust_that_are_not_given_are_those_of_the_original():
    """QoS 0, not retained."""
    d = Dialogue(True, front=Robust)
    d.client.publish(b"t", b"x")
    d.c2b(publish(b"t", b"x"))


def test_reconnect_when_a_subclass_has_a_connect_then_it_is_called():
    calls = []

    class Own(Robust):
        def connect(self, clean_session=True):
            calls.append(clean_session)
            return super().connect(clean_session)

    d = Dialogue(is_connected=False, front=Own)
    d.new_stream(False, True)
    assert d.client.reconnect() == 1
    assert calls == [False]


def test_delay_is_that_of_the_class_in_seconds():
    slept = []

    class Time:
        sleep = slept.append

    sys.modules["umqtt31.robust"].time = Time
    robust.MQTTClient(b"dev", "broker").delay(1)
    assert slept == [robust.MQTTClient.DELAY] and robust.MQTTClient.DEBUG is False
