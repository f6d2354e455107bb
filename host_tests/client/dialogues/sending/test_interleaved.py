"""Answers that come while what is in flight is being sent again, and retries after them.

MQTT 3.1 §4.2 and §4.3.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_c2b_pubrec_to_what_was_not_yet_sent_again_then_pubrel_in_its_turn",
    "test_c2b_pubrels_that_wait_for_the_first_all_leave_when_it_is_released",
    "test_c2b_retries_of_the_next_begin_small_when_the_oldest_is_done",
    "test_c2b_retries_of_the_oldest_go_on_doubling_when_another_is_done",
    "test_c2b_pubrec_of_another_does_not_shorten_the_wait_for_the_oldest",
)


def blocked_after(d, packets):
    """The client is connected again and could send only so many packets of those due."""
    d.lose()
    d.stream = d.new_stream(False)
    d.next_stream = None
    write = d.stream.write
    left = [1 + packets]  # CONNECT is one

    def counted(buf, *args):
        if not left[0]:
            return None
        left[0] -= 1
        return write(buf, *args)

    d.stream.write = counted
    d.client.connect(False, stream=d.stream)
    d.work()
    return left


def go_on(d, left):
    """There is room again."""
    left[0] = 100
    for _ in range(5):
        d.client.poll()


def test_c2b_answer_while_sending_again_then_the_rest_goes_out_all_the_same():
    """31-4.2-RECONNECT.

    C: PUBLISH 1, 2, 3; lost; C: PUBLISH 1 DUP, no room; B: PUBACK 1
    C: PUBLISH 2 DUP, 3 DUP
    """
    d = Dialogue(keepalive=0, retry_interval=0)
    for number in (1, 2, 3):
        d.publish(b"%d" % number)
    left = blocked_after(d, 1)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1))
    d.stream.feed(puback(1))
    d.work()
    go_on(d, left)
    d.c2b(publish(b"t", b"2", 1, 2, dup=1), publish(b"t", b"3", 1, 3, dup=1))
    d.b2c(puback(2), puback(3))
    assert (d.client.inflight, d.client.stats.strays) == (0, 0)


def test_c2b_pubrec_to_what_was_not_yet_sent_again_then_pubrel_in_its_turn():
    """31-4.3-STAGE, MQTT-4.3.3-6.

    C: PUBLISH 1, 2; lost; C: PUBLISH 1 DUP, no room; B: PUBREC 2, PUBREC 1
    C: PUBLISH 2 DUP, PUBREL 1, PUBREL 2
    """
    d = Dialogue(keepalive=0, retry_interval=0)
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    left = blocked_after(d, 1)
    d.c2b(publish(b"t", b"1", 2, 1, dup=1))
    d.stream.feed(pubrec(2), pubrec(1))
    d.work()
    go_on(d, left)
    # It was on its way before PUBREC could be read.
    d.c2b(publish(b"t", b"2", 2, 2, dup=1), pubrel(1), pubrel(2))
    d.b2c(pubcomp(1), pubcomp(2))
    assert d.client.inflight == 0


def test_c2b_pubrels_that_wait_for_the_first_all_leave_when_it_is_released():
    """31-4.3-STAGE, over a new connection.

    C: PUBLISH 1, 2, 3; B: PUBREC 2, 3; lost; C: PUBLISH 1 DUP
    B: PUBREC 1; C: PUBREL 1, 2, 3
    """
    d = Dialogue(keepalive=0, retry_interval=0)
    for number in (1, 2, 3):
        d.publish(b"%d" % number, 2)
    d.stream.take()
    d.b2c(pubrec(2), pubrec(3))
    d.c2b()
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, dup=1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1), pubrel(2), pubrel(3))
    d.b2c(pubcomp(3), pubcomp(2), pubcomp(1))
    assert d.client.inflight == 0


def test_c2b_retries_of_the_next_begin_small_when_the_oldest_is_done():
    """31-4.2-RETRY: the time-out doubles with each try of one message.

    C: PUBLISH 1 (QoS 2), 2; (30 s) both DUP; B: PUBREC 1, C: PUBREL 1, B: PUBCOMP 1
    (30 s) C: PUBLISH 2 DUP
    """
    d = Dialogue(keepalive=0)
    d.publish(b"1", 2)
    d.publish(b"2")
    d.wait(30)
    d.b2c(pubrec(1))
    d.b2c(pubcomp(1))
    d.stream.take()
    d.wait(29)
    d.c2b()
    d.wait(1)
    d.c2b(publish(b"t", b"2", 1, 2, dup=1))


def test_c2b_retries_of_the_oldest_go_on_doubling_when_another_is_done():
    """31-4.2-RETRY.

    C: PUBLISH 1, 2; (30 s) both DUP; B: PUBACK 2; (60 s) C: PUBLISH 1 DUP
    """
    d = Dialogue(keepalive=0)
    d.publish(b"1")
    d.publish(b"2")
    d.wait(0)
    d.wait(30)
    d.b2c(puback(2))
    d.stream.take()
    d.wait(59)
    d.c2b()
    d.wait(1)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1))


def test_c2b_pubrec_of_another_does_not_shorten_the_wait_for_the_oldest():
    """31-4.2-RETRY: C: PUBLISH 1, 2 (QoS 2); (30 s) DUP; B: PUBREC 2; (60 s) 1 DUP"""
    d = Dialogue(keepalive=0)
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    d.wait(0)
    d.wait(30)
    d.b2c(pubrec(2))
    d.stream.take()
    d.wait(59)
    d.c2b()
    d.wait(1)
    assert publish(b"t", b"1", 2, 1, dup=1) in d.stream.take()


def test_full_store_while_offline_refuses_and_changes_nothing():
    """RT-MQUEUE: a journal may be full before the queue is."""
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False)
    d.publish(b"1")
    store.slots = 1
    assert code_of(d.publish, b"2") == FULL
    assert (d.client.inflight, d.client.queued) == (0, 1)
    store.slots = 9
    assert d.publish(b"2") == 2


def test_c2b_publish_after_answers_out_of_order_overwrites_nothing_in_flight():
    """C: PUBLISH 1 2 3; B: PUBACK 2; C: PUBLISH 4 5; CONNECT; C: PUBLISH 1 3 4 5 DUP"""
    d = Dialogue(max_inflight=4, max_mqueue_len=0)
    for k in (1, 2, 3):
        d.publish(b"%d" % k)
    d.b2c(puback(2))
    for k in (4, 5):
        d.publish(b"%d" % k)
    d.lose()
    d.connect(False)
    d.c2b(*[publish(b"t", b"%d" % k, 1, k, dup=1) for k in (1, 3, 4, 5)])
