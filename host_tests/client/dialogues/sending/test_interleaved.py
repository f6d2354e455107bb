"""A store that is full before the queue is, and a ring that is given back from its head."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, publish
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL


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


def test_c2b_message_that_waits_for_room_behind_the_oldest_makes_no_poll_due():
    """RT-MQUEUE: the ring is given back from its head, and that waits for its answer.

    C: PUBLISH 1, 2, ..., B: PUBACK 2, ...; until the store alone has one; B: PUBACK 1
    """
    d = Dialogue(
        store=KeepingStore(), keepalive=0, retry_interval=0, buffer_size=64, queue_bytes=0,
        max_inflight=2,
    )  # fmt: skip
    d.publish(b"1")
    number = 2
    while not d.client.queued:
        d.publish(b"%d" % number)
        if not d.client.queued:
            d.b2c(puback(number))
            number += 1
    d.take_packets()
    assert d.client.inflight == 1 and d.client.next_due_ms() == 86400000
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"%d" % number, 1, number))
