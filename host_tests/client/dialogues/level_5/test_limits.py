"""What the broker takes at most: the receive maximum, sizes, QoS, retained messages.
MQTT 5 §3.2.2.3, §3.3.4, §4.9."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.dialogues.level_5.opened import allowed, opened
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    connack,
    connect,
    disconnect,
    pingreq,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
)
from host_tests.standin.store import KeepingStore
from umqtt31 import AWAITING_REL, TOO_LARGE

LEVELS = (5,)


def test_c2b_receive_maximum_of_the_broker_bounds_the_window_of_this_connection():
    """MQTT-3.3.4-7, MQTT-4.9.0-1, MQTT-4.9.0-2, MQTT-4.6-RM1."""
    d = allowed(receive_maximum=2)
    for k in range(1, 6):
        d.publish(b"%d" % k, 1 + k % 2)
    d.c2b(publish(b"t", b"1", 2, 1), publish(b"t", b"2", 1, 2))
    assert d.client.inflight == 2 and d.client.queued == 3
    d.publish(b"0", 0)
    d.c2b(publish(b"t", b"0"))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(puback(2))
    d.c2b(publish(b"t", b"3", 2, 3))
    d.b2c(pubcomp(1))
    d.c2b(publish(b"t", b"4", 1, 4))
    d.connect(False)
    d.c2b(
        publish(b"t", b"3", 2, 3, 1),
        publish(b"t", b"4", 1, 4, 1),
        publish(b"t", b"5", 2, 5),
    )


def test_c2b_receive_maximum_of_the_next_connection_holds_for_what_is_sent_again():
    """MQTT-3.3.4-7, MQTT-4.6.0-1, MQTT-4.9.0-2: also less than what was in flight."""
    d = Dialogue()
    for k in range(1, 5):
        d.publish(b"%d" % k, 1)
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 1, properties(receive_maximum=1)), False)
    for k in range(1, 5):
        d.c2b(publish(b"t", b"%d" % k, 1, k, dup=1))
        d.b2c(puback(k))
    assert d.client.inflight == 0


def test_c2b_without_quota_all_other_packets_are_read_and_answered():
    """MQTT-4.9.0-3."""
    d = allowed(receive_maximum=1)
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.c2b(publish(b"t", b"1", 1, 1))
    d.b2c(publish(b"t", b"x", 1, 7), publish(b"t", b"x", 2, 8), pubrel(8))
    d.c2b(puback(7), pubrec(8), pubcomp(8))
    d.subscribe(subscribe(3, (b"a", 1)), suback(3, 1), b"a", 1)
    d.publish(b"0", 0)
    d.client.ping()
    d.c2b(publish(b"t", b"0"), pingreq())
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"2", 1, 2))


def test_c2b_pubrels_wait_for_no_window():
    """MQTT-3.3.4-8, MQTT-4.9.0-3, MQTT-4.6.0-4."""
    d = Dialogue()
    for k in range(1, 5):
        d.publish(b"%d" % k, 2)
    d.b2c(pubrec(2), pubrec(4))
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 1, properties(receive_maximum=1)), False)
    d.c2b(pubrel(2), pubrel(4))
    d.b2c(pubcomp(2), pubcomp(4))
    d.c2b(publish(b"t", b"1", 2, 1, dup=1))
    d.b2c(pubrec(1), pubcomp(1))
    d.c2b(pubrel(1), publish(b"t", b"3", 2, 3, dup=1))


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


def test_b2c_more_than_the_receive_maximum_ends_the_connection_with_its_reason():
    """MQTT-3.3.4-9."""
    d = Dialogue(max_awaiting_rel=2)
    d.b2c(*[publish(b"t", b"x", 2, k) for k in (1, 5, 9)])
    d.c2b(pubrec(1), pubrec(5))
    d.stream.feed(pubrel(1), pubrel(5))
    assert code_of(d.work) == AWAITING_REL
    d.c2b(pubcomp(1), pubcomp(5), disconnect(0x93))


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


def test_c2b_filter_larger_than_the_broker_takes_by_now_is_not_sent_again():
    """MQTT-3.2.2-15.

    C: SUBSCRIBE 1 ("f" * 30), 2 ("g"), 3 ("h" * 30)
    B: CONNACK (maximum packet size 30); C: SUBSCRIBE 4 ("g"); B: SUBACK 4
    B: CONNACK; C: SUBSCRIBE 5 to 7, all three
    """
    d = Dialogue()
    names = (b"f" * 30, b"g", b"h" * 30)
    for number, name in enumerate(names, 1):
        d.subscribe(subscribe(number, (name, 0)), suback(number, 0), name)
    d.lose()
    said = properties(maximum_packet_size=30)
    opened(d, d.connect_packet(False), connack(0, 0, said), False)
    d.work()
    d.c2b(subscribe(4, (b"g", 0)))
    d.b2c(suback(4, 0))
    d.c2b()
    assert d.client.v5.reason == 0x95
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 0), False)
    for number, name in enumerate(names, 5):
        d.work()
        d.c2b(subscribe(number, (name, 0)))
        d.b2c(suback(number, 0))


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
        d = Dialogue(is_connected=False, store=make().journal() if make else None)
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


def test_c2b_released_before_a_reset_goes_on_whatever_the_broker_takes_by_now():
    """MQTT-3.3.4-8: only its PUBREL is left, which no window holds back.

    C: PUBLISH 1, 2, 3; B: PUBREC 3; reset; CONNECT; C: PUBREL 3
    """
    for said in (properties(receive_maximum=1), properties(maximum_qos=1)):
        store = KeepingStore()
        d = Dialogue(store=store)
        for number in (1, 2, 3):
            d.publish(b"%d" % number, 2)
        d.b2c(pubrec(3))
        d = Dialogue(is_connected=False, store=store)
        opened(d, d.connect_packet(False), connack(0, 1, said), False)
        d.work()
        assert d.take_packets()[0] == pubrel(3)
        d.b2c(pubcomp(3))
        assert d.client.stats.strays == 0


def test_c2b_new_session_with_a_smaller_window_gets_all_in_their_order():
    """MQTT-4.6.0-1: what was released in the session before is a message again."""
    d = Dialogue()
    for number in (1, 2, 3):
        d.publish(b"%d" % number, 2)
    d.b2c(pubrec(3))
    d.stream.take()
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 0, properties(receive_maximum=2)), False)
    d.work()
    d.c2b(publish(b"t", b"1", 2, 1), publish(b"t", b"2", 2, 2))


def test_c2b_released_message_that_a_new_session_does_not_take_is_given_up_and_told():
    """MQTT-3.2.2-11, MQTT-3.2.2-14: in the session before it would have gone on as PUBREL."""
    for said in (properties(maximum_qos=1), properties(retain_available=0)):
        for is_present in (True, False):
            d = Dialogue()
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
