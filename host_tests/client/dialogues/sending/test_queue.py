"""The in-flight window, the queue behind it, and what is given up.

MQTT 3.1 §4.3; the broker-message-retransmission note.
"""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from umqtt31 import CLOSED, FULL, NETWORK, TIMEOUT

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_c2b_what_is_sent_again_is_what_is_in_the_window",
    "test_c2b_message_too_old_is_given_up_only_while_it_waits",
)


def payloads(*numbers):
    return [b"%d" % number for number in numbers]


def test_c2b_window_bounds_what_is_in_flight():
    """RT-INFLIGHT, RT-MQUEUE.

    C: PUBLISH 1, 2 with max_inflight 2; 3 and 4 wait
    B: PUBACK 1, C: PUBLISH 3
    B: PUBACK 2, C: PUBLISH 4
    """
    d = Dialogue(max_inflight=2)
    for payload in payloads(1, 2, 3, 4):
        d.publish(payload)
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 1, 2))
    assert (d.client.inflight, d.client.queued) == (2, 2)
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"3", 1, 3))
    d.b2c(puback(2))
    d.c2b(publish(b"t", b"4", 1, 4))
    assert (d.client.inflight, d.client.queued) == (2, 0)


def test_c2b_what_is_sent_again_is_what_is_in_the_window():
    """RT-INFLIGHT: the time-out never sends from the queue.

    C: PUBLISH 1, 2; 3 waits; (30 s); C: PUBLISH 1 DUP, 2 DUP
    """
    d = Dialogue(max_inflight=2, keepalive=0)
    for payload in payloads(1, 2, 3):
        d.publish(payload)
    d.stream.take()
    d.wait(0)
    d.wait(30)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1), publish(b"t", b"2", 1, 2, dup=1))


def test_c2b_window_of_1_keeps_the_order_of_submission():
    """31-4.3-WINDOW: with one in flight nothing overtakes, whatever the QoS.

    C: PUBLISH QoS 2 id 1; B: PUBREC, C: PUBREL, B: PUBCOMP; C: PUBLISH QoS 1 id 2; …
    """
    d = Dialogue(max_inflight=1)
    for payload, qos in zip(payloads(1, 2, 3), (2, 1, 2)):
        d.publish(payload, qos)
    d.c2b(publish(b"t", b"1", 2, 1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(pubcomp(1))
    d.c2b(publish(b"t", b"2", 1, 2))
    d.b2c(puback(2))
    d.c2b(publish(b"t", b"3", 2, 3))


def test_c2b_wider_window_keeps_the_order_within_a_qos():
    """31-4.3-WINDOW: answers out of order change nothing for what follows.

    C: PUBLISH 1, 2, 3; B: PUBACK 3, PUBACK 1; C: PUBLISH 4, 5; lost
    C: PUBLISH 2 DUP, 4 DUP, 5 DUP
    """
    d = Dialogue(max_inflight=3)
    for payload in payloads(1, 2, 3, 4, 5):
        d.publish(payload)
    d.stream.take()
    d.b2c(puback(3), puback(1))
    d.c2b(publish(b"t", b"4", 1, 4), publish(b"t", b"5", 1, 5))
    d.lose()
    d.connect(False)
    d.c2b(*[publish(b"t", b"%d" % k, 1, k, dup=1) for k in (2, 4, 5)])


def test_c2b_queue_takes_max_mqueue_len_while_offline_and_not_one_more():
    """RT-MQUEUE: overflow "refuse" raises FULL and changes nothing.

    publish() 1 to 3 offline with max_mqueue_len 3; the 4th is refused; CONNECT
    C: PUBLISH 1, 2; B: PUBACK 1, C: PUBLISH 3
    """
    d = Dialogue(is_connected=False, max_inflight=2, max_mqueue_len=3)
    ids = [d.publish(payload) for payload in payloads(1, 2, 3)]
    assert code_of(d.publish, b"4") == FULL
    assert (d.client.inflight, d.client.queued) == (0, 3)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, ids[0]), publish(b"t", b"2", 1, ids[1]))
    d.b2c(puback(ids[0]))
    d.c2b(publish(b"t", b"3", 1, ids[2]))
    assert d.publish(b"4") == ids[2] + 1


def test_c2b_queue_length_0_leaves_only_the_window():
    """RT-MQUEUE: nothing waits, neither behind the window nor offline.

    C: PUBLISH 1, 2 with max_inflight 2, max_mqueue_len 0; the 3rd is refused
    """
    d = Dialogue(max_inflight=2, max_mqueue_len=0)
    d.publish(b"1")
    d.publish(b"2", 2)
    assert code_of(d.publish, b"3") == FULL
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 2, 2))
    d.b2c(puback(1))
    d.publish(b"3")
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"2", 2, 2, dup=1), publish(b"t", b"3", 1, 3, dup=1))


