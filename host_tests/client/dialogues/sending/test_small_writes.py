"""A stream that takes little or nothing at times, in both directions at once."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import pingresp, puback, pubcomp, publish, pubrec, pubrel

# What level 5 does in their place is in `level_5/`.
BELOW_5 = ("test_c2b_pubrec_while_its_publish_waits_to_be_sent_again_then_only_pubrel_follows",)


def poll_often(d, count=400):
    for _ in range(count):
        d.client.poll()


# MQTT-4.6.0-2: however many answers are owed and however few bytes the stream takes.
def test_c2b_answers_when_stream_takes_a_few_bytes_then_none_is_overwritten():
    for count in (7, 8, 9, 10, 17, 40):
        for write_most in (1, 2, 3, 4, 5, 31, 33):
            d = Dialogue()
            d.stream.write_most = write_most
            d.stream.feed(*[publish(b"t", b"x", 1, k) for k in range(1, count + 1)])
            poll_often(d)
            d.c2b(*[puback(k) for k in range(1, count + 1)])
            assert len(d.messages) == count


# MQTT-4.6.0-4: TLS keeps what it had no room for, and takes the next write for the same bytes:
# what stands behind them would never leave.
def test_c2b_pubrel_that_finds_no_room_then_nothing_is_written_with_it():
    d = Dialogue()
    d.publish(b"1", 2)
    d.stream.take()
    d.stream.is_blocked = True
    d.stream.writes = []
    d.b2c(pubrec(1), publish(b"t", b"x", 1, 9))
    assert len(set(d.stream.writes)) == 1
    d.stream.is_blocked = False
    d.work()
    d.c2b(pubrel(1), puback(9))


# The same, for more than the client can owe answers for: it goes on as room comes.
def test_b2c_when_broker_reads_as_much_as_it_is_read_then_both_go_on():
    d = Dialogue(connect_timeout=5, max_inflight=8)
    for number in range(8):
        d.publish(b"%d" % number, 1)
    d.stream.take()
    d.stream.feed(*[puback(k) for k in range(1, 9)])
    d.stream.feed(*[publish(b"t", b"%d" % k, 1, k) for k in range(1, 61)])
    d.stream.write_most = 2
    for number in range(8, 12):
        d.publish(b"%d" % number, 1)
    poll_often(d, 600)
    sent = d.stream.take()
    assert len(d.messages) == 60
    assert len(sent) == 4 * 60 + sum(len(publish(b"t", b"%d" % k, 1, 1)) for k in range(8, 12))
    for k in range(1, 61):
        assert puback(k) in sent


# MQTT-4.3.3-6: what is to be sent again, and waits for room, is out of date by PUBREC.
def test_c2b_pubrec_while_its_publish_waits_to_be_sent_again_then_only_pubrel_follows():
    for step_s, steps in ((1, 8), (1, 5), (8, 1), (9, 1)):
        for write_most in (0, 1, 3):
            d = Dialogue(keepalive=8, retry_interval=5)
            packet_id = d.publish(b"1", 2)
            d.stream.take()
            d.stream.is_blocked = True
            for _ in range(steps):
                d.wait(step_s)
            d.b2c(publish(b"t", b"x", 1, 9), pubrec(packet_id))
            d.stream.is_blocked = False
            d.stream.write_most = write_most
            poll_often(d)
            kinds = [packet[0] & 0xF0 for packet in d.take_packets()]
            # PUBLISH before PUBREL is late, but harmless; behind it, it is a new message.
            assert 0x60 in kinds and 0x30 not in kinds[kinds.index(0x60) :], kinds
            d.b2c(pingresp(), pubcomp(packet_id))
            poll_often(d, 20)
            assert d.client.inflight == 0


# MQTT-4.6.0-2: no answer is lost for want of room, and none written over.
def test_b2c_when_nothing_is_taken_and_many_answers_are_owed_then_reads_no_further():
    d = Dialogue()
    d.stream.is_blocked = True
    d.stream.feed(*[publish(b"t", b"x", 1 + (k > 50), k) for k in range(1, 101)])
    poll_often(d, 50)
    assert 30 < len(d.messages) < 100
    d.stream.is_blocked = False
    poll_often(d, 50)
    assert len(d.messages) == 100
    d.c2b(*[pubrec(k) if k > 50 else puback(k) for k in range(1, 101)])


# RT-MQUEUE: nothing is in flight, an answer is half out, and the ring begins again at its start.
def test_c2b_ring_that_begins_again_behind_half_an_answer_then_nothing_is_lost():
    for size in range(1, 30):
        d = Dialogue(buffer_size=64, queue_bytes=1)
        for number in range(1, 30):
            d.stream.write_most = 1
            d.stream.feed(publish(b"t", b"x", 1, 7))
            d.client.poll()
            d.publish(b"%0*d" % (size, number), 1)
            d.stream.write_most = 0
            d.work()
            d.c2b(puback(7), publish(b"t", b"%0*d" % (size, number), 1, number))
            d.b2c(puback(number))
            assert (d.client.inflight, d.client.queued) == (0, 0)
        d.client.disconnect()
        assert (d.client.inflight, d.client.queued) == (0, 0)
