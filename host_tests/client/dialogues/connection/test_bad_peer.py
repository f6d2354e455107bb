"""A broker that breaks the rules, and packets larger than the buffer.

Each ends in a named error or is survived; nothing accepted is lost.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel, suback
from umqtt31 import CLOSED, NETWORK, MQTTError


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


def test_b2c_close_in_the_middle_of_a_packet_is_survived():
    """B: every beginning of a PUBLISH, then the end of the stream or a reset."""
    whole = publish(b"topic", b"payload", 1, 5)
    for cut in range(len(whole)):
        for end, code in ((b"", CLOSED), (OSError(104), NETWORK)):
            d = Dialogue()
            d.publish()
            if cut:
                d.stream.feed(whole[:cut])
            d.stream.feed(end)
            assert code_of(d.work) == code
            assert d.stream.is_closed and not d.messages
            d.connect(False)
            d.b2c(whole)
            d.c2b(publish(b"t", b"x", 1, 1, dup=1), puback(5))
            assert len(d.messages) == 1


def test_b2c_packets_cut_anywhere_arrive_all_the_same():
    """B: QoS 0, 1, 2, PUBREL, PUBACK, PINGRESP in pieces of every size, with pauses."""
    long = publish(b"a/long/topic", b"payload " * 22, 2, 6)
    data = publish(b"t", b"0") + publish(b"t", b"1", 1, 5) + long + pubrel(6) + puback(1)
    data += b"\xd0\x00" + publish(b"t", b"") + suback(9, 0)
    for size in list(range(1, 70)) + [len(data)]:
        d = Dialogue()
        d.publish()
        d.stream.take()
        for start in range(0, len(data), size):
            d.stream.feed(data[start : start + size], None)
        for _ in range(2 * len(data) // size + 20):
            d.client.poll()
        assert [message[1] for message in d.messages] == [b"0", b"1", b"payload " * 22, b""]
        d.c2b(puback(5), pubrec(6), pubcomp(6))
        assert d.client.inflight == 0


def test_b2c_half_a_packet_never_blocks():
    """B: half a PUBLISH.  poll(0) returns at once, poll(100) after 100 ms."""
    whole = publish(b"t", b"0123456789", 1, 5)
    for cut in range(1, len(whole)):
        d = Dialogue()
        d.stream.feed(whole[:cut])
        assert d.client.poll() == 0 and d.clock.now_ms == 0
        assert d.client.poll(100) == 0 and 100 <= d.clock.now_ms <= 101
        d.publish(b"x", 0)
        d.b2c(whole[cut:])
        d.c2b(publish(b"t", b"x"), puback(5))
        assert len(d.messages) == 1


def test_b2c_oversize_publish_is_drained_and_acknowledged():
    """A message larger than buffer_size: counted, reported, answered; the connection lives.

    B: PUBLISH of 2000 bytes at each QoS, again the QoS 2 one, PUBREL; PUBLISH small
    C: PUBACK 1029, PUBREC 1542, PUBREC 1542, PUBCOMP 1542; both bytes of an id count
    """
    for read_most in (0, 1, 7, 64, 65):
        d = Dialogue(buffer_size=64, keepalive=0)
        d.stream.read_most = read_most
        told = []
        d.client.on_oversize = lambda *lengths, told=told: told.append(lengths)
        topic = b"a/" + b"t" * 70
        big = b"x" * 2000
        d.stream.feed(publish(topic, big), publish(topic, big, 1, 0x405))
        d.stream.feed(publish(b"t", big, 2, 0x606), publish(b"t", big, 2, 0x606, 1), pubrel(0x606))
        d.stream.feed(publish(b"t", b"small"))
        for _ in range(20000 // (read_most or 1000) + 100):
            d.client.poll()
        d.c2b(puback(0x405), pubrec(0x606), pubrec(0x606), pubcomp(0x606))
        size = 2000 if d.level < 5 else 2001  # the length of no properties counts
        assert told == [(72, size), (72, size), (1, size)]
        assert [message[1] for message in d.messages] == [b"small"]
        assert d.client.stats.oversize == 3


def test_b2c_message_behind_an_oversize_one_is_handled_before_the_end_is_seen():
    """Whatever part of them one read brings: B: PUBLISH of 63 to 140 bytes, PUBLISH, end."""
    for size in range(63, 141):
        d = Dialogue(buffer_size=64, keepalive=0)
        d.client.on_oversize = lambda *lengths: None
        d.stream.feed(publish(b"t", b"x" * size) + publish(b"t", b"last"), b"")
        assert code_of(d.work) == CLOSED
        assert [message[1] for message in d.messages] == [b"last"], size


def test_b2c_flood_leaves_the_program_its_turn():
    """B: 10,000 PUBLISH at once; one poll() handles a bounded number of them."""
    d = Dialogue()
    d.stream.feed(publish(b"t", b"x", 1, 5) * 1000)
    most = 0
    handled = 1
    while handled:
        handled = d.client.poll()
        most = max(most, handled)
    assert len(d.messages) == 1000 and most <= 100
    d.c2b(puback(5) * 1000)


def test_c2b_short_writes_of_any_size_put_out_the_same_bytes():
    """The stream takes 1, 2, 3 … bytes at a time, with pauses."""
    for most in range(1, 12):
        d = Dialogue()
        d.stream.write_most = most
        d.publish(b"first", 1)
        d.publish(b"second", 2)
        d.stream.feed(publish(b"t", b"x", 1, 5), publish(b"t", b"x", 2, 6), pubrec(2))
        for _ in range(100):
            d.client.poll()
        expected = (
            publish(b"t", b"first", 1, 1),
            publish(b"t", b"second", 2, 2),
            puback(5),
            pubrec(6),
            pubrel(2),
        )
        sent = d.stream.take()
        assert len(sent) == sum(len(part) for part in expected)
        for part in expected:
            assert sent.count(part) == 1, (most, sent)
