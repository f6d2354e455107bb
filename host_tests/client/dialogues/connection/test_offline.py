"""What happens while there is no connection, for days if need be.  Design §11."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from umqtt31 import NETWORK, TIMEOUT

HOUR = 3600


def pass_offline(d, hours, by_connect=False):
    """The program tries to connect every six hours; nobody is there."""
    for _ in range(hours // 6):
        d.clock.sleep_ms(6 * HOUR * 1000)
        if by_connect:
            assert code_of(d.client.connect, False) == NETWORK
        else:
            assert d.client.reconnect() is False
    d.clock.sleep_ms(hours % 6 * HOUR * 1000)


def test_reconnect_when_a_connect_came_between_then_its_pause_is_forgotten():
    d = Dialogue(is_connected=False, keepalive=0)
    assert d.client.reconnect() is False
    d.connect(False)
    for _ in range(150):
        d.wait(HOUR)
    d.lose()
    due_ms = d.client.next_due_ms()
    opened = d.opened
    for _ in range(3):
        assert d.client.reconnect() is False
        d.clock.sleep_ms(1000)
    assert d.opened > opened
    assert due_ms <= 1000


def test_reconnect_when_offline_for_days_then_pauses_stay_within_128_s():
    d = Dialogue(is_connected=False)
    for days in range(1, 31):
        pass_offline(d, 24)
        opened, start = d.opened, d.clock.now_ms
        while d.opened == opened:
            assert 0 <= d.client.next_due_ms() <= 128000
            d.clock.sleep_ms(max(1, d.client.next_due_ms()))
            assert d.client.reconnect() is False
        assert d.clock.now_ms - start <= 130000, days


def test_next_due_ms_behind_a_connect_forgets_when_reconnect_wanted_to_try():
    """31-4.2-RECONNECT: after half of the ticks' period that time seems to come for days."""
    d = Dialogue(is_connected=False)
    assert d.client.reconnect() is False
    for _ in range(30):
        pass_offline(d, 24, by_connect=True)
        assert d.client.next_due_ms() == 0


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


# RT-AWAITREL-T: a held id that nobody released for so long means nothing any more.
def test_b2c_held_id_when_offline_for_days_then_is_a_new_message():
    for hours in (1, 24, 150, 160, 200, 290, 300, 310, 450, 720):
        d = Dialogue(await_rel_timeout=300)
        d.b2c(publish(b"t", b"old", 2, 5))
        d.lose()
        pass_offline(d, hours, hours % 4 == 0)
        d.connect(False)
        d.b2c(publish(b"t", b"new", 2, 5))
        d.c2b(pubrec(5))
        assert [message[1] for message in d.messages] == [b"old", b"new"], hours


def test_c2b_max_age_when_offline_for_days_then_is_never_sent():
    for hours in (1, 24, 150, 160, 200, 290, 300, 310, 450, 720):
        d = Dialogue(is_queueing=True, is_connected=False)
        dropped = d.watch_drops()
        packet_id = d.publish(b"old", max_age=3000)
        pass_offline(d, hours, hours % 4 == 0)
        d.connect(False)
        d.c2b()
        assert dropped == [(packet_id, TIMEOUT)], hours


# RT-MQUEUE: the same for the others behind one that is given up.
def test_c2b_max_age_of_every_other_message_then_just_these_are_given_up():
    for qos0 in (False, True):
        d = Dialogue(max_inflight=1, keepalive=0, retry_interval=0, mqueue_store_qos0=qos0)
        dropped = d.watch_drops()
        d.publish(b"in flight", 2)
        ids, kept = [], []
        for number in range(5):
            ids.append(d.publish(b"aged %d" % number, max_age=3 + number))
            kept.append(d.publish(b"kept %d" % number))
            if qos0:
                d.publish(b"0", 0)
        for seconds in range(8):
            assert [one[0] for one in dropped] == ids[: max(0, seconds - 2)]
            d.wait(1)
        d.stream.take()
        d.b2c(pubrec(1))
        d.c2b(pubrel(1))
        d.b2c(pubcomp(1))
        sent = []
        for _ in range(20):
            for one in d.take_publishes():
                sent.append(one[0])
                if one[1]:
                    d.b2c(puback(one[2]))
        assert [text for text in sent if text != b"0"] == [b"kept %d" % k for k in range(5)]


def publish_offline(flash):
    d = Dialogue(
        is_connected=False,
        store=flash.journal(group_commit=True),
        max_inflight=20,
        max_mqueue_len=20,
        keepalive=0,
    )
    for number in range(3):
        d.publish(b"%d" % number)
    return d


# One page takes them all: that is what group commit is for.
def test_group_commit_when_offline_then_one_program_operation_serves_many():
    flash = FailingFlash()
    d = publish_offline(flash)
    operations = flash.operations
    assert d.client.reconnect() is False
    assert flash.operations - operations <= 2
    assert d.client.reconnect() is False
    assert flash.operations - operations <= 2
