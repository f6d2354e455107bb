"""A flash that fails for a while: nothing accepted is lost, nothing is given up silently."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, publish, suback, subscribe
from host_tests.standin.store import KeepingStore
from umqtt31 import CLOSED, FULL, JOURNAL, MQTTError

ROOM = {"max_inflight": 200, "max_mqueue_len": 200}


class UnreadableFlash(FailingFlash):
    """One that can be programmed; what was, up to `forget()`, cannot be read from then on."""

    readable_from = 0

    def forget(self):
        self.readable_from = len(bytes(self.data).rstrip(b"\xff"))

    def readblocks(self, block, buf, offset=0):
        if block * self.ioctl(5, 0) + offset < self.readable_from:
            raise OSError(5)
        super().readblocks(block, buf, offset)


def is_done(function, *args, **options):
    """-> is the call done?  If not, the journal failed."""
    try:
        function(*args, **options)
    except MQTTError as error:
        assert error.code == JOURNAL
        return False
    return True


def payloads_of(d):
    """-> those that the client sent."""
    return [one[0] for one in d.take_publishes()]


def places(count):
    """-> (place, failures there): as many as it is tried, and some of one, which is mended."""
    return [(place, 6) for place in range(count)] + [(place, 1) for place in range(3, count, 8)]


def publish_all(d, flash, payloads, fail_at=-1, failures=0, qualities=(1,)):
    """So many operations fail from the publish() `fail_at` on -> what was accepted."""
    accepted = []
    for number, payload in enumerate(payloads):
        if fail_at >= 0:
            flash.failures = failures * (number == fail_at)
        if is_done(d.publish, payload, qualities[number % len(qualities)]):
            accepted.append(payload)
        else:
            assert fail_at in (-1, number)
    flash.failures = 0
    return accepted


# 31-4.1-Q1: whichever operation fails, what was accepted before and after is there; with group
# commit, where several messages share what is programmed, too.
def test_publish_when_flash_fails_once_then_all_that_was_accepted_survives_a_reset():
    for is_grouping, count, width, qualities in ((False, 8, 1, (1, 2)), (True, 30, 10, (1,))):
        for fail_at, failures in places(count):
            flash = FailingFlash(16 if is_grouping else 8)
            store = flash.journal(group_commit=is_grouping)
            d = Dialogue(is_connected=False, store=store, **ROOM)
            payloads = [b"%d" % number * width for number in range(count)]
            accepted = publish_all(d, flash, payloads, fail_at, failures, qualities)
            assert d.client.queued == len(accepted) >= count - 1
            if is_grouping:
                d.connect(False)
                assert payloads_of(d) == accepted
            assert payloads_of(Dialogue(store=flash.journal(), **ROOM)) == accepted, fail_at


# 31-4.1-Q1: with group commit too publish() takes a message or refuses it, never both.
def test_publish_when_flash_fails_in_group_commit_while_connected_then_is_sent_once_or_never():
    for failures in range(1, 6):
        flash = FailingFlash()
        d = Dialogue(store=flash.journal(group_commit=True))
        flash.failures = failures
        accepted = []
        for payload in (b"0", b"1", b"2"):
            if is_done(d.publish, payload):
                accepted.append(payload)
        for _ in range(10):
            if not is_done(d.client.poll) and not d.client.is_connected:
                break
        flash.failures = 0
        sent = payloads_of(d)
        if not d.client.is_connected:
            d.connect(False)
            sent = payloads_of(d)
        assert sent == accepted, failures
        assert d.client.inflight + d.client.queued == len(accepted)


# 31-4.1-Q0: it goes out just where publish() does not raise.
def test_qos0_in_group_commit_when_flash_fails_then_is_sent_or_refused():
    for is_stored in (False, True):
        for max_age in (0, 50):
            flash = FailingFlash()
            store = flash.journal(group_commit=True)
            d = Dialogue(store=store, max_inflight=1, mqueue_store_qos0=is_stored)
            d.publish(b"1")
            d.publish(b"2", max_age=max_age)
            flash.is_failing = True
            accepted = [b"plain"] if is_done(d.publish, b"plain", 0) else []
            before = payloads_of(d)
            assert code_of(d.client.poll) in (JOURNAL, CLOSED)
            flash.is_failing = False
            d.connect(False)
            d.b2c(puback(1))
            d.b2c(puback(2))
            sent = sorted(set(before + payloads_of(d)))
            assert sent == [b"1", b"2"] + accepted, (is_stored, max_age)


# 31-4.1-Q1: what cannot be read when its turn comes goes out as soon as it can, and until then
# publish() does not fail for it.
def test_message_that_cannot_be_read_when_its_turn_comes_then_goes_out_when_it_can():
    for count in (0, 2):
        flash = UnreadableFlash()
        before = Dialogue(is_connected=False, store=flash.journal(), max_inflight=1)
        for payload in (b"1", b"2", b"3"):
            before.publish(payload)
        d = Dialogue(store=flash.journal(), max_inflight=1)
        assert payloads_of(d) == [b"1"]
        flash.forget()
        d.stream.feed(puback(1))
        assert code_of(d.client.poll) == JOURNAL
        more = [d.publish(b"more %d" % k) for k in range(count)]
        assert (d.client.inflight, d.client.queued) == (0, 2 + count)
        flash.readable_from = 0
        d.connect(False)
        for packet_id in [2, 3] + more:
            d.b2c(puback(packet_id))
        assert payloads_of(d) == [b"2", b"3"] + [b"more %d" % k for k in range(count)]


# RT-MQUEUE: what is neither sent nor told is lost silently.
def test_overflow_when_flash_fails_then_each_message_is_sent_or_told():
    for overflow in ("drop_oldest", "latest"):
        for fail_at, failures in places(30):
            flash = FailingFlash()
            d = Dialogue(
                is_connected=False, store=flash.journal(), max_mqueue_len=3, overflow=overflow
            )
            told = d.watch_drops()
            accepted = publish_all(d, flash, [b"%d" % k for k in range(30)], fail_at, failures)
            given_up = [one[0] for one in told]
            assert len(set(given_up)) == len(told) == d.client.stats.dropped
            d.connect(False)
            ids = given_up + [one[2] for one in d.take_publishes()]
            assert sorted(ids) == list(range(1, len(accepted) + 1)), (overflow, fail_at)


# An error leaves the client closed, and the next connect() works.
def test_connect_when_flash_fails_then_is_closed_and_connects_later_with_all_there():
    for clean in (True, False):
        for failures in (1, 2, 100):
            flash = FailingFlash()
            d = Dialogue(is_connected=False, store=flash.journal())
            d.publish(b"1")
            d.publish(b"2", 2)
            flash.failures = failures
            d.stream = d.new_stream(clean, is_present=False)
            is_open = is_done(d.client.connect, clean, stream=d.stream)
            assert d.client.is_connected == is_open
            flash.failures = 0
            if is_open:
                d.work()
            else:
                d.connect(clean, is_present=False)
            assert payloads_of(d) == [b"1", b"2"]
            assert d.client.inflight == 2


# The same where what the broker says in CONNACK cannot be recorded; filters are remembered.
def test_connect_when_flash_fails_at_connack_then_is_closed():
    for failing in ("renew", "note"):
        store = FailingFlash().journal()
        d = Dialogue(store=store)
        d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
        d.lose()
        d.publish(b"1")
        record = getattr(store, failing)

        def fail(*_):
            raise MQTTError(JOURNAL)

        setattr(store, failing, fail)
        clean = d.level == 3 and failing == "renew"
        stream = d.new_stream(clean, is_present=False)
        assert code_of(d.client.connect, clean, stream=stream) == JOURNAL
        assert stream.is_closed and d.client.next_due_ms() == 0
        setattr(store, failing, record)
        d.connect(False, is_present=False)
        d.work()
        d.c2b(subscribe(3, (b"a", 1)), publish(b"t", b"1", 1, 2))


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
