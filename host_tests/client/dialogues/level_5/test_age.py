"""Messages that expire: `max_age` of publish(), the Message Expiry Interval on the wire.
MQTT 5 §3.3.2.3.3."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import properties, puback, pubcomp, publish, pubrec, pubrel
from umqtt31 import CLOSED, TIMEOUT
from umqtt31.properties import encode

LEVELS = (5,)


def test_c2b_message_that_waited_says_what_is_left_and_too_old_is_not_sent():
    """MQTT-4.3.3-7."""
    d = Dialogue(overflow="refuse", is_connected=False)
    dropped = d.watch_drops()
    d.publish(b"1", 1, max_age=10)
    d.publish(b"2", 2, max_age=100, properties=encode(content_type="c"))
    d.publish(b"3", 1)
    d.clock.sleep_ms(15500)
    d.connect(False)
    said = properties(message_expiry=85, content_type=b"c")
    d.c2b(publish(b"t", b"2", 2, 2, properties=said), publish(b"t", b"3", 1, 3))
    assert dropped == [(1, TIMEOUT)]


def test_c2b_message_that_goes_out_at_once_says_its_whole_age():
    d = Dialogue(overflow="refuse")
    for qos in (0, 1, 2):
        d.publish(b"x", qos, max_age=86400)
    said = properties(message_expiry=86400)
    d.c2b(*[publish(b"t", b"x", qos, qos, properties=said) for qos in (0, 1, 2)])


def test_c2b_message_behind_the_window_says_what_is_left():
    for store in (None, FailingFlash().journal()):
        d = Dialogue(overflow="refuse", max_inflight=1, store=store)
        d.publish(b"1", 1)
        d.publish(b"2", 1, max_age=60)
        d.work()
        d.stream.take()
        d.wait(20)
        d.b2c(puback(1))
        d.c2b(publish(b"t", b"2", 1, 2, properties=properties(message_expiry=40)))


def test_c2b_message_behind_a_handler_that_takes_long_says_what_is_left_then():
    d = Dialogue(overflow="refuse", max_inflight=1)
    d.client.on_message = lambda message: d.clock.sleep_ms(20_000)
    d.publish(b"1", 1)
    d.publish(b"2", 1, max_age=60)
    d.stream.take()
    d.b2c(puback(1), publish(b"t", b"x", 0))
    d.c2b(publish(b"t", b"2", 1, 2, properties=properties(message_expiry=40)))


def test_c2b_age_is_counted_from_publish_whatever_the_clock_says_then():
    """And whatever message without an age was accepted behind it."""
    for since_start_ms in (0, 2500, 100_000, 500_000_000):
        d = Dialogue(overflow="refuse", is_connected=False, max_mqueue_len=4)
        d.clock.sleep_ms(since_start_ms)
        for age in (3, 86_400, 65_538):
            d.publish(b"%d" % age, 1, max_age=age)
        d.publish(b"0", 1, properties=encode(content_type="c"))
        d.clock.sleep_ms(1800)
        d.connect(False)
        left = [properties(message_expiry=age - 1) for age in (3, 86_400, 65_538)]
        d.c2b(
            publish(b"t", b"3", 1, 1, properties=left[0]),
            publish(b"t", b"86400", 1, 2, properties=left[1]),
            publish(b"t", b"65538", 1, 3, properties=left[2]),
            publish(b"t", b"0", 1, 4, properties=properties(content_type=b"c")),
        )


def test_c2b_age_is_where_it_belongs_in_messages_of_any_length():
    said = properties(message_expiry=9)
    for topic in (b"t", b"t" * 130, b"t" * 300):
        for size in (1, 100, 300):
            d = Dialogue(is_connected=False, buffer_size=700, mqueue_store_qos0=True)
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


def test_c2b_message_sent_again_when_its_age_is_over_says_1_second():
    d = Dialogue(overflow="refuse")
    d.publish(b"1", 1, max_age=60)
    d.lose()
    d.clock.sleep_ms(100_000)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, 1, 1, properties=properties(message_expiry=1)))


def test_c2b_message_sent_again_after_any_number_of_days_says_1_second():
    """MQTT-4.3.3-7: it was sent, so it is sent again, however old."""
    d = Dialogue(overflow="refuse")
    d.publish(b"1", 2, max_age=60)
    d.lose()
    for _ in range(20):
        d.clock.sleep_ms(86400000)
        assert d.client.reconnect() is False
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, 1, properties=properties(message_expiry=1)))


def test_c2b_message_of_an_earlier_life_says_what_was_left_when_it_was_accepted():
    """MQTT-4.6.0-1: nobody knows for how long the power was off."""
    flash = FailingFlash()
    d = Dialogue(overflow="refuse", is_connected=False, store=flash.journal())
    d.publish(b"1", 1, max_age=60, properties=encode(content_type="c"))
    d.publish(b"2", 1)
    d.client.disconnect()
    again = Dialogue(overflow="refuse", is_connected=False, store=flash.journal())
    again.publish(b"3", 1, max_age=30)
    again.clock.sleep_ms(10000)
    again.connect(False)
    again.c2b(
        publish(b"t", b"1", 1, 1, properties=properties(message_expiry=60, content_type=b"c")),
        publish(b"t", b"2", 1, 2),
        publish(b"t", b"3", 1, 3, properties=properties(message_expiry=20)),
    )


def test_b2c_message_that_is_too_old_has_its_flow_completed():
    """MQTT-4.3.3-13, MQTT-4.5.0-2: whatever the handler does with it."""
    d = Dialogue()
    d.b2c(publish(b"t", b"x", 2, 5, properties=properties(message_expiry=1)))
    d.c2b(pubrec(5))
    d.wait(10)
    d.b2c(publish(b"t", b"x", 2, 5, 1, properties=properties(message_expiry=1)))
    d.c2b(pubrec(5))
    d.b2c(pubrel(5))
    d.c2b(pubcomp(5))
    assert len(d.messages) == 1


def test_c2b_qos0_with_an_age_while_offline_is_refused_and_nothing_is_given_up_for_it():
    d = Dialogue(is_connected=False, level=5, max_mqueue_len=1, overflow="drop_oldest")
    dropped = d.watch_drops()
    d.publish(b"kept")
    assert code_of(d.publish, b"lost", 0, max_age=5) == CLOSED
    assert dropped == [] and d.client.queued == 1
