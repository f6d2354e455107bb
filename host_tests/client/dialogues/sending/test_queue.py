"""The in-flight window, the queue behind it, and what is given up.

MQTT 3.1 §4.3; the broker-message-retransmission note.
"""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import puback
from host_tests.standin.store import KeepingStore


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
