"""What the scripts of connections cannot say: all first bytes, chance, what is counted."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import connack, publish
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, NETWORK, PROTOCOL, REFUSED_UNAVAILABLE, TIMEOUT, MQTTError


def test_b2c_malformed_answers_to_what_was_not_sent_yet_end_nothing():
    """311-4.8.0-1: packets that no broker sends, as long as an answer, with the id of a message
    that the stream has no room for.
    """
    for qos, max_age in ((1, 0), (1, 60), (2, 0), (2, 60)):
        for first in range(16, 256):
            d = Dialogue(is_queueing=True)
            d.stream.is_blocked = True
            d.client.ping()
            d.publish(b"1", qos, max_age=max_age)
            d.stream.feed(bytes((first, 2, 0, 1)))
            try:
                d.work()
            except MQTTError as error:
                assert error.code != NETWORK
            assert d.client.queued == 1, hex(first)


def attempts(d, count):
    """-> for each of `count` attempts that fail, the milliseconds waited before it."""
    waits = []
    for _ in range(count):
        opened, start = d.opened, d.clock.now_ms
        while d.opened == opened:
            assert 0 <= d.client.next_due_ms() <= 128000
            d.clock.sleep_ms(max(1, d.client.next_due_ms()))
            assert d.client.reconnect() is False
            assert d.clock.now_ms - start <= 130000, "no attempt"
        waits.append(d.clock.now_ms - start)
    return waits


def test_reconnect_waits_grow_to_max_pause_and_are_spread():
    """A fleet that lost its broker must not come back in one moment.

    The n-th attempt comes within 2^(n-1) s, `max_pause` at most, at a random time.
    """
    for seconds, options in ((30, {}), (128, {"max_pause": 128}), (3, {"max_pause": 3})):
        first, later = [], []
        for _ in range(30):
            d = Dialogue(is_connected=False, **options)
            waits = attempts(d, 10)
            for n, wait_ms in enumerate(waits):
                assert wait_ms <= min(1000 << n, seconds * 1000) + 5, waits
            first.append(waits[0])
            later.append(max(waits))
        assert len(set(first)) > 10 and max(first) > 500  # jitter from the first attempt on
        assert max(later) > seconds * 900


def test_reconnect_when_offline_for_days_then_pauses_stay_within_128_s():
    d = Dialogue(is_connected=False)
    for _ in range(30):
        for _ in range(4):
            d.clock.sleep_ms(6 * 3600 * 1000)
            assert d.client.reconnect() is False
        attempts(d, 1)


def test_reconnect_begins_small_again_after_a_connection_that_worked():
    d = Dialogue()
    d.lose()
    attempts(d, 8)
    d.connect()
    d.b2c(publish(b"t", b"x"))
    d.lose()
    for _ in range(3):
        assert attempts(d, 1)[0] <= 4005


def test_reconnect_says_why_it_failed():
    """31-2.2-RC: "unavailable" passes.

    C: CONNECT; B: CONNACK 3 / 4, garbage, closes, nothing
    """
    for reply, code in (
        (connack(REFUSED_UNAVAILABLE), REFUSED_UNAVAILABLE),
        (publish(b"t", b"x"), PROTOCOL),
        (b"", CLOSED),
        (None, TIMEOUT),
    ):
        d = Dialogue(connect_timeout=2)
        d.lose()
        stream = ScriptedStream()
        d.sockets = [stream]
        stream.answer(d.connect_packet(False), reply)
        assert d.client.reconnect(4000) is False
        assert d.client.last_error.code in (code, NETWORK), reply
        assert stream.is_closed
        d.connect()
        assert d.client.last_error is None


def test_next_due_ms_when_offline_then_a_message_that_grows_too_old_is_told_in_time():
    d = Dialogue(is_queueing=True, is_connected=False)
    dropped = d.watch_drops()
    for _ in range(50):  # so that the next pauses are long
        d.client.reconnect(1000)
    packet_id = d.publish(max_age=5)
    start = d.clock.now_ms
    while not dropped:
        d.clock.sleep_ms(max(1, d.client.next_due_ms()))
        d.client.reconnect()
    assert dropped == [(packet_id, TIMEOUT)] and d.clock.now_ms - start == 5000


# One page takes them all: that is what group commit is for.
def test_group_commit_when_offline_then_one_program_operation_serves_many():
    flash = FailingFlash()
    store = flash.journal(group_commit=True)
    d = Dialogue(is_connected=False, store=store, max_inflight=20, max_mqueue_len=20, keepalive=0)
    for number in range(3):
        d.publish(b"%d" % number)
    operations = flash.operations
    for _ in range(2):
        assert d.client.reconnect() is False
        assert flash.operations - operations <= 2
