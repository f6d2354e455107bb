"""Message, as a handler sees it in place.  MQTT 3.1 §3.3."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import publish


def handled(handler, topic=b"home/room 1/temp", payload=b"21.5 C", **fields):
    """Receive one message -> what `handler` returned."""
    d = Dialogue()
    results = []
    d.client.on_message = lambda message: results.append(handler(message))
    d.b2c(publish(topic, payload, **fields))
    return results[0]


def test_message_fields_are_those_of_the_packet():
    def handler(m):
        return (m.topic_len, m.payload_len, m.qos, m.retain, m.dup, m.packet_id)

    assert handled(handler) == (16, 6, 0, False, False, 0)
    fields = {"qos": 2, "packet_id": 0x1234, "dup": 1, "retain": 1}
    assert handled(handler, **fields) == (16, 6, 2, True, True, 0x1234)
    assert handled(handler, payload=b"", qos=1, packet_id=1)[1] == 0


def test_message_topic_is_compares_the_whole_topic():
    for name in (b"home/room 1/temp", bytearray(b"home/room 1/temp")):
        assert handled(lambda m, name=name: m.topic_is(name)) is True
    for name in (b"", b"home/room 1/tem", b"home/room 1/temp2", b"Home/room 1/temp", b"x" * 16):
        assert handled(lambda m, name=name: m.topic_is(name)) is False


def test_text_is_taken_as_bytes_are():
    for call in (
        lambda m: m.topic_is("home/room 1/temp"),
        lambda m: m.matches("home/#"),
        lambda m: m.matches("#"),
        lambda m: m.matches("+/room 1/temp"),
    ):
        assert handled(call) is True
    assert handled(lambda m: m.topic_is("home/room 2/temp")) is False
    for bad in (None, 5):
        assert isinstance(error_of(handled, lambda m, bad=bad: m.topic_is(bad)), TypeError)


def test_message_matches_filters_in_place():
    """31-A-HASH, 31-A-PLUS."""
    for pattern in (b"#", b"home/#", b"home/+/temp", b"+/+/+", b"home/room 1/temp/#"):
        assert handled(lambda m, p=pattern: m.matches(p)) is True
    for pattern in (b"+", b"home/+", b"home/room 1/temp/+", b"home/room 1/temp2", b"home/+/tem"):
        assert handled(lambda m, p=pattern: m.matches(p)) is False


def test_message_is_copied_whole_or_as_far_as_it_fits():
    """At every QoS, so at every place in the buffer."""
    for fields in ({}, {"qos": 1, "packet_id": 5}, {"qos": 2, "packet_id": 5}):
        for size in (0, 1, 5, 6, 7, 16, 40):
            target = bytearray(b"." * size)
            n = handled(lambda m, target=target: m.payload_into(target), **fields)
            assert n == min(size, 6)
            assert bytes(target) == (b"21.5 C" + b"." * 40)[:size]
            target = bytearray(b"." * size)
            n = handled(lambda m, target=target: m.topic_into(target), **fields)
            assert n == min(size, 16)
            assert bytes(target[:n]) == b"home/room 1/temp"[:n]
            assert bytes(target[n:]) == b"." * (size - n)


def test_message_of_the_whole_buffer_is_copied():
    payload = bytes(range(250))
    target = bytearray(250)
    assert handled(lambda m: m.payload_into(target), topic=b"t", payload=payload) == 250
    assert target == bytearray(payload)


def test_message_index_reads_the_payload():
    assert handled(lambda m: bytes(m[i] for i in range(m.payload_len))) == b"21.5 C"
    for index in (6, 100, 1000):
        error = handled(lambda m, i=index: error_of(lambda: m[i]))
        assert isinstance(error, IndexError)
    assert isinstance(handled(lambda m: error_of(lambda: m[0]), payload=b""), IndexError)


def test_message_topic_and_payload_are_new_bytes():
    kept = handled(lambda m: (m.topic, m.payload))
    assert kept == (b"home/room 1/temp", b"21.5 C")
    assert type(kept[0]) is bytes and type(kept[1]) is bytes


def test_message_object_serves_all_messages():
    d = Dialogue()
    seen = []
    d.client.on_message = lambda message: seen.append(id(message))
    d.b2c(publish(b"a", b"1"), publish(b"b", b"2", 1, 5), publish(b"c", b"3", 2, 6))
    assert len(seen) == 3 and len(set(seen)) == 1


def test_message_has_no_other_attribute():
    error = handled(lambda message: error_of(getattr, message, "nosuch"))
    assert isinstance(error, AttributeError)
