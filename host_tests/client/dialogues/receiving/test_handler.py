"""What a handler may do and see, and what becomes of its message.  The design's §4, §5."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import puback, publish


def test_b2c_handler_that_publishes_into_a_slow_stream_mixes_no_packets():
    """Half a PUBLISH is finished before the PUBACK begins, for every stream width.

    B: PUBLISH QoS 1 id 101 … 120; the handler publishes at QoS 1 each time
    C: PUBLISH 1 … 20 and PUBACK 101 … 120, none of them torn
    """
    for most in range(1, 40):
        d = Dialogue(max_inflight=20)
        d.client.on_message = lambda message, d=d: d.client.publish(b"echo", b"y", qos=1)
        d.stream.write_most = most
        d.stream.feed(b"".join([publish(b"t", b"x", 1, 100 + k) for k in range(1, 21)]))
        for _ in range(1000):
            d.client.poll()
        sent = d.stream.take()
        echoes = [publish(b"echo", b"y", 1, k) for k in range(1, 21)]
        assert len(sent) == 20 * (len(echoes[0]) + 4), (most, sent)
        for packet in echoes + [puback(100 + k) for k in range(1, 21)]:
            assert sent.count(packet) == 1, (most, sent)


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
