"""Window, queue and what is given up, with the heap locked from `connect()` on.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

from host_tests.client import wire
from host_tests.client.locked.bench import PAYLOAD, TOPIC, Bench, locked, poll_all
from umqtt31 import FULL, TIMEOUT


def test_window_and_queue():
    b = Bench(max_inflight=2, max_mqueue_len=4)
    client, stream = b.client, b.stream
    answers = [wire.puback(k) for k in range(1, 7)]
    with locked:
        for _ in range(6):
            client.publish(TOPIC, PAYLOAD, qos=1)
        for answer in answers:
            stream.feed(answer)
            poll_all(client)
    assert client.inflight == client.queued == 0
    b.expect(*[wire.publish(TOPIC, PAYLOAD, 1, k) for k in range(1, 7)])


def test_overflow_drop_oldest():
    b = Bench(max_inflight=1, max_mqueue_len=2, overflow="drop_oldest")
    client = b.client
    with locked:
        for _ in range(5):
            client.publish(TOPIC, PAYLOAD, qos=1)
    assert client.stats.dropped == 2 and (b.handler.dropped, b.handler.reason) == (3, FULL)


def test_overflow_latest():
    b = Bench(max_inflight=1, max_mqueue_len=2, overflow="latest")
    client = b.client
    with locked:
        client.publish(b"other", PAYLOAD, qos=1)
        client.publish(b"other", PAYLOAD, qos=1)
        for _ in range(3):
            client.publish(TOPIC, PAYLOAD, qos=2)
    assert client.stats.dropped == 2 and (b.handler.dropped, b.handler.reason) == (4, FULL)


def test_messages_too_old():
    b = Bench(max_inflight=1, keepalive=0, overflow="refuse")
    client = b.client
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=1, max_age=5)
        client.next_due_ms()
        b.pass_ms(5000)
        client.poll()
    assert client.queued == 0 and (b.handler.dropped, b.handler.reason) == (2, TIMEOUT)


def test_full_ring_is_squeezed_around_its_end():
    b = Bench(max_inflight=2, max_mqueue_len=40, queue_bytes=512, overflow="drop_oldest")
    client, stream = b.client, b.stream
    payloads = [b"x" * (k * 37 % 90) for k in range(60)]
    answers = [wire.puback(k + 1) for k in range(60)]
    with locked:
        for k in range(60):
            client.publish(TOPIC, payloads[k], qos=1, max_age=1 + k)
            if k % 9 == 8:
                stream.feed(answers[k // 9])
            b.pass_ms(100)
            poll_all(client)
    assert client.stats.dropped > 20 and b.handler.reason == FULL and client.inflight == 2


def test_stored_qos_0():
    b = Bench(mqueue_store_qos0=True)
    client, stream = b.client, b.stream
    stream.room = 3
    with locked:
        client.publish(TOPIC, PAYLOAD)
        client.publish(TOPIC, PAYLOAD, max_age=9)
        client.publish(TOPIC, PAYLOAD)
        stream.room = 1000
        poll_all(client)
        poll_all(client)
    said = wire.properties(message_expiry=9) if client.level == 5 else b""
    plain = wire.publish(TOPIC, PAYLOAD)
    b.expect(plain, wire.publish(TOPIC, PAYLOAD, properties=said), plain)


def test_any_number_of_places():
    for window in (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33):
        b = Bench(max_inflight=window, max_mqueue_len=0, max_awaiting_rel=window)
        client, stream = b.client, b.stream
        answers = b"".join([wire.puback(k) for k in range(window, 0, -1)])
        incoming = b"".join([wire.publish(b"t", b"x", 2, k + 1) for k in range(window)])
        client.on_message = None
        with locked:
            for _ in range(window):
                client.publish(b"t", b"x", qos=1)
            stream.feed(answers)
            stream.feed(incoming)
            poll_all(client)
        assert client.inflight == 0 and client.stats.refused == 0


def test_ordered_publishing():
    b = Bench(ordered=True)
    client, stream = b.client, b.stream
    answers = wire.puback(1) + wire.puback(2)
    with locked:
        client.publish(TOPIC, PAYLOAD, qos=1)
        client.publish(TOPIC, PAYLOAD, qos=1)
        stream.feed(answers)
        poll_all(client)
        poll_all(client)
    sent = b.stream.take()
    assert sent == wire.publish(TOPIC, PAYLOAD, 1, 1) + wire.publish(TOPIC, PAYLOAD, 1, 2)
