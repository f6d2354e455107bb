"""What the broker takes at most: the receive maximum, sizes, QoS, retained messages.
MQTT 5 §3.2.2.3, §3.3.4, §4.9."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.dialogues.level_5.opened import allowed, opened
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    connack,
    connect,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
)
from umqtt31 import TOO_LARGE

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


def test_c2b_receive_maximum_as_set():
    d = Dialogue(is_connected=False)
    d.client.v5.receive_maximum = 3
    d.client.v5.maximum_packet_size = 100
    said = properties(session_expiry=0, receive_maximum=3, maximum_packet_size=100)
    opened(d, connect(b"dev", 2, 60, level=5, properties=said))
    d.client.v5.receive_maximum = 65536
    assert isinstance(error_of(opened, d, b""), ValueError)


def test_c2b_packet_larger_than_the_broker_takes_is_not_sent():
    """MQTT-3.2.2-15."""
    d = allowed(maximum_packet_size=30)
    assert code_of(d.publish, b"x" * 23) == 0x95
    assert code_of(d.publish, b"x" * 25, 0) == 0x95
    assert code_of(d.publish, b"x" * 300) == TOO_LARGE
    d.publish(b"x" * 22)
    d.publish(b"y" * 24, 0)
    d.c2b(publish(b"t", b"x" * 22, 1, 1), publish(b"t", b"y" * 24))


def test_c2b_subscribe_larger_than_the_broker_takes_is_not_sent():
    """MQTT-3.2.2-15."""
    d = allowed(maximum_packet_size=30, retain_available=0)
    for call in (d.client.subscribe, d.client.unsubscribe):
        assert code_of(call, b"f" * 24) == 0x95
        assert code_of(call, b"f" * 300) == TOO_LARGE
    d.c2b()
    d.subscribe(subscribe(1, (b"f" * 22, 0)), suback(1, 0), b"f" * 22)


def test_c2b_qos_above_the_maximum_is_not_sent():
    """MQTT-3.2.2-11."""
    d = allowed(maximum_qos=1)
    error = error_of(d.publish, b"x", 2)
    assert error.code == 0x9B and "publish with a lower one" in str(error)
    d.publish(b"x", 1)
    d.c2b(publish(b"t", b"x", 1, 1))
    d = allowed(maximum_qos=0)
    assert code_of(d.publish, b"x", 1) == 0x9B
    d.publish(b"x", 0)
    d.c2b(publish(b"t", b"x"))


def test_c2b_retained_message_is_not_sent_where_there_are_none():
    """MQTT-3.2.2-14."""
    d = allowed(retain_available=0)
    assert code_of(d.publish, b"x", 1, retain=True) == 0x9A
    assert code_of(d.publish, b"x", 0, retain=True) == 0x9A
    d.publish(b"x", 1)
    d.c2b(publish(b"t", b"x", 1, 1))


def test_c2b_what_waits_and_the_broker_does_not_take_is_given_up_and_told():
    """MQTT-3.2.2-11, MQTT-3.2.2-14, MQTT-3.2.2-15: accepted before the broker said so."""
    for make, is_present in ((None, 0), (FailingFlash, 0), (None, 1), (FailingFlash, 1)):
        d = Dialogue(
            is_queueing=True, is_connected=False, store=make().journal() if make else None
        )
        dropped = d.watch_drops()
        d.publish(b"1", 1)
        d.publish(b"2", 2)
        d.publish(b"3", 1, retain=True)
        d.publish(b"4" * 50, 1)
        d.publish(b"5", 1)
        said = properties(maximum_qos=1, retain_available=0, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, is_present, said), False)
        d.work()
        d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"5", 1, 5))
        assert dropped == [(2, 0x9B), (3, 0x9A), (4, 0x95)]
        d.b2c(puback(1), puback(5))
        assert d.client.inflight == d.client.queued == 0


def test_c2b_released_message_that_a_new_session_does_not_take_is_given_up_and_told():
    """MQTT-3.2.2-11, MQTT-3.2.2-14: in the session before it would have gone on as PUBREL."""
    for said in (properties(maximum_qos=1), properties(retain_available=0)):
        for is_present in (True, False):
            d = Dialogue(is_queueing=True)
            dropped = d.watch_drops()
            d.publish(b"1", 2, retain=True)
            d.stream.take()
            d.b2c(pubrec(1))
            d.c2b(pubrel(1))
            d.lose()
            opened(d, d.connect_packet(False), connack(0, int(is_present), said), False)
            d.work()
            d.c2b(*[pubrel(1)] * is_present)
            assert len(dropped) == 1 - is_present
