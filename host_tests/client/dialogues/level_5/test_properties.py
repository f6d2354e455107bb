"""Properties of messages, both ways.  MQTT 5 §2.2.2, §3.3.2.3."""

from host_tests.client.dialogue import Dialogue, code_of, error_of, refuses
from host_tests.client.wire import properties, puback, publish, pubrec
from umqtt31 import TOO_LARGE
from umqtt31.properties import encode

LEVELS = (5,)
NAMES = (
    "topic", "payload", "payload_format_indicator", "message_expiry_interval", "content_type",
    "response_topic", "correlation_data", "user_property", "subscription_identifier",
)  # fmt: skip


def test_b2c_message_shows_its_properties():
    """MQTT-3.3.2-13, MQTT-3.3.2-19."""
    d = Dialogue()
    seen = []

    def look(message):
        buf = bytearray(4)
        found = [getattr(message, name) for name in NAMES]
        seen.append(tuple(found + [message.property_into(9, buf), bytes(buf)]))

    d.client.on_message = look
    said = properties(
        payload_format=1,
        message_expiry=70000,
        content_type=b"a/b",
        response_topic=b"r",
        correlation_data=b"\x00\x01\x02",
        user_property=[(b"k", b"v"), (b"k", b"w")],
        subscription_id=[1, 200],
    )
    d.b2c(publish(b"t", b"one", 1, 5, properties=said), publish(b"t", b"two"))
    pairs = [(b"k", b"v"), (b"k", b"w")]
    assert seen == [
        (b"t", b"one", 1, 70000, b"a/b", b"r", b"\x00\x01\x02", pairs, [1, 200], 3, b"\0\1\2\0"),
        (b"t", b"two", None, None, None, None, None, [], [], -1, bytes(4)),
    ]
    d.c2b(puback(5))


def test_b2c_message_with_many_properties_is_read_in_any_pieces():
    said = properties(user_property=[(b"key%d" % k, b"value") for k in range(20)])
    assert len(said) > 130
    for read_most in (0, 1, 7, 64):
        d = Dialogue(buffer_size=512)
        d.stream.read_most = read_most
        d.stream.feed(publish(b"t", b"x" * 100, 2, 7, properties=said), publish(b"t", b"y"))
        for _ in range(600):
            d.client.poll()
        assert [message[1] for message in d.messages] == [b"x" * 100, b"y"]
        d.c2b(pubrec(7))


def test_c2b_message_takes_its_properties_along():
    """MQTT-2.2.2-1, MQTT-3.3.4-6."""
    given = encode(
        content_type="a/b",
        response_topic="r/é",
        correlation_data=b"\x00\x01",
        user_property=(("k", "v"), ("k", "w")),
        payload_format_indicator=1,
    )
    said = properties(
        content_type=b"a/b",
        response_topic="r/é".encode(),
        correlation_data=b"\x00\x01",
        user_property=[(b"k", b"v"), (b"k", b"w")],
        payload_format=1,
    )
    for qos in (0, 1, 2):
        d = Dialogue()
        d.publish(b"x", qos, properties=given)
        d.publish(b"y", qos)
        d.publish(b"z", qos, properties=given)
        for dup in (0, 1) if qos else (0,):
            d.c2b(
                publish(b"t", b"x", qos, 1, dup, properties=said),
                publish(b"t", b"y", qos, 2, dup),
                publish(b"t", b"z", qos, 3, dup, properties=said),
            )
            if qos and not dup:
                d.lose()
                d.connect(False)


def test_c2b_properties_of_any_length_up_to_the_buffer():
    for n in (100, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 200, 240):
        d = Dialogue(buffer_size=256)
        data = encode(correlation_data=b"c" * n)
        said = properties(correlation_data=b"c" * n)
        for qos in (0, 1):
            expected = publish(b"t", b"x", qos, 1, properties=said)
            if len(expected) > 256:
                assert code_of(d.publish, b"x", qos, properties=data) == TOO_LARGE
                d.c2b()
            else:
                d.publish(b"x", qos, properties=data)
                d.c2b(expected)


def test_c2b_properties_that_a_message_cannot_have_are_refused():
    """MQTT-3.3.4-6: nor does a program name a topic alias, or an age beside max_age."""
    d = Dialogue(is_queueing=True)
    for name in ("subscription_identifier", "message_expiry_interval", "will_delay_interval"):
        assert isinstance(error_of(d.publish, properties=encode(**{name: 1})), ValueError), name
    for bad in (b"\x23\x00\x01", b"\x03\x00", b"\xff"):
        assert isinstance(error_of(d.publish, properties=bad), ValueError), bad
    assert isinstance(
        error_of(d.publish, properties={"content_type": "x"}), (TypeError, ValueError)
    )
    for bad in (1 << 40, 1, 1.5, ["x"]):
        for call in (d.publish, lambda **more: d.client.subscribe(b"a", 1, **more)):
            refuses(TypeError, "properties", call, properties=bad)
    d.c2b()
    assert d.client.inflight == 0
