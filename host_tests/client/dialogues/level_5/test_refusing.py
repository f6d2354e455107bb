"""Messages that the handler refuses.  MQTT 5 §4.3."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import puback, publish, pubrec, refused

LEVELS = (5,)


def refusing(d, reasons):
    """The handler refuses messages whose payload is in `reasons`, with the reason there."""

    def handle(message):
        d.keep(message)
        if message.payload in reasons:
            message.refuse(reasons[message.payload])

    d.client.on_message = handle


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
