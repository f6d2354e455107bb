"""What the scripts of level 5 cannot say: loops, many properties, bytes written out."""

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of, error_of, refuses
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    asked,
    connack,
    connect,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    refused,
)
from host_tests.standin.stream import ScriptedStream
from umqtt31 import TOO_LARGE
from umqtt31.properties import encode
from umqtt31.v5 import MQTTClient

LEVELS = (5,)
NAMES = (
    "topic", "payload", "payload_format_indicator", "message_expiry_interval", "content_type",
    "response_topic", "correlation_data", "user_property", "subscription_identifier",
)  # fmt: skip


def test_c2b_connect_with_everything_keeps_the_payload_order():
    """MQTT-3.1.3-1, MQTT-3.1.2-9, MQTT-3.1.2-17, MQTT-3.1.2-19."""
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", b"\x00\xff", retain=True, qos=1)
    d.client.v5.will_properties = encode(will_delay_interval=5, content_type="c")
    d.client.v5.properties = encode(request_problem_information=0, user_property=(("k", "v"),))
    said = asked(False)[1:] + b"\x17\x00\x26\x00\x01k\x00\x01v"
    request = connect(
        b"dev", 0xEC, 60, b"w/t", b"\x00\xff", "zoë".encode(), b"s",
        level=5,
        properties=bytes((len(said),)) + said,
        will_properties=properties(will_delay=5, content_type=b"c"),
    )  # fmt: skip
    d.stream = ScriptedStream()
    d.stream.answer(request, connack())
    assert d.client.connect(False, stream=d.stream) is False and d.stream.has_answered()


def test_class_of_another_level_names_the_one_to_take():
    refuses(ValueError, "umqtt31.v5", umqtt31.MQTTClient, b"d", "h", level=5)
    refuses(ValueError, "MQTTClient from umqtt31", MQTTClient, b"d", "h", level=4)


def test_b2c_many_messages_that_are_refused_are_answered_in_their_order():
    """MQTT-4.6.0-2, MQTT-4.6.0-3: whole, however few bytes the stream takes at a time."""
    for write_most in (0, 1, 7):
        for before in range(33):
            d = Dialogue()
            d.stream.write_most = write_most
            d.client.on_message = lambda m: m.payload == b"bad" and m.refuse(0x99)
            good = [publish(b"t", b"good", 1, k + 1) for k in range(before)]
            bad = [publish(b"t", b"bad", 1 + k % 2, 100 + k) for k in range(12)]
            d.stream.feed(*good, *bad, publish(b"t", b"good", 1, 99))
            for _ in range(400):
                d.client.poll()
            d.c2b(
                *[puback(k + 1) for k in range(before)],
                *[refused((puback, pubrec)[k % 2], 100 + k, 0x99) for k in range(12)],
                puback(99),
            )


def aliased():
    d = Dialogue(is_connected=False)
    d.client.v5.topic_aliases = 2
    d.connect(False, False, properties(topic_alias_maximum=10))
    return d


def test_c2b_topic_that_may_change_gets_no_alias():
    d = aliased()
    topic = bytearray(b"long/a")
    for _ in range(2):
        d.client.publish(topic, b"x", False, 0)
    assert [one for one in d.take_packets() if one[0] >> 4 == 3] == [publish(b"long/a", b"x")] * 2


def test_first_messages_make_no_attribute():
    """With the heap locked there may be no room for one."""
    d = aliased()
    names = set(d.client.__dict__)
    for _ in range(2):
        d.client.publish(b"long/a", b"x", qos=1, properties=None)
    assert set(d.client.__dict__) == names


def test_b2c_receive_maximum_of_the_client_is_what_surely_finds_its_place():
    """MQTT-4.9.0-1: with ids as far apart as can be, in RAM and on flash."""
    for store, most in ((None, 15), (FailingFlash().journal(), 7)):
        d = Dialogue(store=store)
        ids = [1 + 4000 * k for k in range(most)]
        d.b2c(*[publish(b"t", b"x", 2, k) for k in ids])
        d.c2b(*[pubrec(k) for k in ids])
        assert len(d.messages) == most and d.client.stats.refused == 0
        d.b2c(*[pubrel(k) for k in reversed(ids)])
        d.c2b(*[pubcomp(k) for k in reversed(ids)])


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
