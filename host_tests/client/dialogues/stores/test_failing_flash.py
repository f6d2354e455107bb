"""A flash that fails for a while: nothing accepted is lost, nothing is given up silently."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, MQTTError


def fill(overflow):
    """-> a client whose journal is full before its queue, what it was told of, and how many
    messages it took."""
    d = Dialogue(
        is_connected=False, store=FailingFlash(8).journal(), max_mqueue_len=200, max_inflight=1,
        overflow=overflow,
    )  # fmt: skip
    told = d.watch_drops()
    count = 0
    while not told:
        count += 1
        d.publish(b"%d" % count, topic=b"t%d" % (count % 5))
        assert count < 200
    return d, told, count


# RT-MQUEUE: the journal's room is a limit as the queue's length is.
def test_drop_oldest_when_journal_is_full_then_gives_up_and_accepts():
    d, told, count = fill("drop_oldest")
    for number in range(50):
        d.publish(b"more %d" % number)
    assert [one[1] for one in told] == [FULL] * len(told)
    assert d.client.queued == count + 50 - len(told)
    d.connect(False)
    sent = []
    for _ in range(count):
        packets = d.take_publishes()
        d.b2c(*[puback(one[2]) for one in packets])
        sent += [one[0] for one in packets]
    assert sent[-1] == b"more 49" and d.client.inflight == d.client.queued == 0


# RT-MQUEUE: a large message takes the room of several small ones.
def test_drop_oldest_when_journal_is_full_then_a_large_message_takes_as_many_as_it_needs():
    d, told, _ = fill("drop_oldest")
    del told[:]
    before = d.client.queued
    assert d.publish(b"x" * 230) and len(told) >= 2
    assert d.client.queued == before + 1 - len(told)


# RT-MQUEUE.
def test_latest_when_journal_is_full_then_replaces_the_same_topic():
    d, told, _ = fill("latest")
    del told[:]
    for number in range(20):
        d.publish(b"new %d" % number, topic=b"t1")
    assert len(told) == 20
    assert code_of(d.publish, b"x", topic=b"another") == FULL
    assert len(told) == 20


# RT-MQUEUE: nothing is given up for a message that is refused all the same.
def test_drop_oldest_when_journal_is_full_of_what_is_in_flight_then_refuses_and_keeps_all():
    store = FailingFlash(8).journal()
    d = Dialogue(store=store, max_inflight=200, max_mqueue_len=9, overflow="drop_oldest")
    told = d.watch_drops()
    count = 0
    try:
        while count < 200:
            d.publish(b"%d" % count)
            count += 1
    except MQTTError as error:
        assert error.code == FULL
    assert 5 < count < 200
    assert not told and d.client.inflight == count


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
