"""What the scripts of level 5 cannot say: every number of answers, what is the same object."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import properties, puback, pubcomp, publish, pubrec, pubrel, refused

LEVELS = (5,)


def test_b2c_many_messages_that_are_refused_are_answered_in_their_order():
    """MQTT-4.6.0-2, MQTT-4.6.0-3: whole, however few bytes the stream takes at a time."""
    for write_most in (0, 1, 7):
        for before in range(33):
            d = Dialogue()
            d.stream.write_most = write_most
            d.client.on_message = lambda m: m.payload == b"bad" and m.refuse(0x99)
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


def test_first_messages_make_no_attribute():
    """With the heap locked there may be no room for one."""
    d = Dialogue(is_connected=False)
    d.client.v5.topic_aliases = 2
    d.connect(False, False, properties(topic_alias_maximum=10))
    names = set(d.client.__dict__)
    for _ in range(2):
        d.client.publish(b"long/a", b"x", qos=1, properties=None)
    assert set(d.client.__dict__) == names


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
