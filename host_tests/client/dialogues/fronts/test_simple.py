"""umqtt31.simple: the names, order and semantics of umqtt.simple, with deadlines."""

from host_tests.client.dialogue import error_of, turn, with_ids_from_1
from host_tests.client.wire import (
    connack,
    connect,
    disconnect,
    pingreq,
    pingresp,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
)
from host_tests.standin.clock import Clock
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, TIMEOUT
from umqtt31.simple import MQTTClient, MQTTException

LEVELS = (4,)  # as umqtt.simple


def asked(keepalive=0):
    """CONNECT of a client that takes messages of any size."""
    return connect(b"dev", 2, keepalive, level=4)


def new_client(*args, **options):
    """-> (client, stream), connected with keep alive off, as umqtt.simple has it."""
    clock = Clock()
    turn(clock)
    client = with_ids_from_1(MQTTClient, b"dev", "broker", *args, **options)
    stream = ScriptedStream()
    stream.answer(asked(), connack())
    assert client.connect(stream=stream) == 0
    assert stream.has_answered()
    return client, stream


def connected_with(client, keepalive):
    """-> the stream of a new connection with that keep alive."""
    client.keepalive = keepalive
    stream = ScriptedStream()
    stream.answer(asked(keepalive), connack())
    client.connect(stream=stream)
    return stream


def test_c2b_keepalive_is_off_unless_asked_for():
    """C: CONNECT with keep alive 0."""
    new_client()


def test_c2b_keepalive_set_before_connect_is_kept_from_then_on():
    """C: CONNECT with keep alive 20; 15 s of silence; C: PINGREQ."""
    client, _ = new_client()
    clock = Clock()
    turn(clock)
    stream = connected_with(client, 20)
    clock.now_ms += 15_000
    stream.answer(pingreq(), pingresp())
    client.check_msg()
    assert stream.has_answered()


def test_c2b_publish_qos1_returns_when_acknowledged():
    """C: PUBLISH 1; B: PUBACK 1; only then publish() returns."""
    client, stream = new_client()
    stream.answer(publish(b"t", b"x", 1, 1), puback(1))
    assert client.publish(b"t", b"x", False, 1) is None
    assert stream.has_answered() and client.inflight == 0


def test_c2b_publish_qos2_returns_when_complete():
    """C: PUBLISH 1, B: PUBREC 1, C: PUBREL 1, B: PUBCOMP 1."""
    client, stream = new_client()
    stream.answer(publish(b"t", b"x", 2, 1), pubrec(1))
    stream.answer(pubrel(1), pubcomp(1))
    client.publish(b"t", b"x", qos=2)
    assert stream.has_answered() and client.inflight == 0


def test_c2b_publish_without_answer_raises_in_time():
    """C: PUBLISH 1; B: nothing.  The original waits for ever."""
    client, stream = new_client(connect_timeout=3, retry_interval=0)
    error = error_of(client.publish, b"t", b"x", qos=1)
    assert isinstance(error, OSError) and not isinstance(error, MQTTException)
    assert error.code == TIMEOUT and stream.is_closed


def test_c2b_publish_while_offline_raises():
    client, _ = new_client()
    client.disconnect()
    for qos in (0, 1):
        assert error_of(client.publish, b"t", b"x", qos=qos).code == CLOSED


def test_c2b_callback_check_msg_ping_and_disconnect_are_those_of_umqtt_simple():
    """C: SUBSCRIBE, B: SUBACK, PUBLISH; C: PINGREQ, B: PINGRESP; C: DISCONNECT."""
    client, stream = new_client()
    seen = []
    client.set_callback(lambda topic, msg: seen.append((topic, msg)))
    stream.answer(subscribe(1, (b"a/#", 1)), suback(1, 1))
    client.subscribe(b"a/#", 1)
    stream.feed(publish(b"a/b", b"x", 1, 9))
    client.check_msg()
    assert seen == [(b"a/b", b"x")]
    client.ping()
    stream.feed(pingresp())
    client.wait_msg()
    client.disconnect()
    assert stream.take() == puback(9) + pingreq() + disconnect()


def test_connect_timeout_can_be_given_to_connect():
    """C: CONNECT; B: nothing.  umqtt.simple's `timeout`, in seconds."""
    clock = Clock()
    turn(clock)
    client = MQTTClient(b"dev", "broker")
    error = error_of(client.connect, timeout=2, stream=ScriptedStream())
    assert error.code == TIMEOUT and 2000 <= clock.now_ms <= 2010


def test_wait_msg_waits_until_something_comes():
    """B: nothing for longer than connect_timeout, then PUBLISH; then the stream's end."""
    client, stream = new_client(connect_timeout=1)
    stream.feed(*[None] * 2500)
    stream.feed(publish(b"t", b"x"))
    seen = []
    client.set_callback(lambda topic, msg: seen.append(msg))
    client.wait_msg()
    assert seen == [b"x"]
    stream.feed(b"")
    assert error_of(client.wait_msg).code == CLOSED


def test_check_msg_and_wait_msg_after_disconnect_say_that_it_is_closed():
    client, _stream = new_client()
    client.disconnect()
    for call in (client.check_msg, client.wait_msg):
        assert error_of(call).code == CLOSED


def test_b2c_message_without_a_callback_is_acknowledged():
    client, stream = new_client()
    stream.take()
    stream.feed(publish(b"t", b"x", 1, 7))
    client.check_msg()
    assert stream.take() == puback(7)


def test_poll_counts_packets_and_check_msg_names_those_that_are_messages():
    client, stream = new_client()
    for kind, packet in ((0x31, publish(b"t", b"x", retain=True)), (None, pingresp())):
        stream.feed(packet)
        assert client.poll() == 1
        assert client.poll() == 0
        stream.feed(packet)
        assert client.check_msg() == kind
        assert client.check_msg() is None
        stream.feed(packet)
        assert client.wait_msg() == kind


def test_c2b_subscribe_without_answer_raises_in_time():
    client, _ = new_client(connect_timeout=3)
    client.set_callback(lambda topic, msg: None)
    error = error_of(client.subscribe, b"t")
    assert error.code == TIMEOUT and not isinstance(error, MQTTException)


def test_c2b_ping_without_answer_ends_the_waiting():
    client, _ = new_client()
    stream = connected_with(client, 10)
    assert error_of(client.wait_msg).code == TIMEOUT
    assert pingreq() in stream.take()


def test_callback_that_subscribes_and_another_that_disconnects_leave_nothing_to_write():
    """C: SUBSCRIBE a; B: PUBLISH 1, whose callback subscribes, PUBLISH 2, whose disconnects."""
    client, stream = new_client()
    told = []

    def callback(topic, payload):
        if payload == b"2":
            client.disconnect()
        else:
            told.append(error_of(client.subscribe, b"b").code)

    client.set_callback(callback)
    stream.feed(publish(b"t", b"1"), publish(b"t", b"2"))
    told.append(error_of(client.subscribe, b"a").code)
    assert told == [CLOSED, CLOSED] and stream.is_closed
