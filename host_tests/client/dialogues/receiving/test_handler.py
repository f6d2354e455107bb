"""What a handler may do and see, and what becomes of its message.  The design's §4, §5."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import disconnect, puback, publish, pubrec
from umqtt31 import BUSY, CLOSED, NETWORK, TIMEOUT


class HandlerError(Exception):
    pass


def failing(message):
    raise HandlerError("application")


def test_b2c_qos1_is_answered_after_the_handler_returned():
    """MQTT-4.3.2-4, MQTT-4.3.3-8: ownership is accepted by the handler's return."""
    d = Dialogue()
    seen = []
    d.client.on_message = lambda message: seen.append(d.stream.sent)
    d.b2c(publish(b"t", b"a", 1, 5), publish(b"t", b"b", 2, 6))
    assert seen == [b"", b""]
    d.c2b(puback(5), pubrec(6))


def test_b2c_handler_that_raises_leaves_the_message_unacknowledged():
    """MQTT-4.3.2-4, MQTT-4.3.3-8: the exception reaches the caller of poll().

    B: PUBLISH QoS 1 id 5, PUBLISH QoS 2 id 6; the handler raises on each
    C: nothing
    B: PUBLISH QoS 1 id 5 DUP, PUBLISH QoS 2 id 6 DUP, PUBLISH QoS 1 id 7
    C: PUBACK 5, PUBREC 6, PUBACK 7
    """
    d = Dialogue()
    d.client.on_message = failing
    d.stream.feed(publish(b"t", b"a", 1, 5), publish(b"t", b"b", 2, 6))
    for _ in range(2):
        assert isinstance(error_of(d.client.poll), HandlerError)
    d.c2b()
    assert d.client.is_connected
    d.client.on_message = d.keep
    d.b2c(publish(b"t", b"a", 1, 5, 1), publish(b"t", b"b", 2, 6, 1), publish(b"t", b"c", 1, 7))
    d.c2b(puback(5), pubrec(6), puback(7))
    assert [message[1] for message in d.messages] == [b"a", b"b", b"c"]


def test_b2c_handler_that_raises_does_not_hold_up_earlier_answers():
    """B: PUBLISH QoS 1 id 5, id 6; the handler raises on the second.  C: PUBACK 5."""
    d = Dialogue()
    payloads = []

    def handler(message):
        payloads.append(message.payload)
        if message.payload == b"b":
            raise HandlerError("b")

    d.client.on_message = handler
    d.stream.feed(publish(b"t", b"a", 1, 5) + publish(b"t", b"b", 1, 6))
    assert isinstance(error_of(d.work), HandlerError)
    d.work()
    d.c2b(puback(5))
    assert payloads == [b"a", b"b"]


def test_b2c_handler_that_polls_gets_a_clear_error_and_breaks_nothing():
    """poll(), subscribe(), connect() and reconnect() inside a handler are refused."""
    d = Dialogue()
    codes = []
    calls = (
        lambda: d.client.poll(),
        lambda: d.client.subscribe(b"a"),
        lambda: d.client.unsubscribe(b"a"),
        lambda: d.client.connect(),
        lambda: d.client.reconnect(),
        lambda: d.client.wait_msg(),
    )
    d.client.on_message = lambda message: codes.extend([code_of(call) for call in calls])
    d.b2c(publish(b"t", b"x", 1, 5))
    assert len(codes) == len(calls) and len(set(codes)) == 1
    d.c2b(puback(5))
    d.wait(1)
    d.c2b()
    assert d.client.is_connected


def test_b2c_handler_that_publishes_answers_in_order():
    """B: PUBLISH QoS 1 id 5; the handler publishes QoS 0 and 1.  C: both, PUBACK 5."""
    d = Dialogue()

    def handler(message):
        d.client.publish(b"echo", message.payload)
        d.client.publish(b"echo", message.payload, qos=1)

    d.client.on_message = handler
    d.b2c(publish(b"t", b"x", 1, 5))
    d.c2b(publish(b"echo", b"x"), publish(b"echo", b"x", 1, 1), puback(5))


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


