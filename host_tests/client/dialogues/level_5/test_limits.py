"""What the broker takes at most: the receive maximum, sizes, QoS, retained messages.
MQTT 5 §3.2.2.3, §3.3.4, §4.9."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.dialogues.level_5.opened import allowed, opened
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    connack,
    connect,
    disconnect,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
)
from umqtt31 import PROTOCOL, TOO_LARGE

LEVELS = (5,)


def test_c2b_pubrel_that_went_out_before_its_turn_goes_out_on_the_next_connection():
    """MQTT-4.4.0-1: its PUBCOMP was lost with the connection."""
    d = Dialogue()
    for k in range(1, 5):
        d.publish(b"%d" % k, 2)
    d.b2c(pubrec(1), pubrec(3))
    for _ in range(2):
        d.lose()
        said = connack(0, 1, properties(receive_maximum=1))
        opened(d, d.connect_packet(False), said, False)
        d.c2b(pubrel(1), pubrel(3))
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 1), False)
    d.c2b(pubrel(1), publish(b"t", b"2", 2, 2, 1), pubrel(3), publish(b"t", b"4", 2, 4, 1))
    d.b2c(*[pubrec(k) for k in (2, 4)], *[pubcomp(k) for k in (1, 2, 3, 4)])
    assert d.client.inflight == 0 and d.client.stats.strays == 0


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
    """MQTT-3.3.4-9: QoS 2 counts until its PUBREL; as mosquitto 2.0 sends more at QoS 2, it is
    `max_awaiting_rel` that counts unless `v5.receive_maximum` is set."""
    d = Dialogue(max_awaiting_rel=2)
    d.b2c(publish(b"t", b"1", 2, 1), publish(b"t", b"2", 2, 5))
    d.c2b(pubrec(1), pubrec(5))
    d.stream.feed(publish(b"t", b"3", 2, 9))
    assert code_of(d.work) == PROTOCOL
    d.c2b(disconnect(0x93))
    d.connect(False)
    d.b2c(pubrel(1), pubrel(5), publish(b"t", b"3", 2, 9))
    d.c2b(pubcomp(1), pubcomp(5), pubrec(9))
    assert [message[1] for message in d.messages] == [b"1", b"2", b"3"]


def test_b2c_more_qos1_than_the_receive_maximum_before_an_answer_is_out():
    """MQTT-3.3.4-9: in one piece, or while the stream takes no answer."""
    for count in (1, 3):
        d = Dialogue(max_awaiting_rel=2)
        d.stream.is_blocked = True
        packets = [publish(b"t", b"x", 1, k) for k in (1, 2, 3)]
        for k in range(0, 3, count):
            d.stream.feed(b"".join(packets[k : k + count]))
            if k + count == 3:
                assert code_of(d.work) == PROTOCOL
            else:
                d.work()
        assert d.stream.is_closed and len(d.messages) == 2


def test_b2c_as_many_as_the_receive_maximum_again_and_again_are_taken():
    """MQTT-3.3.4-9."""
    d = Dialogue(max_awaiting_rel=2)
    for k in range(1, 40, 2):
        d.b2c(publish(b"t", b"x", 2, k), publish(b"t", b"y", 1, k + 1))
        d.c2b(pubrec(k), puback(k + 1))
        d.b2c(pubrel(k))
        d.c2b(pubcomp(k))
    assert len(d.messages) == 40


def test_b2c_what_an_earlier_connection_left_counts_no_more():
    """MQTT-3.3.4-9, §4.9: the quota begins anew with each connection."""
    d = Dialogue(max_awaiting_rel=16)
    d.client.v5.receive_maximum = 2
    said = properties(session_expiry=0xFFFFFFFF, receive_maximum=2, maximum_packet_size=256)
    packet = connect(b"dev", 0, 60, level=5, properties=said)
    opened(d, packet, connack(0, 1), False)
    d.b2c(publish(b"t", b"x", 2, 1), publish(b"t", b"x", 2, 2))
    d.lose()
    opened(d, packet, connack(0, 1), False)
    d.b2c(publish(b"t", b"x", 2, 3), publish(b"t", b"x", 2, 4))
    d.c2b(pubrec(3), pubrec(4))
    d.b2c(pubrel(1), pubrel(2), pubrel(3), pubrel(4))
    d.c2b(*[pubcomp(k) for k in (1, 2, 3, 4)])


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


def test_c2b_filters_that_fit_in_no_packet_together_are_sent_again_in_several():
    """MQTT-3.2.2-15: in those of the broker's maximum packet size."""
    d = Dialogue()
    names = [bytes((97 + k,)) * 12 for k in range(3)]
    pairs = [(name, 0) for name in names]
    d.subscribe(subscribe(1, *pairs), suback(1, 0, 0, 0), pairs)
    d.lose()
    said = properties(maximum_packet_size=40)
    opened(d, d.connect_packet(False), connack(0, 0, said), False)
    d.work()
    d.c2b(subscribe(2, *pairs[:2]))
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 1, said), False)
    d.work()
    d.c2b(subscribe(3, *pairs[:2]))
    d.b2c(suback(3, 0, 0))
    d.c2b(subscribe(4, pairs[2]))
    d.b2c(suback(4, 0))
    d.lose()
    opened(d, d.connect_packet(False), connack(0, 1, said), False)
    d.work()
    d.c2b()


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
