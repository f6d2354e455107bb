"""A broker that breaks the rules, and packets larger than the buffer.

Each ends in a named error or is survived; nothing accepted is lost.
"""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import (
    packet,
    pingresp,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    unsuback,
)
from umqtt31 import CLOSED, NETWORK, PROTOCOL, TOO_LARGE, MQTTError

# What level 5 does in their place is in `level_5/`.
BELOW_5 = (
    "test_b2c_packets_only_a_client_sends_are_a_protocol_error",
    "test_b2c_answers_of_a_wrong_length_are_a_protocol_error",
)


def test_b2c_five_length_bytes_are_a_protocol_error():
    """31-2.1-LEN: a fifth byte is malformed, in whatever pieces it comes."""
    for pieces in (
        (b"\x30\xff\xff\xff\xff\x01",),
        (b"\x30", b"\xff", b"\xff", b"\xff", b"\x80"),
        (b"\x30\x80\x80\x80\x80\x00",),
        (b"\xd0\x80\x80\x80\x80",),
    ):
        d = Dialogue()
        d.publish()
        d.stream.feed(*pieces)
        assert code_of(d.work) == PROTOCOL
        assert d.stream.is_closed and d.client.inflight == 1
        d.connect(False)
        d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_b2c_what_is_malformed_right_behind_a_packet_of_two_bytes_is_a_protocol_error():
    """31-2.1-LEN: both are read at once."""
    for tail in (b"\x90\x44\x00\x02", b"\x90\xff\xff\xff\x04", b"\x00\x00", b"\x0f\x02"):
        d = Dialogue(buffer_size=64)
        d.stream.feed(pingresp() + tail + bytes(4))
        assert code_of(d.work) == PROTOCOL
        assert d.stream.is_closed


# 311-4.8.0-1.
def test_b2c_packets_only_a_client_sends_are_a_protocol_error():
    """B: CONNECT, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, reserved types."""
    for first in (0x00, 0x10, 0x82, 0xA2, 0xC0, 0xE0, 0xF0):
        for body in (b"", b"\x00\x01", b"\x00\x01\x00\x01a\x00"):
            d = Dialogue()
            d.stream.feed(packet(first, body))
            assert code_of(d.work) == PROTOCOL, (first, body)
            assert d.stream.is_closed


def test_b2c_answers_of_a_wrong_length_are_a_protocol_error():
    """B: PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK of 0, 1 or 3 bytes."""
    for first in (0x40, 0x50, 0x62, 0x70, 0xB0):
        for body in (b"", b"\x00", b"\x00\x01\x00"):
            d = Dialogue()
            d.publish()
            d.stream.feed(packet(first, body))
            assert code_of(d.work) == PROTOCOL, (first, body)
            assert d.client.inflight == 1


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


# 311-4.8.0-1.
def test_b2c_malformed_publishes_are_a_protocol_error():
    """Too short for its topic, its id; an empty topic."""
    for malformed in (
        packet(0x30, b""),
        packet(0x30, b"\x00"),
        packet(0x30, b"\x00\x00x"),
        packet(0x30, b"\x00\x02t"),
        packet(0x30, b"\xff\xfft"),
        packet(0x32, b"\x00\x01t"),
        packet(0x32, b"\x00\x01t\x00"),
        packet(0x34, b"\x00\x02t\x00\x01"),
    ):
        d = Dialogue()
        d.stream.feed(malformed)
        assert code_of(d.work) == PROTOCOL, malformed
        assert not d.messages
        d.c2b(*d.farewell(0x81))


def test_b2c_stray_answers_are_answered_as_the_specification_demands():
    """31-3.5-PUBREC, MQTT-4.3.3-4, MQTT-4.3.3-11: never an error at level 3.

    B: PUBACK 9, PUBREC 9, PUBCOMP 9, PUBREL 9, SUBACK 9, UNSUBACK 9
    C: PUBREL 9, PUBCOMP 9
    """
    d = Dialogue()
    d.b2c(puback(9), pubrec(9), pubcomp(9), pubrel(9), suback(9, 0), unsuback(9))
    d.c2b(pubrel(9), pubcomp(9))
    assert d.client.is_connected


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
        for _ in range(2 * len(data)):
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


def test_b2c_oversize_but_malformed_is_a_protocol_error():
    """QoS 3, id 0, empty topic or a topic longer than the packet, in a packet too large."""
    for malformed in (
        packet(0x36, b"\x00\x01t\x00\x05" + b"x" * 200),
        packet(0x32, b"\x00\x01t\x00\x00" + b"x" * 200),
        packet(0x30, b"\x00\x00" + b"x" * 200),
        packet(0x30, b"\x00\xff" + b"x" * 200),
        packet(0x34, b"\x00\xc8" + b"x" * 200),
        packet(0x34, b"\x00\xc8" + b"x" * 201),
    ):
        d = Dialogue(buffer_size=64)
        d.stream.feed(malformed)
        assert code_of(d.work) == PROTOCOL, malformed[:6]
        assert d.stream.is_closed
        d.c2b(*d.farewell(0x81))


