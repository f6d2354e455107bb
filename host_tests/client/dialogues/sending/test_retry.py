"""Sending again after a time-out and on a new connection.  MQTT 3.1 §4.2."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import (
    puback,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
    unsuback,
    unsubscribe,
)

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_c2b_only_four_kinds_of_packets_are_ever_sent_again",
    "test_c2b_reconnect_sends_everything_in_flight_again_in_order",
)


def test_c2b_only_four_kinds_of_packets_are_ever_sent_again():
    """RT-OBJECTS, 31-2.1-DUP, 31-4.1-Q0: and PUBREL; at level 3 UNSUBSCRIBE as well.

    C: SUBSCRIBE 1 (30 s) SUBSCRIBE 1 DUP, B: SUBACK 1
    C: UNSUBSCRIBE 2 (30 s) UNSUBSCRIBE 2 DUP, B: UNSUBACK 2
    C: PUBLISH QoS 0, PUBLISH QoS 1 id 3, QoS 2 id 4; B: PUBLISH QoS 1, QoS 2, PUBREL
    C: PUBACK, PUBREC, PUBCOMP, PINGREQ
       (30 s)
    C: PUBLISH 3 DUP, PUBLISH 4 DUP, and nothing else
    """
    d = Dialogue(connect_timeout=3600, keepalive=0)
    d.clock.sleep_ms = lambda ms: _sleep_a_second(d.clock)
    d.stream.answer(subscribe(1, (b"a", 1)) + subscribe(1, (b"a", 1), dup=1), suback(1, 1))
    assert d.client.subscribe(b"a", 1) == [1]
    d.stream.answer(unsubscribe(2, b"a") + unsubscribe(2, b"a", dup=1), unsuback(2))
    d.client.unsubscribe(b"a")
    d.c2b()
    d.publish(b"0", 0)
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.b2c(publish(b"t", b"x", 1, 7), publish(b"t", b"x", 2, 8), pubrel(8))
    d.client.ping()
    d.stream.take()
    d.b2c(b"\xd0\x00")
    d.wait(30)
    d.c2b(publish(b"t", b"1", 1, 3, dup=1), publish(b"t", b"2", 2, 4, dup=1))


def _sleep_a_second(clock):
    clock.now_ms += 1000


# 311-4.4.0-1, 311-4.6.0-1.
def test_c2b_reconnect_sends_everything_in_flight_again_in_order():
    """31-4.2-RECONNECT, 31-4.1-Q1, 31-4.1-Q2, MQTT-4.6.0-1.

    C: PUBLISH QoS 1 id 1, QoS 2 id 2, QoS 1 id 3, QoS 2 id 4; B: PUBREC 2, PUBACK 3
       connection lost, CONNECT
    C: PUBLISH 1 DUP, PUBREL 2, PUBLISH 4 DUP
    """
    d = Dialogue()
    for qos in (1, 2, 1, 2):
        d.publish(b"x", qos)
    d.b2c(pubrec(2), puback(3))
    d.lose()
    d.connect(False)
    sent = d.stream.take()
    assert sent.count(pubrel(2, dup=1)) == 1
    rest = sent.replace(pubrel(2, dup=1), b"")
    assert rest == publish(b"t", b"x", 1, 1, dup=1) + publish(b"t", b"x", 2, 4, dup=1)


def test_c2b_half_a_publish_is_sent_whole_again_on_the_new_connection():
    """31-4.2-RECONNECT: nothing of the old half leaks into the new stream.

    C: half of PUBLISH 1; connection lost; CONNECT, PUBLISH 1 DUP
    """
    d = Dialogue()
    d.stream.write_most = 4
    d.publish(b"0123456789")
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"0123456789", 1, 1, dup=1))
    d.b2c(puback(1))
    assert d.client.inflight == 0
