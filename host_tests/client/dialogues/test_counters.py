"""client.stats: every counter counts each happening once, and more than one of them."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import (
    pingresp,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
)
from umqtt31 import FULL

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_retried_counts_each_publish_that_is_sent_again",
    "test_retried_counts_each_pubrel_that_is_sent_again",
)


def test_sent_counts_messages_and_not_packets():
    """Three QoS 1 and two QoS 2 at once, two that waited, one sent again."""
    d = Dialogue(max_inflight=5, keepalive=0)
    for qos in (1, 1, 1, 2, 2, 1, 1):
        d.publish(qos=qos)
    assert d.client.stats.sent == 5
    d.b2c(puback(1), puback(2))
    assert d.client.stats.sent == 7
    d.b2c(pubrec(4))
    d.b2c(pubcomp(4))
    d.wait(30)
    assert d.client.stats.sent == 7
    d.publish(qos=0)
    d.publish(qos=0)
    assert (d.client.stats.sent, d.client.stats.strays) == (9, 0)


def test_sent_counts_qos0_that_waited_in_the_queue():
    d = Dialogue(is_connected=False, mqueue_store_qos0=True)
    d.publish(qos=0)
    d.publish(qos=0)
    assert d.client.stats.sent == 0
    d.connect(False)
    assert d.client.stats.sent == 2


def test_retried_counts_each_publish_that_is_sent_again():
    d = Dialogue(keepalive=0)
    d.publish()
    d.publish()
    d.wait(0)
    assert d.client.stats.retried == 0
    d.wait(30)
    assert d.client.stats.retried == 2
    d.lose()
    d.connect(False)
    assert d.client.stats.retried == 4


def test_retried_counts_each_pubrel_that_is_sent_again():
    """A first PUBREL on a new connection is none."""
    d = Dialogue(keepalive=0)
    d.publish(qos=2)
    d.publish(qos=2)
    d.b2c(pubrec(1), pubrec(2))
    assert d.client.stats.retried == 0
    d.wait(30)
    assert d.client.stats.retried == 2
    d.wait(60)
    assert d.client.stats.retried == 4


def test_strays_counts_each_answer_to_nothing():
    """31-4.1-Q2: such an answer changes nothing.

    B: PUBACK 5, PUBREC 1 of a QoS 1 message, PUBCOMP 1, PUBACK 1, PUBACK 1
    """
    d = Dialogue()
    d.publish(qos=1)
    d.b2c(puback(5))
    assert d.client.stats.strays == 1
    d.b2c(pubrec(1), pubcomp(1))
    assert (d.client.stats.strays, d.client.inflight) == (3, 1)
    d.b2c(puback(1), puback(1))
    assert (d.client.stats.strays, d.client.inflight) == (4, 0)


def test_strays_counts_an_answer_to_what_only_waits():
    """B: PUBACK of a message behind the window."""
    d = Dialogue(max_inflight=1)
    d.publish()
    d.publish()
    d.b2c(puback(2))
    assert (d.client.stats.strays, d.client.inflight, d.client.queued) == (1, 1, 1)


def test_received_and_duplicates_count_each_message():
    """31-3.3-QOS2RX: a repetition is kept from the handler."""
    d = Dialogue()
    d.b2c(publish(b"t", b"a"), publish(b"t", b"b", 1, 1), publish(b"t", b"c", 2, 2))
    assert (d.client.stats.received, d.client.stats.duplicates) == (3, 0)
    d.b2c(publish(b"t", b"c", 2, 2, dup=1), publish(b"t", b"c", 2, 2, dup=1), pubrel(2))
    assert (d.client.stats.received, d.client.stats.duplicates) == (3, 2)
    d.b2c(publish(b"t", b"d", 2, 2))
    assert (d.client.stats.received, d.client.stats.duplicates) == (4, 2)


def test_pings_and_reconnects_count_from_the_start():
    d = Dialogue(keepalive=10)
    for _ in range(3):
        d.wait(10)
        d.b2c(pingresp())
    assert d.client.stats.pings == 3
    for _ in range(2):
        d.lose()
        d.connect(False)
    assert d.client.stats.reconnects == 2


def test_dropped_counts_each_message_given_up():
    """RT-MQUEUE: and no other that leaves."""
    d = Dialogue(max_inflight=1, max_mqueue_len=2, overflow="drop_oldest")
    for number in range(6):
        d.publish(b"%d" % number)
    assert d.client.stats.dropped == 3
    d.b2c(puback(1))
    assert d.client.stats.dropped == 3


def test_dropped_counts_each_message_that_grew_too_old():
    """RT-MQUEUE: with several ages at once, each goes when its time comes.

    max_age 10, 5, 20, none behind a window of 1, all unanswered
    """
    d = Dialogue(overflow="refuse", max_inflight=1, keepalive=0, retry_interval=0)
    d.publish(b"0")
    dropped = []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    for age in (10, 5, 20, 0):
        d.publish(b"%d" % age, max_age=age)
    d.wait(5.1)
    assert dropped == [3]
    d.wait(5)
    assert dropped == [3, 2]
    d.wait(9)
    assert dropped == [3, 2]
    d.wait(1)
    assert dropped == [3, 2, 4] and d.client.stats.dropped == 3
    d.wait(100)
    assert (d.client.inflight, d.client.queued) == (1, 1)


def test_ages_when_one_is_sent_then_the_other_still_grows_old():
    """RT-MQUEUE: what is in flight is past its age, what waits is not.

    C: PUBLISH 1; 2 and 3 wait with an age; B: PUBACK 1, C: PUBLISH 2; (10 s) 3 is given up
    """
    d = Dialogue(overflow="refuse", max_inflight=1, keepalive=0, retry_interval=0)
    d.publish(b"1")
    d.publish(b"2", max_age=10)
    d.publish(b"3", max_age=10)
    d.b2c(puback(1))
    d.wait(11)
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 0, 1)
    d.b2c(puback(2))
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (0, 0, 1)


def test_ages_when_one_is_given_up_for_room_then_the_other_still_grows_old():
    """RT-MQUEUE: with drop_oldest, the one that goes having an age or none."""
    for age in (10, 0):
        d = Dialogue(
            max_inflight=1, max_mqueue_len=2, overflow="drop_oldest", keepalive=0, retry_interval=0
        )
        d.publish(b"1")
        d.publish(b"2", max_age=age)
        d.publish(b"3", max_age=10)
        d.publish(b"4")
        assert (d.client.queued, d.client.stats.dropped) == (2, 1)
        d.wait(11)
        assert (d.client.queued, d.client.stats.dropped) == (1, 2)


def test_ages_when_one_without_is_sent_then_the_other_still_grows_old():
    """RT-MQUEUE: C: PUBLISH 1; 2 waits, 3 with an age; B: PUBACK 1, C: PUBLISH 2; (10 s)"""
    d = Dialogue(overflow="refuse", max_inflight=1, keepalive=0, retry_interval=0)
    d.publish(b"1")
    d.publish(b"2")
    d.publish(b"3", max_age=10)
    d.b2c(puback(1))
    d.wait(11)
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 0, 1)


def test_refused_counts_nothing_that_publish_refused():
    """FULL is the caller's answer, not a message that was given up."""
    d = Dialogue(max_inflight=1, max_mqueue_len=1)
    d.publish()
    d.publish()
    assert code_of(d.publish) == FULL
    assert (d.client.stats.refused, d.client.stats.dropped) == (0, 0)
