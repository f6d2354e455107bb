"""The kit's packets against bytes from the standards, and against each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_tests.standin import packets as p

# Written out by hand from the figures of MQTT 3.1, 3.1.1 and 5.
WRITTEN = [
    (p.connect(), b"\x10\x11\0\6MQIsdp\3\2\0\x3c\0\3dev"),
    (p.connect(b"d", 0, 10, level=4), b"\x10\x0d\0\4MQTT\4\0\0\x0a\0\1d"),
    (p.connect(b"d", 2, 10, level=5), b"\x10\x0e\0\4MQTT\5\2\0\x0a\0\0\1d"),
    (
        p.connect(
            b"d", 0xC6, 10, b"w", b"m", b"u", b"s", level=5,
            properties=p.properties(session_expiry=1, receive_maximum=2),
            will_properties=p.properties(will_delay=3),
        ),
        b"\x10\x28\0\4MQTT\5\xc6\0\x0a\x08\x11\0\0\0\1\x21\0\2\0\1d"
        b"\5\x18\0\0\0\3\0\1w\0\1m\0\1u\0\1s",
    ),
    (p.connack(5), b"\x20\2\0\5"),
    (p.connack(0, 1, p.properties(server_keep_alive=300)), b"\x20\6\1\0\3\x13\1\x2c"),
    (p.publish(b"a/b", b"hi"), b"\x30\7\0\3a/bhi"),
    (p.publish(b"t", b"hi", 2, 258, 1, 1), b"\x3d\7\0\1t\1\2hi"),
    (p.publish(b"t", b"", 1, 1, properties=p.NO_PROPERTIES), b"\x32\6\0\1t\0\1\0"),
    (p.publish(b"t", bytes(125))[:5], b"\x30\x80\x01\0\1"),
    (p.puback(1), b"\x40\2\0\1"),
    (p.pubrec(1, 0x97), b"\x50\3\0\1\x97"),
    (p.pubrel(1, 1), b"\x6a\2\0\1"),
    (p.pubcomp(1, 0x92, p.properties(reason_string=b"?")), b"\x70\x08\0\1\x92\4\x1f\0\1?"),
    (p.subscribe(1, (b"a", 2), dup=1), b"\x8a\6\0\1\0\1a\2"),
    (p.suback(1, 2, 0x80), b"\x90\4\0\1\2\x80"),
    (p.unsubscribe(1, b"a", properties=p.NO_PROPERTIES), b"\xa2\6\0\1\0\0\1a"),
    (p.unsuback(1, 0x11, properties=p.NO_PROPERTIES), b"\xb0\4\0\1\0\x11"),
    (p.pingreq() + p.pingresp() + p.disconnect(), b"\xc0\0\xd0\0\xe0\0"),
    (p.disconnect(0x8E), b"\xe0\1\x8e"),
    (p.auth(0x18, p.properties(authentication_method=b"m")), b"\xf0\6\x18\4\x15\0\1m"),
]  # fmt: skip


@pytest.mark.parametrize(("packet", "expected"), WRITTEN, ids=lambda one: one[:8].hex())
def test_packets_are_those_of_the_standards(packet, expected):
    assert packet == expected


numbers = st.integers(0, 65535)
texts = st.binary(max_size=200)
sections = st.fixed_dictionaries(
    {},
    optional={
        "message_expiry": st.integers(0, 2**32 - 1),
        "payload_format": st.integers(0, 1),
        "response_topic": texts,
        "topic_alias": numbers,
        "subscription_id": st.lists(st.integers(0, 2**28 - 1), min_size=1, max_size=3),
        "user_property": st.lists(st.tuples(texts, texts), min_size=1, max_size=3),
    },
)


@given(texts, st.binary(max_size=20000), st.integers(0, 2), numbers, sections)
def test_publish_of_level_5_reads_back_as_it_was_written(topic, payload, qos, number, values):
    packet = p.publish(topic, payload, qos, number, properties=p.properties(**values))
    assert p.properties_of(packet) == values
    expected = (qos, number if qos else 0, topic, payload)
    assert p.publish_fields(packet, 5) == expected
    assert p.publish_fields(p.publish(topic, payload, qos, number)) == expected


whole = st.one_of(
    st.builds(p.publish, texts, texts, st.integers(0, 2), numbers),
    st.builds(p.pubrec, numbers, st.integers(0, 255)),
    st.builds(lambda packet_id, names: p.unsubscribe(packet_id, *names), numbers, st.lists(texts)),
    st.just(p.pingreq()),
)


@given(st.lists(whole, max_size=8), st.data())
def test_packets_are_taken_from_a_stream_cut_anywhere(packets, data):
    stream = b"".join(packets)
    assert p.split(stream) == packets
    cut = data.draw(st.integers(0, len(stream)))
    buffer, found = bytearray(), []
    for piece in (stream[:cut], stream[cut:]):
        buffer += piece
        while packet := p.take(buffer):
            found.append(packet)
    assert found == packets and not buffer


def test_connect_tells_all_its_fields():
    packet = p.connect(
        b"node", 0xCE, 30, b"w", b"off", b"user", b"key", level=5,
        properties=p.properties(session_expiry=60),
        will_properties=p.properties(will_delay=5, content_type=b"x"),
    )  # fmt: skip
    hello = p.Connect(packet)
    assert (hello.level, hello.is_clean) == (5, True)
    assert (hello.keepalive, hello.client_id) == (30, b"node")
    assert (hello.will_topic, hello.will_message) == (b"w", b"off")
    assert (hello.user, hello.password) == (b"user", b"key")
    assert hello.properties == {"session_expiry": 60}
    assert hello.will_properties == {"will_delay": 5, "content_type": b"x"}
    plain = p.Connect(p.connect(level=3))
    assert (plain.will_topic, plain.user, plain.properties) == (None, None, {})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x05\x02\0\0\0", "longer than"),
        (b"\x03\x00\0\0", "unknown"),
        (b"\x04\x01\0\x01\0", "twice"),
        (b"\x03\x03\0\x05", "longer than"),
    ],
)
def test_properties_that_break_the_standard_are_refused(data, why):
    with pytest.raises(ValueError, match=why):
        p.read_properties(data)


def test_a_length_of_five_bytes_is_refused():
    with pytest.raises(ValueError, match="four bytes"):
        p.take(bytearray(b"\x30\xff\xff\xff\xff\x01"))


def test_short_forms_have_no_properties_and_reason_0():
    for packet in (p.puback(7), p.pubrel(7), p.disconnect()):
        assert (p.reason_of(packet), p.properties_of(packet)) == (0, {})
    assert p.reason_of(p.pubrec(7, 0x97)) == 0x97
    assert p.properties_of(p.pubrec(7, 0x97)) == {}
    assert p.reason_of(p.connack(0x84)) == 0x84
