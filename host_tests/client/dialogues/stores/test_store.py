"""What a store hands over after a reset, and a store without room."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, publish
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL


def test_c2b_full_store_refuses_the_new_message_and_changes_nothing():
    """RT-MQUEUE: a journal may be full before the queue is.

    C: PUBLISH 1; the store takes no more; 2 is refused; B: PUBACK 1; C: PUBLISH 2
    """
    store = KeepingStore()
    d = Dialogue(store=store)
    d.publish(b"1")
    store.slots = 1
    assert code_of(d.publish, b"2") == FULL
    assert (d.client.inflight, d.client.queued) == (1, 0)
    d.b2c(puback(1))
    store.slots = 2
    assert d.publish(b"2") == 2
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 1, 2))


def test_close_that_fails_is_quiet_and_keeps_no_record_back():
    store = KeepingStore()
    d = Dialogue(store=store)
    commits = []
    store.before_commit = lambda: commits.append(1)

    def failing_close():
        d.stream.is_closed = True
        commits.clear()
        raise OSError(9)

    d.stream.close = failing_close
    d.client.disconnect()
    assert d.stream.is_closed and commits
    d.connect()
