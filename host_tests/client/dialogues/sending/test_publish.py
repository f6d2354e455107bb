"""Publishing at QoS 0 and 1 on the wire.  MQTT 3.1 §3.3, §3.4, §4.1."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import puback, publish, pubrec


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
