"""The in-flight window, the queue behind it, and what is given up.

MQTT 3.1 §4.3; the broker-message-retransmission note.
"""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL


def test_latest_gives_nothing_up_where_that_makes_no_room():
    """RT-MQUEUE: on a connection the window takes more than the queue; offline one too many
    waits, and the place of one is none for another."""
    d = Dialogue(max_inflight=3, max_mqueue_len=1, overflow="latest")
    dropped = []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    d.stream.is_blocked = True
    for topic in (b"a", b"b", b"c"):
        d.publish(b"1", 1, topic)
    d.client.disconnect()
    assert code_of(d.publish, b"2", 1, b"c") == FULL
    assert not dropped and d.client.queued + d.client.inflight == 3
    d.connect(False)
    assert [one[0] for one in d.take_publishes()] == [b"1"] * 3


def test_drop_oldest_goes_on_while_a_packet_is_half_written():
    """RT-MQUEUE: a link that is slow is when a queue gets full."""
    d = Dialogue(
        max_inflight=1, max_mqueue_len=4, overflow="drop_oldest", buffer_size=60, queue_bytes=200
    )
    d.stream.write_most = 3
    for number in range(30):
        d.publish(b"%02d" % number * 20)
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 4, 25)
    d.stream.write_most = 0
    for number in range(5):
        d.work()
        sent = d.take_publishes()
        assert [one[0][:2] for one in sent] == [b"%02d" % (25 + number if number else 0)]
        d.b2c(puback(sent[0][2]))
    assert d.client.queued == 0


def test_drop_oldest_gives_up_what_finds_no_room_in_the_ring():
    """RT-MQUEUE: the store alone has it, and the ring is full of what is in flight."""
    d = Dialogue(
        store=KeepingStore(), max_inflight=4, max_mqueue_len=1, overflow="drop_oldest",
        buffer_size=60, queue_bytes=0,
    )  # fmt: skip
    for number in range(20):
        d.publish(b"%02d" % number * 20)
    got = []
    while d.client.inflight:
        sent = d.take_publishes()
        got += [one[0][:2] for one in sent]
        d.b2c(*[puback(one[2]) for one in sent])
    assert got == [b"00", b"17", b"18", b"19"] and d.client.stats.dropped == 16


def test_c2b_on_drop_that_raises_loses_nothing_else():
    """The hook's exception reaches the caller; the client stays usable."""
    d = Dialogue(max_inflight=1, max_mqueue_len=1, overflow="drop_oldest")

    def hook(packet_id, reason):
        raise KeyError("hook")

    d.client.on_drop = hook
    d.publish(b"1")
    d.publish(b"2")
    assert isinstance(error_of(d.publish, b"3"), KeyError)  # so 3 was not accepted
    d.client.on_drop = None
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 0, 1)
    packet_id = d.publish(b"4")
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"4", 1, packet_id))


def test_flush_says_whether_it_is_safe_to_switch_off():
    """RT-MQUEUE: True only if nothing is in flight or queued; never longer than asked."""
    d = Dialogue(max_inflight=1)
    assert d.client.flush(0) is True
    d.publish(b"1")
    d.publish(b"2", 2)
    before = d.clock.now_ms
    assert d.client.flush(500) is False
    assert d.clock.now_ms - before <= 510
    d.stream.take()
    d.stream.answer(publish(b"t", b"2", 2, 2), pubrec(2))
    d.stream.answer(pubrel(2), pubcomp(2))
    d.stream.feed(puback(1))
    assert d.client.flush(500) is True
    d.publish(b"3")
    d.lose()
    assert d.client.flush(500) is False