def test_b2c_publish_too_short_behind_an_oversize_one_is_a_protocol_error():
    """Nothing of the one before stands for what it lacks."""
    for first in (0x30, 0x32):
        d = Dialogue(buffer_size=64)
        told = []
        d.client.on_oversize = lambda *lengths, told=told: told.append(lengths)
        d.stream.feed(publish(b"t", b"x" * 100, 1, 1), bytes((first, 2, 0, 1)))
        assert code_of(d.work) == PROTOCOL
        assert len(told) == 1


def test_b2c_message_behind_an_oversize_one_is_handled_before_the_end_is_seen():
    """Whatever part of them one read brings: B: PUBLISH of 63 to 140 bytes, PUBLISH, end."""
    for size in range(63, 141):
        d = Dialogue(buffer_size=64, keepalive=0)
        d.client.on_oversize = lambda *lengths: None
        d.stream.feed(publish(b"t", b"x" * size) + publish(b"t", b"last"), b"")
        assert code_of(d.work) == CLOSED
        assert [message[1] for message in d.messages] == [b"last"], size


def test_b2c_oversize_of_another_type_is_a_protocol_error():
    """Only PUBLISH may be that large: B: PUBACK, SUBACK, … with a length of 16 MB."""
    for first in (0x20, 0x40, 0x50, 0x62, 0x70, 0x90, 0xB0, 0xD0):
        d = Dialogue()
        d.stream.feed(bytes((first,)) + b"\xff\xff\xff\x07")
        assert code_of(d.work) == PROTOCOL
        assert d.stream.is_closed


def test_b2c_oversize_hook_that_raises_leaves_it_unacknowledged():
    """As a handler that raises: no answer, the exception reaches poll()'s caller."""
    d = Dialogue(buffer_size=64)

    def hook(topic_len, payload_len):
        raise KeyError("hook")

    d.client.on_oversize = hook
    d.stream.feed(publish(b"t", b"x" * 100, 1, 5))
    assert isinstance(error_of(d.work), KeyError)
    d.client.on_oversize = lambda *lengths: None
    d.b2c(publish(b"t", b"x" * 100, 1, 5, 1))
    d.c2b(puback(5))


def test_b2c_oversize_without_a_hook_is_acknowledged_and_raised():
    """It is not handed over, so nobody may overlook it; it does not come again, and the
    connection lives on.

    B: PUBLISH too large at each QoS, PUBLISH small
    C: PUBACK 5, PUBREC 6, before poll() raises
    """
    d = Dialogue(buffer_size=64)
    for qos, answers in ((0, ()), (1, (puback(5),)), (2, (pubrec(6),))):
        d.stream.feed(
            publish(b"t", b"x" * 100, qos, 4 + qos) if qos else publish(b"t", b"x" * 100)
        )
        error = error_of(d.work)
        assert error.code == TOO_LARGE and "%d bytes" % (100 + (d.level == 5)) in str(error)
        d.c2b(*answers)
    assert d.client.stats.oversize == 3 and d.client.is_connected
    assert d.client.reconnect() is True  # for who does that after every OSError
    d.b2c(publish(b"t", b"small"))
    assert [message[1] for message in d.messages] == [b"small"]


def test_b2c_packet_of_just_the_buffer_is_received():
    """B: PUBLISH whose body is buffer_size bytes; one more is too large."""
    d = Dialogue(buffer_size=64)
    most = 61 if d.level < 5 else 60
    d.b2c(publish(b"t", b"x" * most), publish(b"t", b"x" * (most - 2), 1, 5))
    assert [len(message[1]) for message in d.messages] == [most, most - 2]
    d.stream.feed(publish(b"t", b"x" * (most + 1)))
    assert code_of(d.work) == TOO_LARGE and d.client.stats.oversize == 1


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


def test_b2c_what_no_message_and_no_answer_may_be_is_a_protocol_error():
    """Nothing of it is answered or handed over.

    31-2.4-ID, 31-3.3-WILD, 311-3.3.2-2, MQTT-3.3.1-2, MQTT-3.3.2-2.
    B: an answer with packet id 0, PUBLISH with DUP at QoS 0, PUBLISH to a name with a wildcard
    """
    for wrong in (
        puback(0), pubrec(0), pubrel(0), pubcomp(0),
        publish(b"t", b"x", dup=1), publish(b"t", b"x", 1, 0), publish(b"t", b"x", 2, 0),
        publish(b"#", b"x"), publish(b"+", b"x", 1, 5), publish(b"a/+/b", b"x", 2, 5),
        publish(b"a#", b"x", 1, 5),
    ):  # fmt: skip
        for is_known in (False, True):
            d = Dialogue()
            if is_known:
                d.publish(b"1", 2)
                d.take_packets()
            d.stream.feed(wrong)
            assert code_of(d.work) == PROTOCOL, wrong
            assert d.stream.is_closed and not d.messages, wrong
            assert not [one for one in d.take_packets() if one[0] < 0xE0], wrong
