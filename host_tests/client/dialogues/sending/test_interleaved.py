"""Answers that come while what is in flight is being sent again, and retries after them.

MQTT 3.1 §4.2 and §4.3.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = ("test_c2b_pubrec_to_what_was_not_yet_sent_again_then_pubrel_in_its_turn",)


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
