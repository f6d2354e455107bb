"""The 65,536th packet id and those around it, with ids in flight all the time."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, publish, pubrec, suback, subscribe
from umqtt31 import FULL


def test_ids_of_70000_messages_are_never_0_and_never_one_in_flight():
    """31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: ids 1 (QoS 1) and 2 (QoS 2) stay unanswered."""
    d = Dialogue(keepalive=0, retry_interval=0)
    assert [d.publish(b"stuck", 1), d.publish(b"stuck", 2)] == [1, 2]
    d.b2c(pubrec(2))
    d.stream.take()
    expected = 3
    for _ in range(70_000):
        packet_id = d.publish(b"x", 1)
        assert packet_id == expected
        d.stream.feed(puback(packet_id))
        d.client.poll()
        d.stream.sent = b""
        del d.stream.writes[:]
        expected = packet_id + 1 if packet_id < 65535 else 3
    d.lose()
    d.connect(False)
    assert publish(b"t", b"stuck", 1, 1, dup=1) in d.stream.take()
    assert d.client.inflight == 2


def test_ids_when_all_messages_that_may_be_are_in_flight_then_one_is_left_for_a_request():
    """31-2.4-ID: of 65,535."""
    d = Dialogue(max_inflight=65534, max_mqueue_len=0, buffer_size=16)
    assert {d.publish() for _ in range(65534)} == set(range(1, 65535))
    assert code_of(d.publish) == FULL
    d.stream.take()
    assert d.subscribe(subscribe(65535, (b"t", 1)), suback(65535, 1), b"t", 1) == [1]
    for options in ({"max_inflight": 65535}, {"max_inflight": 65000, "max_mqueue_len": 535}):
        assert isinstance(error_of(Dialogue, buffer_size=16, **options), ValueError)