def test_c2b_while_the_stream_is_stuck_as_many_wait_as_the_window_has_free():
    """RT-INFLIGHT, RT-MQUEUE: they would be in flight but for the stream, so a shorter queue
    does not count; without a link there is no window, and nothing waits.

    publish() 1 to 4 with max_inflight 4, max_mqueue_len 2 into a stream that takes nothing;
    the 5th is refused; C: PUBLISH 1, 2, 3, 4
    """
    d = Dialogue(max_inflight=4, max_mqueue_len=2)
    d.stream.is_blocked = True
    for payload in payloads(1, 2, 3, 4):
        d.publish(payload)
    assert code_of(d.publish, b"5") == FULL
    d.stream.is_blocked = False
    d.work()
    d.c2b(*[publish(b"t", b"%d" % k, 1, k) for k in (1, 2, 3, 4)])
    d = Dialogue(is_connected=False, max_inflight=4, max_mqueue_len=0)
    assert code_of(d.publish) == FULL


def test_c2b_qos0_waits_in_the_queue_only_if_asked_to():
    """RT-MQUEUE-Q0.

    publish() QoS 0, 1, 0 offline, mqueue_store_qos0; CONNECT
    C: PUBLISH QoS 0, QoS 1 id 1, QoS 0
    """
    d = Dialogue(is_connected=False)
    assert code_of(d.publish, b"a", 0) == CLOSED
    d = Dialogue(is_connected=False, mqueue_store_qos0=True)
    for payload, qos in ((b"a", 0), (b"b", 1), (b"c", 0)):
        d.publish(payload, qos)
    assert d.client.queued == 3
    d.connect(False)
    d.c2b(publish(b"t", b"a"), publish(b"t", b"b", 1, 1), publish(b"t", b"c"))
    assert (d.client.inflight, d.client.queued) == (1, 0)


def test_c2b_qos0_that_is_kept_when_the_link_is_lost_is_not_refused():
    """RT-MQUEUE-Q0: who publishes it again, as after an error, would send it twice.

    publish() QoS 1 id 1, of which the stream takes nothing; publish() QoS 0, and the
    stream turns out to be lost; CONNECT
    C: PUBLISH QoS 1 id 1, QoS 0
    """
    for is_kept in (True, False):
        d = Dialogue(mqueue_store_qos0=is_kept)
        d.stream.is_blocked = True
        d.publish(b"a", 1)
        d.stream.write_error = OSError(104)
        if is_kept:
            assert d.publish(b"b", 0) == 0
            assert code_of(d.client.poll) == NETWORK
        else:
            assert code_of(d.publish, b"b", 0) in (FULL, NETWORK)
        d.connect(False)
        d.c2b(publish(b"t", b"a", 1, 1, dup=1), *[publish(b"t", b"b")] * is_kept)


def test_c2b_qos0_behind_a_full_queue_is_refused():
    """RT-MQUEUE, RT-MQUEUE-Q0."""
    d = Dialogue(is_connected=False, max_mqueue_len=1, mqueue_store_qos0=True)
    d.publish(b"a", 0)
    assert code_of(d.publish, b"b", 0) == FULL


def test_c2b_drop_oldest_gives_up_the_oldest_that_waits():
    """RT-MQUEUE: counted, reported with FULL; what is in flight is never given up.

    C: PUBLISH 1; 2 and 3 wait; publish 4 gives up 2
    B: PUBACK 1, C: PUBLISH 3
    """
    d = Dialogue(max_inflight=1, max_mqueue_len=2, overflow="drop_oldest")
    dropped = d.watch_drops()
    for payload in payloads(1, 2, 3, 4):
        d.publish(payload)
    assert dropped == [(2, FULL)] and d.client.stats.dropped == 1
    d.c2b(publish(b"t", b"1", 1, 1))
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"3", 1, 3))
    d.b2c(puback(3))
    d.c2b(publish(b"t", b"4", 1, 4))


def test_c2b_drop_oldest_without_a_queue_refuses():
    """What is in flight is never given up: FULL."""
    d = Dialogue(max_inflight=1, max_mqueue_len=0, overflow="drop_oldest")
    d.publish(b"1")
    assert code_of(d.publish, b"2") == FULL
    assert d.client.inflight == 1


def test_c2b_latest_replaces_the_waiting_message_of_the_same_topic():
    """RT-MQUEUE: another topic's message stays; no match is refused.

    C: PUBLISH 1 to a; a 2 and b 3 wait; publish a 4 replaces a 2; publish c is refused
    B: PUBACK 1, C: PUBLISH b 3; B: PUBACK, C: PUBLISH a 4
    """
    d = Dialogue(max_inflight=1, max_mqueue_len=2, overflow="latest")
    dropped = d.watch_drops()
    d.publish(b"1", topic=b"a")
    d.publish(b"2", topic=b"a")
    d.publish(b"3", topic=b"b")
    d.publish(b"4", topic=b"a")
    assert dropped == [(2, FULL)]
    assert code_of(d.publish, b"5", topic=b"c") == FULL
    d.c2b(publish(b"a", b"1", 1, 1))
    d.b2c(puback(1))
    d.c2b(publish(b"b", b"3", 1, 3))
    d.b2c(puback(3))
    d.c2b(publish(b"a", b"4", 1, 4))


