"""Messages from the broker.  MQTT 3.1 §3.3 to §3.7; MQTT 5 §4.3, §4.6 (receiver)."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import publish, pubrec
from host_tests.standin.store import KeepingStore


# 311-2.3.1-6, 311-3.3.4-1, 311-4.3.2-2, MQTT-2.2.1-5, MQTT-3.3.4-1.
def test_b2c_qos1_is_handed_over_and_answered():
    """31-3.3-QOS1RX, MQTT-4.3.2-4.

    B: PUBLISH QoS 1 id 517
    C: PUBACK 517, once the handler has returned
    """
    d = Dialogue()
    handler = d.client.on_message
    sent = []
    d.client.on_message = lambda message: (sent.append(d.stream.sent), handler(message))
    d.b2c(publish(b"t", b"hi", 1, 517))
    assert sent == [b""]
    d.c2b(b"\x40\x02\x02\x05")
    assert d.messages == [(b"t", b"hi", 1, False, False)]


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
