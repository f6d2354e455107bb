"""What the scripts of receiving cannot say: numbers to work out, a connection inside another."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import publish, pubrel, read_id
from umqtt31 import FULL, MQTTError


# 31-4.1-Q2: where the broker's ids count messages of other QoS, too.
def test_b2c_burst_of_both_qos_then_all_are_handed_over_on_one_connection():
    d = Dialogue(clean=True)
    numbers = range(1, 501)
    d.b2c(*[publish(b"t", b"%d" % k, 1 + k % 2, k) for k in numbers])
    assert [message[1] for message in d.messages] == [b"%d" % k for k in numbers]
    d.b2c(*[pubrel(k) for k in numbers[::2]])
    answers = d.take_packets()
    expected = list(numbers) + list(numbers[::2])
    assert [read_id(packet) for packet in answers] == expected
    assert not d.stream.is_closed and not d.client.stats.refused


# 31-4.1-Q1: ids that a burst left behind take no room from messages for ever.
def test_c2b_journal_after_a_burst_takes_messages_as_before():
    counts = []
    for burst in (0, 30):
        d = Dialogue(store=FailingFlash(16).journal(), max_inflight=200, max_mqueue_len=200)
        if burst:
            d.b2c(*[publish(b"t", b"x", 2, k) for k in range(1, burst + 1)])
            d.b2c(*[pubrel(k) for k in range(1, burst + 1)])
        try:
            while d.client.inflight < 200:
                d.publish(b"x")
        except MQTTError as error:
            assert error.code == FULL
        counts.append(d.client.inflight)
    assert 20 < counts[0] < 200 and counts[1] >= counts[0]


def test_on_drop_of_a_clean_session_that_connects_is_followed_by_that_session():
    """31-3.2-CONNACK: what it opened is closed, and nothing goes out before CONNACK."""
    d = Dialogue()
    d.publish(b"in flight")
    d.lose()
    hooked = []

    def on_drop(*_):
        d.connect(False)
        hooked.append(d.stream)
        d.publish(b"new", 2)

    d.client.on_drop = on_drop
    d.connect(True)
    assert hooked[0].is_closed and d.client.is_connected
    d.c2b(publish(b"t", b"new", 2, 2))
