"""Messages that the handler refuses.  MQTT 5 §4.3."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import disconnect, puback, pubcomp, publish, pubrec, pubrel, refused

LEVELS = (5,)


def refusing(d, reasons):
    """The handler refuses messages whose payload is in `reasons`, with the reason there."""

    def handle(message):
        d.keep(message)
        if message.payload in reasons:
            message.refuse(reasons[message.payload])

    d.client.on_message = handle


def test_b2c_message_that_the_handler_refuses_is_answered_with_its_reason():
    """MQTT-4.3.3-9: the id is not held, so that it is another message when it comes again.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5 0x87
    B: PUBLISH QoS 2 id 5, C: PUBREC 5, B: PUBREL 5, C: PUBCOMP 5
    """
    d = Dialogue()
    refusing(d, {b"bad": 0x87})
    d.b2c(publish(b"t", b"bad", 2, 5), publish(b"t", b"good", 2, 5), pubrel(5))
    d.c2b(refused(pubrec, 5, 0x87), pubrec(5), pubcomp(5))
    d.b2c(publish(b"t", b"bad", 1, 6), publish(b"t", b"bad"), publish(b"t", b"good", 1, 7))
    d.c2b(refused(puback, 6, 0x87), puback(7))
    assert len(d.messages) == 5 and d.client.stats.duplicates == 0


def test_b2c_message_refused_behind_a_disconnect_is_answered_by_nothing():
    """It comes again on the next connection."""
    d = Dialogue()

    def handle(message):
        d.client.disconnect()
        message.refuse(0x87)

    d.client.on_message = handle
    d.publish(b"1")
    stream = d.stream
    stream.take()
    stream.feed(publish(b"t", b"bad", 2, 5))
    assert d.client.poll() == 1 and stream.is_closed
    d.c2b(disconnect())
    refusing(d, {})
    d.connect(False)
    d.b2c(publish(b"t", b"bad", 2, 5, dup=1))
    d.c2b(publish(b"t", b"1", 1, 1, dup=1), pubrec(5))


def test_b2c_many_messages_that_are_refused_are_answered_in_their_order():
    """MQTT-4.6.0-2, MQTT-4.6.0-3: whole, however few bytes the stream takes at a time."""
    for write_most in (0, 1, 7):
        for before in range(33):
            d = Dialogue()
            d.stream.write_most = write_most
            refusing(d, {b"bad": 0x99})
            good = [publish(b"t", b"good", 1, k + 1) for k in range(before)]
            bad = [publish(b"t", b"bad", 1 + k % 2, 100 + k) for k in range(12)]
            d.stream.feed(*good, *bad, publish(b"t", b"good", 1, 99))
            for _ in range(400):
                d.client.poll()
            d.c2b(
                *[puback(k + 1) for k in range(before)],
                *[refused((puback, pubrec)[k % 2], 100 + k, 0x99) for k in range(12)],
                puback(99),
            )


def test_b2c_refusal_that_was_not_written_when_the_link_is_lost_changes_nothing():
    """MQTT-4.3.3-6: the PUBREL behind it was never on the wire."""
    d = Dialogue()
    refusing(d, {b"bad": 0x99})
    d.publish(b"1", 2)
    d.stream.take()
    d.stream.is_blocked = True
    d.stream.feed(publish(b"t", b"bad", 1, 0x62), pubrec(1))
    d.client.poll()
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1))


def test_b2c_message_is_refused_with_the_least_and_the_largest_reason():
    for reason in (0x80, 0xFF):
        d = Dialogue()
        refusing(d, {b"bad": reason})
        d.b2c(publish(b"t", b"bad", 1, 6), publish(b"t", b"bad", 2, 7))
        d.c2b(refused(puback, 6, reason), refused(pubrec, 7, reason))


def test_reason_that_refuses_nothing_is_no_reason():
    d = Dialogue()
    errors = []
    for reason in (0, 0x7F, 0x100):
        d.client.on_message = lambda message, reason=reason: errors.append(
            error_of(message.refuse, reason)
        )
        d.b2c(publish(b"t", b"x", 1, 3))
        d.c2b(puback(3))
    assert [isinstance(error, ValueError) for error in errors] == [True] * 3
