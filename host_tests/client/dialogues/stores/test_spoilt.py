"""Flash on which bits turn: a message that is no longer what it was is told, never sent."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback
from umqtt31 import JOURNAL


def spoil(flash, payload):
    """Turn a bit of this payload on flash."""
    at = bytes(flash.data).find(payload)
    assert at >= 0
    flash.data[at] ^= 0x04


def dialogue(flash, **options):
    """-> a client that is offline, and what it is told of dropped messages."""
    d = Dialogue(is_queueing=True, is_connected=False, store=flash.journal(), **options)
    told = d.watch_drops()
    return d, told


# RT-MQUEUE: neither sent wrong nor lost in silence, and those behind it go out.
def test_message_that_is_spoilt_when_it_is_sent_then_is_told_and_the_others_go_out():
    for qos in (1, 2):
        flash = FailingFlash()
        before, _ = dialogue(flash, max_inflight=5)
        ids = [before.publish(b"message %d" % k, qos) for k in range(5)]
        d, told = dialogue(flash, max_inflight=5)
        spoil(flash, b"message 0")
        spoil(flash, b"message 3")
        d.connect(False)
        for _ in range(3):
            d.work()
        sent = [one[:2] for one in d.take_publishes()]
        assert sent == [(b"message %d" % k, qos) for k in (1, 2, 4)]
        assert told == [(ids[0], JOURNAL), (ids[3], JOURNAL)]
        assert (d.client.stats.dropped, d.client.inflight) == (2, 3)


# RT-MQUEUE: what found no room in RAM is read back when its turn comes.
def test_message_that_is_spoilt_while_it_waits_on_flash_alone_then_is_told():
    flash = FailingFlash(16)
    d, told = dialogue(flash, max_inflight=1, queue_bytes=0, buffer_size=64)
    ids = [d.publish(b"message %d" % k * 2) for k in range(9)]
    spoil(flash, b"message 7message 7")
    d.connect(False)
    for _ in range(9):
        d.b2c(*[puback(packet_id) for packet_id in ids])
    sent = [one[0] for one in d.take_publishes()]
    assert sent == [b"message %d" % k * 2 for k in range(9) if k != 7]
    assert told == [(ids[7], JOURNAL)]
    assert (d.client.inflight, d.client.queued) == (0, 0)


# RT-MQUEUE: the same without a hook, and in a journal of an earlier life.
def test_message_that_was_spoilt_in_an_earlier_life_is_counted_when_it_is_sent():
    flash = FailingFlash()
    before, _ = dialogue(flash)
    before.publish(b"message 0")
    before.publish(b"message 1")
    d = Dialogue(is_connected=False, store=flash.journal())
    spoil(flash, b"message 1")
    d.connect(False)
    d.work()
    assert [one[0] for one in d.take_publishes()] == [b"message 0"]
    assert (d.client.stats.dropped, d.client.inflight) == (1, 1)