def test_latest_gives_nothing_up_where_that_makes_no_room():
    """RT-MQUEUE: on a connection the window takes more than the queue; offline one too many
    waits, and the place of one is none for another."""
    d = Dialogue(max_inflight=3, max_mqueue_len=1, overflow="latest")
    dropped = []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    d.stream.is_blocked = True
    for topic in (b"a", b"b", b"c"):
        d.publish(b"1", 1, topic)
    d.client.disconnect()
    assert code_of(d.publish, b"2", 1, b"c") == FULL
    assert not dropped and d.client.queued + d.client.inflight == 3
    d.connect(False)
    assert [one[0] for one in d.take_publishes()] == [b"1"] * 3


def test_c2b_message_too_old_is_given_up_only_while_it_waits():
    """MQTT-4.3.3-7: no expiry once the PUBLISH has been sent.

    C: PUBLISH QoS 2 id 1 (max_age 10); 2 (max_age 10) and 3 wait
       (10 s): 2 is given up
       (20 s): C: PUBLISH 1 DUP
    B: PUBREC 1, C: PUBREL 1, B: PUBCOMP 1, C: PUBLISH 3
    """
    d = Dialogue(overflow="refuse", max_inflight=1, keepalive=0)
    dropped = d.watch_drops()
    d.publish(b"1", 2, max_age=10)
    d.publish(b"2", 2, max_age=10)
    d.publish(b"3", 2)
    d.work()
    d.stream.take()
    assert d.client.next_due_ms() == 10000
    d.wait(9.999)
    assert not dropped
    d.wait(0.001)
    assert dropped == [(2, TIMEOUT)] and d.client.queued == 1
    d.wait(20)
    d.c2b(publish(b"t", b"1", 2, 1, dup=1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(pubcomp(1))
    d.c2b(publish(b"t", b"3", 2, 3))


def test_c2b_message_sent_before_it_is_too_old_is_kept_over_connections():
    """MQTT-4.3.3-7: it waited 5 s, was sent, and stays though 10 s are over.

    publish() offline (max_age 10); (5 s); CONNECT, C: PUBLISH 1; lost; (20 s)
    C: CONNECT, PUBLISH 1 DUP
    """
    d = Dialogue(overflow="refuse", is_connected=False)
    d.publish(b"1", 2, max_age=10)
    d.clock.sleep_ms(5000)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, properties=d.left(5)))
    d.lose()
    d.clock.sleep_ms(20000)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, dup=1, properties=d.left(1)))
    assert d.client.stats.dropped == 0


def test_c2b_message_too_old_on_reconnect_is_not_sent():
    """RT-MQUEUE: an age limit holds while offline too.

    publish() offline (max_age 10); (11 s); CONNECT; C: nothing
    """
    d = Dialogue(overflow="refuse", is_connected=False)
    d.publish(b"1", max_age=10)
    d.publish(b"2")
    d.clock.sleep_ms(11000)
    d.connect(False)
    d.c2b(publish(b"t", b"2", 1, 2))
    assert d.client.stats.dropped == 1


def test_c2b_on_drop_that_raises_loses_nothing_else():
    """The hook's exception reaches the caller; the client stays usable."""
    d = Dialogue(max_inflight=1, max_mqueue_len=1, overflow="drop_oldest")

    def hook(packet_id, reason):
        raise KeyError("hook")

    d.client.on_drop = hook
    d.publish(b"1")
    d.publish(b"2")
    assert isinstance(error_of(d.publish, b"3"), KeyError)  # so 3 was not accepted
    d.client.on_drop = None
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 0, 1)
    packet_id = d.publish(b"4")
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"4", 1, packet_id))


def test_flush_says_whether_it_is_safe_to_switch_off():
    """RT-MQUEUE: True only if nothing is in flight or queued; never longer than asked."""
    d = Dialogue(max_inflight=1)
    assert d.client.flush(0) is True
    d.publish(b"1")
    d.publish(b"2", 2)
    before = d.clock.now_ms
    assert d.client.flush(500) is False
    assert d.clock.now_ms - before <= 510
    d.stream.take()
    d.stream.answer(publish(b"t", b"2", 2, 2), pubrec(2))
    d.stream.answer(pubrel(2), pubcomp(2))
    d.stream.feed(puback(1))
    assert d.client.flush(500) is True
    d.publish(b"3")
    d.lose()
    assert d.client.flush(500) is False


def test_flush_waits_for_a_qos0_message_that_the_stream_has_not_taken():
    d = Dialogue()
    d.stream.is_blocked = True
    d.publish(qos=0)
    assert d.client.flush(500) is False
    d.stream.is_blocked = False
    assert d.client.flush(500) is True
    d.c2b(publish(b"t", b"x"))