def test_b2c_handler_whose_publish_meets_a_lost_link_is_told_and_nothing_more_is_written():
    """B: PUBLISH QoS 1 id 5; the handler publishes, which the stream refuses."""
    for qos in (0, 1):
        d = Dialogue()
        told = []

        def handler(message, d=d, told=told, qos=qos):
            if message.packet_id == 5:
                return
            d.stream.write_error = OSError(104)
            if qos:
                d.client.publish(b"echo", b"x", qos=1)
            else:
                told.append(code_of(d.client.publish, b"echo", b"x"))
            d.stream.write_error = None  # it takes what comes, if anything does

        d.client.on_message = handler
        d.stream.feed(publish(b"t", b"a", 1, 5), publish(b"t", b"b", 1, 6))
        stream = d.stream
        assert code_of(d.client.poll) == NETWORK
        assert stream.is_closed and stream.sent == b"" and not d.client.is_connected
        assert told == ([] if qos else [NETWORK]) and d.client.inflight + d.client.queued == bool(
            qos
        )


def test_b2c_handler_that_publishes_keeps_its_message():
    """The message stays readable after the handler's own publish gave up another."""
    d = Dialogue(overflow="drop_oldest", max_inflight=1, max_mqueue_len=1)
    dropped, payloads = [], []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    d.publish(b"in flight")
    d.publish(b"waits")

    def handler(message):
        d.client.publish(b"echo", b"new", qos=1)
        payloads.append((message.topic, message.payload, message.packet_id))

    d.client.on_message = handler
    d.b2c(publish(b"t", b"x", 1, 5))
    assert dropped == [2]
    assert payloads == [(b"t", b"x", 5)]


def test_b2c_handler_that_raises_lets_nothing_out_that_grew_too_old():
    """Only the answers to what came before it leave at once.

    C: PUBLISH 1; two seconds
    B: PUBACK 1, PUBLISH 8, PUBLISH 9, whose handler raises
    C: PUBACK 8
    """
    d = Dialogue(is_queueing=True, max_inflight=1)
    dropped = d.watch_drops()
    d.publish(b"1")
    packet_id = d.publish(b"2", max_age=1)
    d.stream.take()
    d.clock.now_ms += 2000

    def handler(message):
        if message.packet_id == 9:
            raise KeyError

    d.client.on_message = handler
    d.stream.feed(puback(1), publish(b"t", b"x", 1, 8), publish(b"t", b"x", 1, 9))
    assert isinstance(error_of(d.work), KeyError)
    d.c2b(puback(8))
    d.work()
    d.c2b()
    assert dropped == [(packet_id, TIMEOUT)]


def test_b2c_handler_that_takes_long_lets_nothing_out_that_grew_too_old_meanwhile():
    """Nor does what it publishes, though there is room for what grew too old.

    B: PUBACK 1, PUBLISH 9; in its handler two seconds pass
    C: PUBACK 9 and, if the handler publishes, PUBLISH 3
    """
    for then_publishes in (False, True):
        d = Dialogue(is_queueing=True, max_inflight=1)
        dropped = d.watch_drops()
        d.publish(b"1")
        packet_id = d.publish(b"2", max_age=1)
        d.stream.take()

        def handler(message, d=d, then_publishes=then_publishes):
            d.clock.sleep_ms(2000)
            if then_publishes:
                d.publish(b"3")

        d.client.on_message = handler
        d.b2c(puback(1), publish(b"t", b"x", 1, 9))
        d.c2b(puback(9), *((publish(b"t", b"3", 1, 3),) if then_publishes else ()))
        assert dropped == [(packet_id, TIMEOUT)]


