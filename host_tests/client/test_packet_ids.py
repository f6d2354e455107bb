"""Packet ids come by order alone; the 65,535 of them do not come round while one is in flight."""

import pytest

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, publish
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL


@pytest.mark.parametrize("queue_bytes", [1024, 8192])
@pytest.mark.parametrize("has_store", [False, True], ids=["ram", "store"])
def test_ids_while_the_oldest_waits_end_in_full_and_go_on_behind_it(has_store, queue_bytes):
    """31-2.4-ID, RT-MQUEUE: FULL until the oldest is answered, as on a new connection it is.

    C: PUBLISH 1, 2, ...; B: PUBACK 2, ... as long as they come, and never 1
    """
    store = KeepingStore() if has_store else None
    d = Dialogue(
        keepalive=0, retry_interval=0, store=store, max_mqueue_len=16383, queue_bytes=queue_bytes
    )
    last = sent = d.publish(b"", 1)
    while True:
        try:
            last = d.publish(b"", 1)
        except OSError as error:
            assert error.code == FULL
            break
        if d.client.inflight == 2:
            sent = last
            d.stream.feed(puback(sent))
            d.client.poll()
        d.stream.sent = b""
        del d.stream.writes[:]
    assert 64 < sent < last + 1 < 65536 and d.client.inflight == 1
    assert code_of(d.publish, b"", 1) == FULL and d.client.next_due_ms() == 86400000
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"", 1, 1, dup=1))
    d.b2c(puback(1))
    for _ in range(2):
        assert d.publish(b"", 1) == last + 1
        last += 1


@pytest.mark.parametrize("overflow", ["drop_oldest", "latest"])
def test_ids_when_others_are_given_up_end_in_full_before_that_in_flight(overflow):
    """31-2.4-ID: what a policy gives up while there is no connection uses an id all the same."""
    d = Dialogue(keepalive=0, overflow=overflow)
    d.publish(b"in flight", 1)
    d.lose()
    for _ in range(65534):
        d.client.publish(b"t", b"", qos=1)
    assert code_of(d.publish, b"", 1) == FULL
    d.connect(False)
    d.b2c(puback(1))
    assert d.publish(b"", 1) == 1


def test_ids_suffice_for_all_that_may_be_kept_and_done_behind_the_oldest():
    """31-2.4-ID: the ring holds what is done in front of it, the store what waits behind it."""
    most = 16383
    for option in ("max_inflight", "max_mqueue_len"):
        assert isinstance(error_of(Dialogue, **{option: most + 1}), ValueError)
    assert isinstance(error_of(Dialogue, queue_bytes=(1 << 18) + 1), ValueError)
    least = 5 + len(publish(b"t", b"", 1, 1))
    ring_bytes = (1 << 18) + 3 * 16383  # with room for largest packets
    assert ring_bytes // least + 2 * most < 65535
