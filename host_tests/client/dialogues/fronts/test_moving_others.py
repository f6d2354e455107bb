"""Programs for umqtt.simple2, robust2 and MiniMQTT, as docs/guides/moving.md rewrites them."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.standin.packets import connack, connect, publish
from umqtt31 import TOO_LARGE, MQTTClient

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
