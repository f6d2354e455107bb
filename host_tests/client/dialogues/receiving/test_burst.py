"""QoS 2 messages in bursts, as brokers send them: more than any window before an answer.

A broker sends nothing again within a connection, so whatever is not taken is lost until
the next one.  mosquitto 2.0.11 sends 20 and, with the first answer, up to 280 more.
"""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import publish, pubrel, read_id
from umqtt31 import FULL, MQTTError


class Broker:
    """Sends `count` messages at QoS 2, the first 20 and then all the rest at once."""

    def __init__(self, d, count):
        self.d = d
        self.waiting = [publish(b"t", b"%d" % k, 2, k) for k in range(1, count + 1)]
        self.released = set()  # PUBREL sent
        self.completed = set()

    def send(self, most):
        self.d.stream.feed(*self.waiting[:most])
        del self.waiting[:most]

    def answer(self):
        """Work on what the client sent -> was there anything?"""
        packets = self.d.take_packets()
        for packet in packets:
            packet_id = read_id(packet)
            if packet[0] == 0x50:
                assert packet_id not in self.released
                self.released.add(packet_id)
                self.d.stream.feed(pubrel(packet_id))
            else:
                assert packet[0] == 0x70 and packet_id in self.released
                self.completed.add(packet_id)
        return bool(packets)


def assert_all_arrive(d, count, is_released_late):
    broker = Broker(d, count)
    broker.send(20)
    d.work()
    broker.send(count)
    if is_released_late:
        d.work()
    while True:
        d.work()
        if not broker.answer():
            break
    assert [message[1] for message in d.messages] == [b"%d" % k for k in range(1, count + 1)]
    assert len(broker.completed) == count
    assert d.client.is_connected and not d.stream.is_closed
    assert d.client.stats.duplicates == 0


# 31-4.1-Q2: with the default settings, and without a disconnect of ours; 30: mosquitto's window.
def test_b2c_qos2_burst_then_all_are_handed_over_on_one_connection():
    for clean in (True, False):
        for count, is_released_late in ((300, True), (300, False), (30, True)):
            assert_all_arrive(Dialogue(clean=clean), count, is_released_late)


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


# The next burst finds the places of the first free again.
def test_b2c_qos2_bursts_one_after_the_other_then_all_are_handed_over():
    d = Dialogue()
    for _ in range(5):
        assert_all_arrive(d, 100, True)
        del d.messages[:]


# MQTT-4.3.3-10: whatever was held at the reset, the journal opens and knows it.
def test_b2c_qos2_burst_with_a_journal_when_reset_then_each_is_handed_over_once():
    for count in (3, 5, 30, 120):
        flash = FailingFlash(64)
        d = Dialogue(store=flash.journal())
        packets = [publish(b"t", b"%d" % k, 2, k) for k in range(1, count + 1)]
        d.b2c(*packets)
        assert [read_id(packet) for packet in d.take_packets()] == list(range(1, count + 1))
        again = Dialogue(store=flash.journal())
        again.b2c(*[bytes((0x3C,)) + packet[1:] for packet in packets])
        assert [read_id(packet) for packet in again.take_packets()] == list(range(1, count + 1))
        assert len(d.messages) == count and not again.messages
        again.b2c(*[pubrel(k) for k in range(1, count + 1)])
        third = Dialogue(store=flash.journal())
        third.b2c(publish(b"t", b"new", 2, 2))
        assert [message[1] for message in third.messages] == [b"new"]


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
