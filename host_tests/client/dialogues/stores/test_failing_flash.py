"""A flash that fails for a while: nothing accepted is lost, nothing is given up silently."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, publish, pubrec
from umqtt31 import CLOSED, FULL, JOURNAL, TIMEOUT, MQTTError

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


def places(count):
    """-> (place, failures there): as many as it is tried, and some of one, which is mended."""
    return [(place, 6) for place in range(count)] + [(place, 1) for place in range(3, count, 8)]


def recovered(flash, **options):
    """-> payloads that a life after a reset sends, in order."""
    options = dict(ROOM, **options)
    again = Dialogue(clean=False, store=flash.journal(), **options)
    return [one[0] for one in again.take_publishes()]


def publish_all(d, flash, payloads, fail_at=-1, failures=0, qualities=(1,)):
    """So many operations fail from the publish() `fail_at` on -> what was accepted."""
    accepted = []
    for number, payload in enumerate(payloads):
        if number == fail_at:
            flash.failures = failures
        elif fail_at >= 0:
            flash.failures = 0
        try:
            d.publish(payload, qualities[number % len(qualities)])
            accepted.append(payload)
        except MQTTError as error:
            assert error.code == JOURNAL and fail_at in (-1, number)
    return accepted


# 31-4.1-Q1: whichever operation fails, what was accepted before and after is there.
def test_publish_when_flash_fails_once_then_all_that_was_accepted_survives_a_reset():
    for fail_at, failures in places(8):
        flash = FailingFlash()
        d = Dialogue(is_connected=False, store=flash.journal(), **ROOM)
        payloads = [b"%d" % number for number in range(8)]
        accepted = publish_all(d, flash, payloads, fail_at, failures, (1, 2))
        assert len(accepted) >= 7
        assert d.client.queued == len(accepted)
        assert recovered(flash) == accepted, fail_at


# 31-4.1-Q1: the same where several messages share what is programmed.
def test_publish_when_flash_fails_once_in_group_commit_then_all_that_was_accepted_survives():
    for fail_at, failures in places(30):
        flash = FailingFlash(16)
        d = Dialogue(is_connected=False, store=flash.journal(group_commit=True), **ROOM)
        payloads = [b"%d" % number * 10 for number in range(30)]
        accepted = publish_all(d, flash, payloads, fail_at, failures)
        flash.failures = 0
        d.connect(False)
        assert [one[0] for one in d.take_publishes()] == accepted
        assert recovered(flash) == accepted, fail_at


# 31-4.1-Q1: with group commit too publish() takes a message or refuses it, never both.
def test_publish_when_flash_fails_in_group_commit_while_connected_then_is_sent_once_or_never():
    for failures in range(1, 6):
        flash = FailingFlash()
        d = Dialogue(store=flash.journal(group_commit=True))
        flash.failures = failures
        accepted = publish_all(d, flash, (b"0", b"1", b"2"))
        for _ in range(10):
            try:
                d.client.poll()
            except MQTTError as error:
                assert error.code == JOURNAL
                if not d.client.is_connected:
                    break
        flash.failures = 0
        sent = [one[0] for one in d.take_publishes()]
        if not d.client.is_connected:
            d.connect(False)
            sent = [one[0] for one in d.take_publishes()]
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
            try:
                assert d.publish(b"plain", 0) == 0
                accepted = [b"plain"]
            except MQTTError as error:
                assert error.code == JOURNAL
                accepted = []
            before = [one[0] for one in d.take_publishes()]
            assert code_of(d.client.poll) in (JOURNAL, CLOSED)
            flash.is_failing = False
            d.connect(False)
            d.b2c(puback(1))
            d.b2c(puback(2))
            sent = [one[0] for one in d.take_publishes()]
            assert sorted(set(before + sent)) == [b"1", b"2"] + accepted, (is_stored, max_age)


# 31-4.1-Q1: what cannot be read when its turn comes goes out as soon as it can, and until then
# publish() does not fail for it.
def test_message_that_cannot_be_read_when_its_turn_comes_then_goes_out_when_it_can():
    for count in (0, 2):
        flash = UnreadableFlash()
        before = Dialogue(is_connected=False, store=flash.journal(), max_inflight=1)
        for payload in (b"1", b"2", b"3"):
            before.publish(payload)
        d = Dialogue(clean=False, store=flash.journal(), max_inflight=1)
        assert [one[0] for one in d.take_publishes()] == [b"1"]
        flash.forget()
        d.stream.feed(puback(1))
        assert code_of(d.client.poll) == JOURNAL
        more = [d.publish(b"more %d" % k) for k in range(count)]
        assert (d.client.inflight, d.client.queued) == (0, 2 + count)
        flash.readable_from = 0
        d.connect(False)
        d.b2c(puback(2))
        d.b2c(puback(3))
        for packet_id in more:
            d.b2c(puback(packet_id))
        sent = [one[0] for one in d.take_publishes()]
        assert sent == [b"2", b"3"] + [b"more %d" % k for k in range(count)]


# RT-MQUEUE: each message that is given up is told, whatever the flash does meanwhile.
def test_max_age_when_flash_fails_then_each_message_given_up_is_told():
    flash = FailingFlash(40)
    d = Dialogue(
        is_queueing=True, store=flash.journal(), max_inflight=1, max_mqueue_len=120, keepalive=0
    )
    d.publish(b"in flight")
    ids = [d.publish(b"%d" % k, max_age=10) for k in range(100)]
    told = d.watch_drops()
    flash.is_failing = True
    d.clock.sleep_ms(10000)
    for _ in range(60):
        try:
            d.client.poll()
        except MQTTError as error:
            assert error.code == JOURNAL
            if not d.client.is_connected:
                break
    flash.is_failing = False
    if not d.client.is_connected:
        d.connect(False)
    d.work()
    assert told == [(packet_id, TIMEOUT) for packet_id in ids]
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 0, 100)


# RT-MQUEUE: what is neither sent nor told is lost silently.
def test_overflow_when_flash_fails_then_each_message_is_sent_or_told():
    for overflow in ("drop_oldest", "latest"):
        for fail_at, failures in places(30):
            flash = FailingFlash()
            d = Dialogue(
                is_connected=False, store=flash.journal(), max_mqueue_len=3, overflow=overflow
            )
            told, accepted = [], {}
            d.client.on_drop = lambda packet_id, reason, told=told: told.append(packet_id)
            for number in range(30):
                flash.failures = failures * (number == fail_at)
                try:
                    accepted[d.publish(b"%d" % number)] = b"%d" % number
                except MQTTError as error:
                    assert error.code == JOURNAL
            flash.failures = 0
            assert len(set(told)) == len(told) == d.client.stats.dropped
            d.connect(False)
            sent = [one[2] for one in d.take_publishes()]
            assert sorted(sent + told) == sorted(accepted), (overflow, fail_at)


# MQTT-4.3.2-4, MQTT-4.3.3-8: an answer that waits for the flash is not forgotten.
def test_b2c_answers_owed_when_flash_fails_then_they_leave_later_or_the_link_is_closed():
    flash = FailingFlash()
    d = Dialogue(store=flash.journal())
    flash.is_failing = True
    d.stream.feed(publish(b"t", b"1", 1, 7), publish(b"t", b"2", 2, 8), publish(b"t", b"3", 1, 9))
    error = error_of(d.work)
    assert isinstance(error, MQTTError) and error.code == JOURNAL
    sent = d.stream.take()
    assert pubrec(8) not in sent
    flash.is_failing = False
    if d.client.is_connected:
        d.work()
        assert sent + d.stream.take() == puback(7) + pubrec(8) + puback(9)
    else:
        assert d.stream.is_closed
        d.connect(False)
        d.b2c(publish(b"t", b"2", 2, 8, dup=1))
        d.c2b(pubrec(8))
    assert [message[1] for message in d.messages].count(b"2") == 1


# An error leaves the client closed, and the next connect() works.
def test_connect_when_flash_fails_then_is_closed_and_connects_later_with_all_there():
    for clean in (True, False):
        for failures in (1, 2, 100):
            flash = FailingFlash()
            d = Dialogue(is_connected=False, store=flash.journal())
            d.publish(b"1")
            d.publish(b"2", 2)
            flash.failures = failures
            stream = d.new_stream(clean, is_present=False)
            try:
                d.client.connect(clean, stream=stream)
            except MQTTError as error:
                assert error.code == JOURNAL
                assert not d.client.is_connected
            flash.failures = 0
            if not d.client.is_connected:
                d.connect(clean, is_present=False)
            else:
                d.stream = stream
                d.work()
            sent = d.take_publishes()
            assert [one[0] for one in sent] == [b"1", b"2"]
            assert d.client.inflight == 2


# The same where what the broker says in CONNACK cannot be recorded.
def test_connect_when_flash_fails_at_connack_then_is_closed():
    for failing in ("renew", "note"):
        flash = FailingFlash()
        store = flash.journal()
        d = Dialogue(is_connected=False, store=store)
        d.publish(b"1")
        record = getattr(store, failing)

        def fail(*_):
            raise MQTTError(JOURNAL)

        setattr(store, failing, fail)
        stream = d.new_stream(False, is_present=False)
        if d.level == 3 and failing == "renew":
            stream = d.new_stream(True)
        clean = d.level == 3 and failing == "renew"
        assert code_of(d.client.connect, clean, stream=stream) == JOURNAL
        assert stream.is_closed and d.client.next_due_ms() == 0
        setattr(store, failing, record)
        d.connect(False, is_present=False)
        d.work()


def fill(flash, **options):
    """-> a client whose journal is full before its queue, and how many it took."""
    options = dict(max_mqueue_len=200, max_inflight=1, buffer_size=256, **options)
    d = Dialogue(is_queueing=True, is_connected=False, store=flash.journal(), **options)
    told = d.watch_drops()
    count = 0
    while not told:
        count += 1
        d.publish(b"%d" % count, topic=b"t%d" % (count % 5))
        assert count < 200
    return d, told, count


# RT-MQUEUE: the journal's room is a limit as the queue's length is.
def test_drop_oldest_when_journal_is_full_then_gives_up_and_accepts():
    d, told, count = fill(FailingFlash(8), overflow="drop_oldest")
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
    d, told, count = fill(FailingFlash(8), overflow="drop_oldest")
    del told[:]
    before = d.client.queued
    packet_id = d.publish(b"x" * 230)
    assert packet_id and len(told) >= 2
    assert d.client.queued == before + 1 - len(told)


# RT-MQUEUE.
def test_latest_when_journal_is_full_then_replaces_the_same_topic():
    d, told, count = fill(FailingFlash(8), overflow="latest")
    del told[:]
    for number in range(20):
        d.publish(b"new %d" % number, topic=b"t1")
    assert len(told) == 20
    assert code_of(d.publish, b"x", topic=b"another") == FULL
    assert len(told) == 20


# RT-MQUEUE: nothing is given up for a message that is refused all the same.
def test_drop_oldest_when_journal_is_full_of_what_is_in_flight_then_refuses_and_keeps_all():
    d = Dialogue(
        store=FailingFlash(8).journal(), max_inflight=200, max_mqueue_len=9, overflow="drop_oldest"
    )
    told = []
    d.client.on_drop = lambda packet_id, reason: told.append(packet_id)
    count = 0
    try:
        while count < 200:
            d.publish(b"%d" % count)
            count += 1
    except MQTTError as error:
        assert error.code == FULL
    assert 5 < count < 200
    assert not told and d.client.inflight == count


# 31-4.1-Q2, MQTT-4.3.2-4: what could not be recorded was handed over all the same, so it is not
# again, and a new connection is asked for, on which it can be acknowledged.
def test_b2c_qos2_that_cannot_be_recorded_is_handed_over_once_and_acknowledged_with_its_record():
    for failures in (1, 2):
        flash = FailingFlash()
        d = Dialogue(store=flash.journal())
        flash.is_failing = True
        for size in (200, 90, 60, 30, 10):  # until there is no room for records
            assert code_of(d.publish, b"x" * size) == JOURNAL
        for k in range(failures):
            d.stream.feed(publish(b"t", b"1", 2, 8, dup=k), publish(b"t", b"2", 2, 9, dup=k))
            assert code_of(d.client.poll) == JOURNAL
            assert d.client.next_due_ms() == 0
            assert code_of(d.client.poll) in (JOURNAL, CLOSED)
            assert [message[1] for message in d.messages] == [b"1", b"2"]
            flash.is_failing = False
            d.connect(False)
            flash.is_failing = True
        flash.is_failing = False
        d.b2c(publish(b"t", b"1", 2, 8, dup=1), publish(b"t", b"2", 2, 9, dup=1))
        assert [message[1] for message in d.messages] == [b"1", b"2"]
        d.c2b(pubrec(8), pubrec(9))
        d = Dialogue(store=flash.journal())
        d.b2c(publish(b"t", b"1", 2, 8, dup=1), publish(b"t", b"2", 2, 9, dup=1))
        assert not d.messages
        d.c2b(pubrec(8), pubrec(9))
