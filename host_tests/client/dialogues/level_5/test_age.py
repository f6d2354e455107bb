"""Messages that expire: `max_age` of publish(), the Message Expiry Interval on the wire.
MQTT 5 §3.3.2.3.3."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import properties, puback, publish

LEVELS = (5,)


def test_c2b_message_behind_a_handler_that_takes_long_says_what_is_left_then():
    d = Dialogue(is_queueing=True, max_inflight=1)
    d.client.on_message = lambda message: d.clock.sleep_ms(20_000)
    d.publish(b"1", 1)
    d.publish(b"2", 1, max_age=60)
    d.stream.take()
    d.b2c(puback(1), publish(b"t", b"x", 0))
    d.c2b(publish(b"t", b"2", 1, 2, properties=properties(message_expiry=40)))


def test_c2b_age_is_where_it_belongs_in_messages_of_any_length():
    said = properties(message_expiry=9)
    for topic in (b"t", b"t" * 130, b"t" * 300):
        for size in (1, 100, 300):
            d = Dialogue(
                is_connected=False, buffer_size=700, queue_bytes=2000, mqueue_store_qos0=True
            )
            payload = b"x" * size
            d.publish(payload, 1, topic, max_age=10)
            d.publish(payload, 2, topic, max_age=10, retain=True)
            d.publish(payload, 0, topic, max_age=10, retain=True)
            d.clock.sleep_ms(1000)
            d.connect(False)
            d.c2b(
                publish(topic, payload, 1, 1, properties=said),
                publish(topic, payload, 2, 2, retain=1, properties=said),
                publish(topic, payload, retain=1, properties=said),
            )


def test_c2b_message_sent_again_after_any_number_of_days_says_1_second():
    """MQTT-4.3.3-7: it was sent, so it is sent again, however old."""
    d = Dialogue(is_queueing=True)
    d.publish(b"1", 2, max_age=60)
    d.lose()
    for _ in range(20):
        d.clock.sleep_ms(86400000)
        assert d.client.reconnect() is False
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, 1, properties=properties(message_expiry=1)))
