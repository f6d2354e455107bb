"""What the scripts of receiving cannot say: each part of a message, and streams of every width."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, publish, pubrec, pubrel, read_id
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, MQTTError


def test_b2c_qos2_id_is_recorded_before_its_pubrec_leaves():
    """MQTT-4.3.3-8, MQTT-4.3.3-10: a reset after the PUBREC must know the id.

    B: PUBLISH QoS 2 id 5
       the id is committed
    C: PUBREC 5
    """
    store = KeepingStore()
    d = Dialogue(store=store)
    seen = []
    store.before_commit = lambda: seen.append((list(store.held), d.stream.sent))
    d.b2c(publish(b"t", b"one", 2, 5))
    assert ([5], b"") in seen
    d.c2b(pubrec(5))


def test_b2c_handler_whose_publish_finds_no_room_holds_up_the_answers():
    """The k-th publish of a handler is stuck: answers wait for it and lose nothing.

    B: PUBLISH QoS 1 id 101 … 120
    C: PUBACK 101 … 120, in this order, and 20 PUBLISHes
    """
    for stuck in range(1, 21):
        d = Dialogue(max_inflight=20)
        calls = []

        def handler(message, d=d, calls=calls, stuck=stuck):
            calls.append(message.packet_id)
            d.stream.is_blocked = len(calls) == stuck
            d.client.publish(b"echo", b"y", qos=1)

        d.client.on_message = handler
        d.stream.feed(b"".join([publish(b"t", b"x", 1, 100 + k) for k in range(1, 21)]))
        d.work()
        assert len(calls) == 20  # it goes on receiving
        d.stream.is_blocked = False
        for _ in range(50):
            d.client.poll()
        sent = d.stream.take()
        for k in range(1, 21):
            sent = sent.replace(publish(b"echo", b"y", 1, k), b"")
        assert sent == b"".join([puback(100 + k) for k in range(1, 21)])


def test_b2c_callback_of_umqtt_simple_gets_bytes():
    d = Dialogue()
    seen = []
    d.client.set_callback(lambda topic, msg: seen.append((topic, msg)))
    d.b2c(publish(b"t/1", b"payload", 1, 5))
    assert seen == [(b"t/1", b"payload")] and type(seen[0][0]) is type(seen[0][1]) is bytes
    d.client.set_callback(None)
    d.b2c(publish(b"t/1", b"payload", 1, 6))
    assert len(seen) == 1
    d.c2b(puback(5), puback(6))


def handled(handler, topic=b"home/room 1/temp", payload=b"21.5 C", **fields):
    """Receive one message -> what `handler` returned."""
    d = Dialogue()
    results = []
    d.client.on_message = lambda message: results.append(handler(message))
    d.b2c(publish(topic, payload, **fields))
    return results[0]


def test_message_fields_are_those_of_the_packet():
    def handler(m):
        return (m.topic_len, m.payload_len, m.qos, m.retain, m.dup, m.packet_id)

    assert handled(handler) == (16, 6, 0, False, False, 0)
    fields = {"qos": 2, "packet_id": 0x1234, "dup": 1, "retain": 1}
    assert handled(handler, **fields) == (16, 6, 2, True, True, 0x1234)
    assert handled(handler, payload=b"", qos=1, packet_id=1)[1] == 0


def test_message_topic_is_compares_the_whole_topic():
    for name, is_it in (
        (b"home/room 1/temp", True), (bytearray(b"home/room 1/temp"), True),
        ("home/room 1/temp", True), ("home/room 2/temp", False), (b"", False),
        (b"home/room 1/tem", False), (b"home/room 1/temp2", False), (b"Home/room 1/temp", False),
        (b"x" * 16, False),
    ):  # fmt: skip
        assert handled(lambda m, name=name: m.topic_is(name)) is is_it, name
    for bad in (None, 5):
        assert isinstance(error_of(handled, lambda m, bad=bad: m.topic_is(bad)), TypeError)


def test_message_matches_filters_in_place():
    """31-A-HASH, 31-A-PLUS."""
    for pattern in ("#", "home/#", "home/+/temp", "+/+/+", "home/room 1/temp/#", "+/room 1/temp"):
        for form in (pattern, pattern.encode()):
            assert handled(lambda m, p=form: m.matches(p)) is True
    for pattern in (b"+", b"home/+", b"home/room 1/temp/+", b"home/room 1/temp2", b"home/+/tem"):
        assert handled(lambda m, p=pattern: m.matches(p)) is False


def test_message_is_copied_whole_or_as_far_as_it_fits():
    """At every QoS, so at every place in the buffer."""
    for fields in ({}, {"qos": 1, "packet_id": 5}, {"qos": 2, "packet_id": 5}):
        for size in (0, 1, 5, 6, 7, 16, 40):
            target = bytearray(b"." * size)
            n = handled(lambda m, target=target: m.payload_into(target), **fields)
            assert n == min(size, 6)
            assert bytes(target) == (b"21.5 C" + b"." * 40)[:size]
            target = bytearray(b"." * size)
            n = handled(lambda m, target=target: m.topic_into(target), **fields)
            assert n == min(size, 16)
            assert bytes(target[:n]) == b"home/room 1/temp"[:n]
            assert bytes(target[n:]) == b"." * (size - n)


def test_message_of_the_whole_buffer_is_copied():
    target = bytearray(250)
    payload = bytes(range(250))
    assert handled(lambda m: m.payload_into(target), topic=b"t", payload=payload) == 250
    assert target == payload


def test_message_index_reads_the_payload():
    assert handled(lambda m: bytes(m[i] for i in range(m.payload_len))) == b"21.5 C"
    for index in (6, 100, 1000):
        error = handled(lambda m, i=index: error_of(lambda: m[i]))
        assert isinstance(error, IndexError)
    assert isinstance(handled(lambda m: error_of(lambda: m[0]), payload=b""), IndexError)


def test_message_topic_and_payload_are_new_bytes():
    kept = handled(lambda m: (m.topic, m.payload))
    assert kept == (b"home/room 1/temp", b"21.5 C")
    assert type(kept[0]) is bytes and type(kept[1]) is bytes


def test_message_object_serves_all_messages():
    d = Dialogue()
    seen = []
    d.client.on_message = lambda message: seen.append(id(message))
    d.b2c(publish(b"a", b"1"), publish(b"b", b"2", 1, 5), publish(b"c", b"3", 2, 6))
    assert len(seen) == 3 and len(set(seen)) == 1


# 31-4.1-Q2: where the broker's ids count messages of other QoS, too.
def test_b2c_burst_of_both_qos_then_all_are_handed_over_on_one_connection():
    d = Dialogue(clean=True)
    numbers = range(1, 501)
    d.b2c(*[publish(b"t", b"%d" % k, 1 + k % 2, k) for k in numbers])
    assert [message[1] for message in d.messages] == [b"%d" % k for k in numbers]
    d.b2c(*[pubrel(k) for k in numbers[::2]])
    answers = d.take_packets()
    expected = list(numbers) + list(numbers[::2])
    assert [read_id(packet) for packet in answers] == expected
    assert not d.stream.is_closed and not d.client.stats.refused


# 31-4.1-Q1: ids that a burst left behind take no room from messages for ever.
def test_c2b_journal_after_a_burst_takes_messages_as_before():
    counts = []
    for burst in (0, 30):
        d = Dialogue(store=FailingFlash(16).journal(), max_inflight=200, max_mqueue_len=200)
        if burst:
            d.b2c(*[publish(b"t", b"x", 2, k) for k in range(1, burst + 1)])
            d.b2c(*[pubrel(k) for k in range(1, burst + 1)])
        try:
            while d.client.inflight < 200:
                d.publish(b"x")
        except MQTTError as error:
            assert error.code == FULL
        counts.append(d.client.inflight)
    assert 20 < counts[0] < 200 and counts[1] >= counts[0]
