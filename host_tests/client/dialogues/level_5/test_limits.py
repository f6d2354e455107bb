"""What the broker takes at most: the receive maximum, sizes, QoS, retained messages.
MQTT 5 §3.2.2.3, §3.3.4, §4.9."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import pubcomp, publish, pubrec, pubrel

LEVELS = (5,)


def test_b2c_receive_maximum_of_the_client_is_what_surely_finds_its_place():
    """MQTT-4.9.0-1: with ids as far apart as can be, in RAM and on flash."""
    for store, most in ((None, 15), (FailingFlash().journal(), 7)):
        d = Dialogue(store=store)
        ids = [1 + 4000 * k for k in range(most)]
        d.b2c(*[publish(b"t", b"x", 2, k) for k in ids])
        d.c2b(*[pubrec(k) for k in ids])
        assert len(d.messages) == most and d.client.stats.refused == 0
        d.b2c(*[pubrel(k) for k in reversed(ids)])
        d.c2b(*[pubcomp(k) for k in reversed(ids)])
