"""Programs for umqtt.simple2, robust2 and MiniMQTT, as docs/guides/moving.md rewrites them."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.standin.packets import (
    connack,
    connect,
    puback,
    publish,
    suback,
    subscribe,
    unsuback,
    unsubscribe,
)
from umqtt31 import NETWORK, REFUSED_FILTER, TOO_LARGE, MQTTClient

LEVELS = (4,)


def test_what_others_do_without_a_word_is_an_argument():
    """simple2, mqtt_as, MiniMQTT: MQTT 3.1.1, packets of any size, a client id of their own."""
    d = Dialogue(is_connected=False)
    for options, level in (({}, 3), ({"level": 4}, 4)):
        stream = d.new_stream(True)
        stream._answers = [(connect(b"dev", 2, 60, level=level), connack())]
        MQTTClient("dev", "broker", **options).connect(stream=stream)
        assert stream.has_answered()
    large = b"x" * 300
    d = Dialogue()
    assert code_of(d.client.publish, "t", large) == TOO_LARGE
    d = Dialogue(buffer_size=400)
    d.client.publish("t", large)
    d.c2b(publish(b"t", large))
    for options in ({}, {"client_id": b"dev", "port": "1883"}):
        assert isinstance(error_of(MQTTClient, server="broker", **options), TypeError)


def test_callback_with_four_arguments_is_called_from_on_message():
    """simple2: f(topic, msg, retained, duplicate)."""
    d = Dialogue()
    seen = []

    def callback(topic, msg, retained, duplicate):
        seen.append((topic, msg, retained, duplicate))

    d.client.on_message = lambda m: callback(m.topic, m.payload, m.retain, m.dup)
    d.b2c(b"\x3b\x06\x00\x01t\x00\x07a", publish(b"t", b"b"))
    assert seen == [(b"t", b"a", True, True), (b"t", b"b", False, False)]


def test_things_to_do_are_what_is_in_flight_and_queued():
    """robust2: things_to_do(), 0 when the device may sleep."""
    d = Dialogue(max_inflight=1)
    d.client.publish(b"t", b"a", qos=1)
    d.client.publish(b"t", b"b", qos=1)
    assert d.client.inflight + d.client.queued == 2
    d.b2c(puback(1))
    assert d.client.inflight + d.client.queued == 1
    d.b2c(puback(2))
    assert d.client.inflight + d.client.queued == 0
    assert d.client.flush(0)


def test_publish_returns_its_packet_id_and_what_is_given_up_is_told_with_it():
    """simple2: set_callback_status(f), called as f(pid, status); only a loss is told here."""
    d = Dialogue(overflow="refuse")  # umqtt31.queueing
    told = []
    d.client.on_drop = lambda packet_id, reason: told.append(packet_id)
    d.lose()
    assert d.client.publish(b"t", b"a", qos=1, max_age=5) == 1
    assert d.client.publish(b"t", b"b", qos=1) == 2
    d.clock.now_ms += 6000
    assert code_of(d.client.poll) == NETWORK
    assert told == [1]


def test_lost_connection_is_raised_by_poll_and_why_is_in_last_error():
    """robust2: is_conn_issue(), conn_issue."""
    d = Dialogue()
    d.lose()
    assert not d.client.reconnect(200000)
    assert not d.client.is_connected and d.client.last_error.code == NETWORK


def test_filters_are_subscribed_again_without_being_asked():
    """robust2: RESUBSCRIBE, resubscribe(); MiniMQTT: reconnect(resub_topics=True)."""
    d = Dialogue(clean=False)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.lose()
    d.reconnect(False, is_present=False)
    d.work()
    d.c2b(subscribe(2, (b"a", 1)))


def test_will_has_the_order_topic_message_retain_qos():
    """MiniMQTT: will_set(topic, msg, retain, qos)."""
    d = Dialogue(is_connected=False)
    d.client.set_last_will("t", "gone", True, 1)
    d.stream = d.new_stream(True)
    expected = connect(b"dev", 2 | 4 | 1 << 3 | 1 << 5, 60, b"t", b"gone", level=4)
    d.stream._answers = [(expected, connack())]
    d.client.connect(stream=d.stream)
    assert d.stream.has_answered()


def test_arguments_stand_in_the_order_of_the_table():
    """MiniMQTT: MQTT(broker=, port=, username=, password=, client_id=, keep_alive=)."""
    d = Dialogue(is_connected=False)
    client = MQTTClient("dev", "broker", 1884, "name", "secret", 30, level=4)
    stream = d.new_stream(True)
    expected = connect(b"dev", 2 | 0xC0, 30, b"name", b"secret", level=4)
    stream._answers = [(expected, connack())]
    client.connect(stream=stream)
    assert stream.has_answered()


def test_numbers_are_published_as_text():
    """MiniMQTT: publish(topic, 21.5)."""
    d = Dialogue()
    assert isinstance(error_of(d.client.publish, "t", 21.5), TypeError)
    d.client.publish("t", str(21.5))
    d.c2b(publish(b"t", b"21.5"))


def test_handler_asks_for_the_filter_that_a_message_matches():
    """MiniMQTT: add_topic_callback(filter, f), on_message(client, topic, message) with text."""
    d = Dialogue()
    seen = []

    def handler(message):
        if message.matches(b"lamp/+"):
            seen.append(str(message.payload, "utf-8"))

    d.client.on_message = handler
    d.b2c(publish(b"lamp/1", b"on"), publish(b"door", b"open"))
    assert seen == ["on"]


def test_several_filters_at_once_and_what_the_broker_granted():
    """MiniMQTT: subscribe([(topic, qos), …]), on_subscribe; unsubscribe()."""
    d = Dialogue()
    asked = subscribe(1, (b"a", 0), (b"b", 1))
    granted = d.subscribe(asked, suback(1, 0, 1), [("a", 0), ("b", 1)])
    assert granted == [0, 1]
    assert isinstance(error_of(d.client.subscribe, ("a", 0)), TypeError)
    d.stream.answer(subscribe(2, (b"c", 0)), suback(2, 0x80))
    assert code_of(d.client.subscribe, "c") == REFUSED_FILTER
    d.stream.answer(unsubscribe(3, b"a"), unsuback(3))
    d.client.unsubscribe("a")
    assert d.stream.has_answered()


def test_poll_waits_as_long_as_it_is_told_to():
    """MiniMQTT: loop(timeout), in seconds."""
    d = Dialogue()
    start = d.clock.now_ms
    assert d.client.poll(1500) == 0
    assert 1500 <= d.clock.now_ms - start <= 1510