def test_c2b_on_drop_that_takes_long_lets_nothing_out_that_grew_too_old_meanwhile():
    """max_age 1 and 2 behind a window of 1; after 1.5 s B: PUBACK; in on_drop 1 s passes."""
    d = Dialogue(is_queueing=True, max_inflight=1)
    dropped = []

    def on_drop(*given_up):
        dropped.append(given_up)
        d.clock.sleep_ms(1000)

    d.client.on_drop = on_drop
    d.publish(b"1")
    ids = [d.publish(b"2", max_age=1), d.publish(b"3", max_age=2)]
    d.stream.take()
    d.clock.sleep_ms(1500)
    d.b2c(puback(1))
    d.c2b()
    assert dropped == [(packet_id, TIMEOUT) for packet_id in ids]


def test_b2c_handler_that_disconnects_ends_the_poll():
    """B: PUBLISH QoS 1 id 5, id 6; the handler disconnects.  The second is not read."""
    d = Dialogue()
    d.client.on_message = lambda message: d.client.disconnect()
    d.stream.feed(publish(b"t", b"x", 1, 5), publish(b"t", b"x", 1, 6))
    d.client.poll()
    assert d.stream.is_closed and not d.client.is_connected
    assert code_of(d.client.poll) == CLOSED


def test_b2c_qos2_whose_handler_disconnects_is_handed_over_once():
    """MQTT-4.3.3-10: the handler returned.

    B: PUBLISH QoS 2 id 5; C: DISCONNECT; on the next connection B: PUBLISH 5 DUP; C: PUBREC 5
    """
    d = Dialogue()
    d.client.on_message = lambda message: (d.keep(message), d.client.disconnect())
    d.stream.feed(publish(b"t", b"x", 2, 5))
    d.client.poll()
    d.client.on_message = d.keep
    d.connect(False)
    d.b2c(publish(b"t", b"x", 2, 5, dup=1))
    d.c2b(pubrec(5))
    assert len(d.messages) == 1


def test_b2c_handler_that_disconnects_and_raises_is_heard():
    """B: PUBLISH QoS 1 id 5; the handler disconnects and raises.  C: DISCONNECT alone."""
    d = Dialogue()

    def handler(message):
        d.client.disconnect()
        raise HandlerError("application")

    d.client.on_message = handler
    stream = d.stream
    stream.feed(publish(b"t", b"x", 1, 5))
    assert isinstance(error_of(d.client.poll), HandlerError)
    assert stream.is_closed and stream.take() == disconnect()
    d.connect(False)
    d.client.on_message = d.keep
    d.b2c(publish(b"t", b"x", 1, 5, 1))
    d.c2b(puback(5))


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


def test_on_drop_that_publishes_or_polls_gets_a_clear_error_and_breaks_nothing():
    """31-2.4-ID: the queue stays as it was found, no id is used twice.

    C: PUBLISH 1; 2 waits; publish 3 gives up 2; on_drop publishes, polls, subscribes
    """
    for overflow in ("drop_oldest", "latest"):
        d = Dialogue(max_inflight=1, max_mqueue_len=1, overflow=overflow)
        codes = []

        def hook(packet_id, reason, d=d, codes=codes):
            for call in (
                lambda: d.publish(b"in hook", 1),
                lambda: d.publish(b"in hook", 0),
                lambda: d.client.poll(),
                lambda: d.client.subscribe(b"a"),
            ):
                codes.append(code_of(call))

        d.client.on_drop = hook
        assert [d.publish(b"1"), d.publish(b"2")] == [1, 2]
        third = d.publish(b"3")
        assert codes == [BUSY] * 4
        assert (d.client.inflight, d.client.queued) == (1, 1)
        d.client.on_drop = None
        d.b2c(puback(1))
        d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"3", 1, third))


def test_b2c_handler_that_raises_keeps_no_earlier_answer_back():
    """The first message's PUBACK is out before the exception reaches the program."""
    d = Dialogue()

    def handler(message):
        if message.packet_id == 2:
            raise KeyError("second")

    d.client.on_message = handler
    d.stream.feed(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 1, 2))
    assert isinstance(error_of(d.client.poll), KeyError)
    d.c2b(puback(1))
