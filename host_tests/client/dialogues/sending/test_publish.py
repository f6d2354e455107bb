"""Publishing at QoS 0 and 1 on the wire.  MQTT 3.1 §3.3, §3.4, §4.1."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, publish, pubrec
from host_tests.standin.store import KeepingStore
from umqtt31 import TOO_LARGE


def test_c2b_lengths_where_a_second_byte_of_the_length_begins_are_written_right():
    """31-2.1-LEN: 127 bytes behind the header take one byte, 128 take two."""
    for qos in range(3):
        for length in range(110, 130):
            d = Dialogue(buffer_size=256)
            d.publish(b"x" * length, qos)
            d.c2b(publish(b"t", b"x" * length, qos, 1 if qos else 0))


# 311-2.3.1-1, MQTT-2.2.1-3.
def test_c2b_ids_wrap_past_0_and_past_what_is_in_flight():
    """31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: after 65535 comes 1, or the next free one.

    C: PUBLISH 65534, 65535, then with 65535 still in flight 1, 2, …
    """
    store = KeepingStore()
    store.last_id = 65533
    d = Dialogue(store=store, max_inflight=8)
    assert [d.publish(qos=qos) for qos in (1, 2, 1, 2)] == [65534, 65535, 1, 2]
    d.b2c(puback(65534))
    d.lose()
    # The next life goes on behind 65533 and has to leave out what still is unanswered.
    again = Dialogue(store=store, max_inflight=8, clean=False)
    assert [again.publish() for _ in range(3)] == [65534, 3, 4]


# 311-1.5.3-1, 311-3.3.2-2, 311-4.7.3-1, MQTT-3.3.2-2, MQTT-4.7.3-1.
def test_c2b_publish_of_bad_topics_is_refused_and_nothing_sent():
    """31-3.3-WILD, 31-2.2-TOPIC, 31-A-TOPIC."""
    d = Dialogue(buffer_size=33000, max_inflight=1, max_mqueue_len=0)
    for topic in (b"", "", b"a/#", b"#", b"+", b"a/+/b", b"a+", b"a\x00b", b"\xff", b"\xc3", "+"):
        assert isinstance(error_of(d.publish, topic=topic), ValueError), topic
    assert isinstance(error_of(d.publish, topic="x" * 32768), ValueError)
    d.c2b()
    assert d.client.inflight == 0
    d.publish(topic="x" * 32767, qos=0)
    d.c2b(publish(b"x" * 32767, b"x"))
    for topic in ("A b/ /c", "/", "ünï/cödé", "$x"):
        d.publish(topic=topic, qos=0)
        d.c2b(publish(topic.encode(), b"x"))


def test_c2b_qos_3_is_refused_when_asked_for():
    """31-2.1-QOS3: before anything is sent or stored."""
    d = Dialogue()
    for qos in (3, -1):
        assert isinstance(error_of(d.publish, qos=qos), ValueError)
    assert isinstance(error_of(d.client.subscribe, b"t", 3), ValueError)
    assert isinstance(error_of(d.client.subscribe, [(b"t", 0), (b"u", 3)]), ValueError)
    d.c2b()
    assert d.client.inflight == d.client.queued == 0


def test_c2b_every_kind_of_bytes_and_str_is_taken():
    """31-2.5-UTF8: a str goes out as UTF-8, its length counted in bytes."""
    d = Dialogue()
    for topic in (b"t\xc3\xa9", bytearray(b"t\xc3\xa9"), memoryview(b"t\xc3\xa9"), "té"):
        for payload in (b"\xc2\xb0C", bytearray(b"\xc2\xb0C"), memoryview(b"\xc2\xb0C"), "°C"):
            d.client.publish(topic, payload)
            d.c2b(publish(b"t\xc3\xa9", b"\xc2\xb0C"))


def test_c2b_wrong_types_are_refused_and_nothing_changes():
    """Wrong arguments end in TypeError or ValueError before anything is sent."""
    d = Dialogue()
    for topic, payload in ((None, b"x"), (5, b"x"), (b"t", None), (b"t", 5), (b"t", 1.5)):
        for qos in (0, 1):
            error = error_of(d.client.publish, topic, payload, False, qos)
            assert isinstance(error, (TypeError, ValueError)), (topic, payload)
    d.c2b()
    assert d.client.inflight == d.client.queued == 0
    assert d.publish() == 1


def test_c2b_publish_up_to_the_buffer_and_not_a_byte_more():
    """Too large is said before anything is sent or stored.

    C: PUBLISH of exactly buffer_size bytes
    """
    d = Dialogue(buffer_size=64)
    most = 64 - 2 - 3 - 2 - (d.level == 5)
    assert code_of(d.publish, b"x" * (most + 1)) == TOO_LARGE
    assert code_of(d.publish, b"x" * (most + 3), 0) == TOO_LARGE
    d.c2b()
    assert d.client.inflight == 0
    d.publish(b"y" * most)
    d.publish(b"z" * (most + 2), 0)
    d.c2b(publish(b"t", b"y" * most, 1, 1), publish(b"t", b"z" * (most + 2)))
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"y" * most, 1, 1, dup=1))


def test_c2b_each_packet_is_one_write():
    """Pieces would wait for one another's acknowledgement (Nagle, delayed ACK)."""
    d = Dialogue()
    del d.stream.writes[:]
    d.publish(b"x" * 100, 0)
    d.publish(b"x" * 100, 1)
    d.b2c(puback(1))
    d.publish(b"x" * 100, 2)
    d.b2c(pubrec(2))
    more = 1 if d.level == 5 else 0
    assert d.stream.writes == [105 + more, 107 + more, 107 + more, 4]
