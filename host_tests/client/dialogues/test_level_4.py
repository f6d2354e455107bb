"""What MQTT 3.1.1 changes on the wire.  MQTT 3.1.1 §3.1, §3.2, §3.9, §4.1, §4.4."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    connack,
    connect,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    read_id,
    suback,
    subscribe,
)
from host_tests.standin.stream import ScriptedStream
from umqtt31 import PROTOCOL, REFUSED_VERSION, MQTTClient, MQTTError

LEVELS = (4,)


def connect_as(client_id, clean, packet):
    """One client in little memory connects -> is this just the packet that it sends?"""
    options = {"buffer_size": len(packet) + 8, "max_inflight": 1, "max_mqueue_len": 0}
    client = MQTTClient(client_id, "broker", level=4, **options)
    stream = ScriptedStream()
    stream.answer(packet, connack())
    client.connect(clean, stream=stream)
    return stream.has_answered()


# 311-3.1.0-1, 311-3.1.2-11.
def test_c2b_connect_carries_mqtt_version_4():
    d = Dialogue(is_connected=False, keepalive=300)
    stream = ScriptedStream()
    stream.answer(b"\x10\x0f\x00\x04MQTT\x04\x02\x01\x2c\x00\x03dev", b"\x20\x02\x00\x00")
    assert d.client.connect(stream=stream) is False
    assert stream.has_answered() and stream.take() == b"" and d.client.is_connected


# 311-3.1.2-9, 311-3.1.3-1.
def test_c2b_connect_with_everything_keeps_the_payload_order():
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", "gone", retain=True, qos=1)
    stream = ScriptedStream()
    stream.answer(
        b"\x10\x23\x00\x04MQTT\x04\xec\x00\x3c"
        b"\x00\x03dev\x00\x03w/t\x00\x04gone\x00\x04zo\xc3\xab\x00\x01s",
        connack(),
    )
    d.client.connect(False, stream=stream)
    assert stream.has_answered()


def test_c2b_kept_connect_when_the_broker_lost_what_was_sent_again_then_publishes_as_new():
    """C: PUBLISH 1; C: PUBLISH 1 DUP; session not present; C: PUBLISH 1"""
    for qos in (1, 2):
        d = Dialogue()
        d.publish(b"1", qos)
        d.lose()
        d.connect(False)
        d.c2b(publish(b"t", b"1", qos, 1, dup=1))
        d.lose()
        d.connect(False, is_present=False)
        d.c2b(publish(b"t", b"1", qos, 1))


# A will of MQTT 3.1.1 is bytes, no longer 7-bit ASCII.
def test_c2b_connect_with_any_bytes_in_the_will_is_valid():
    d = Dialogue(is_connected=False)
    d.client.set_last_will(b"w", b"\x00\x80\xff")
    stream = ScriptedStream()
    stream.answer(connect(b"dev", 0x06, 60, b"w", b"\x00\x80\xff", level=4), connack())
    d.client.connect(stream=stream)
    assert stream.has_answered()


def test_client_id_up_to_65535_bytes_is_taken():
    for client_id in (b"x", b"x" * 23, b"x" * 24, "ë" * 100, b"x" * 65000):
        encoded = client_id.encode() if isinstance(client_id, str) else client_id
        assert connect_as(client_id, False, connect(encoded, 0, 60, level=4))
    assert isinstance(error_of(MQTTClient, b"x" * 65536, "broker", level=4), ValueError)


def test_client_id_at_level_3_has_1_to_23_characters_still():
    for bad in (b"", b"x" * 24):
        assert isinstance(error_of(MQTTClient, bad, "broker", level=3), ValueError)


# 311-3.1.3-7.
def test_client_id_that_is_empty_is_for_clean_sessions_only():
    for empty in (b"", ""):
        assert connect_as(empty, True, connect(b"", 2, 60, level=4))
        client = MQTTClient(empty, "broker", level=4)
        stream = ScriptedStream()
        assert isinstance(error_of(client.connect, False, stream=stream), ValueError)
        assert stream.take() == b"" and not client.is_connected


def test_b2c_session_present_is_what_connect_returns():
    for is_present in (True, False):
        d = Dialogue(is_connected=False)
        d.connect(False, is_present=is_present)


# After a clean session there is nothing that could be present.
# 311-3.2.2-4.
def test_b2c_session_present_after_a_clean_connect_is_a_protocol_error():
    d = Dialogue(is_connected=False)
    stream = ScriptedStream()
    stream.answer(d.connect_packet(True), connack(0, 1))
    assert error_of(d.client.connect, True, stream=stream).code == PROTOCOL
    assert stream.is_closed


# Bits 7 to 1 are reserved and must be 0; a refusal says nothing of a session.
def test_b2c_connack_with_reserved_bits_is_a_protocol_error():
    for flags in (2, 0x80, 0xFF):
        d = Dialogue(is_connected=False)
        stream = ScriptedStream()
        stream.answer(d.connect_packet(False), connack(0, flags))
        assert error_of(d.client.connect, False, stream=stream).code == PROTOCOL
        assert stream.is_closed


def test_b2c_version_refused_then_the_error_says_which_level_to_try():
    for level, other in ((3, "4"), (4, "3")):
        d = Dialogue(is_connected=False, level=level)
        stream = ScriptedStream()
        stream.answer(d.connect_packet(True), connack(REFUSED_VERSION))
        error = error_of(d.client.connect, stream=stream)
        assert isinstance(error, MQTTError) and error.code == REFUSED_VERSION
        assert "level=" + other in str(error)


def subscribed(d, first=1):
    d.subscribe(subscribe(first, (b"a", 1)), suback(first, 1), b"a", 1)


def test_c2b_kept_session_that_is_present_is_not_subscribed_again():
    d = Dialogue()
    subscribed(d)
    for _ in range(2):
        d.lose()
        d.connect(False, is_present=True)
        d.c2b()
    d.lose()
    d.reconnect(False, is_present=True)
    d.c2b()


def test_c2b_session_that_was_lost_is_subscribed_again():
    d = Dialogue()
    subscribed(d)
    d.lose()
    d.reconnect(False, is_present=False)
    d.c2b(subscribe(2, (b"a", 1)))
    d.b2c(suback(2, 1))
    d.lose()
    d.connect(False, is_present=True)
    d.c2b()


# The broker has this session, but not the filter: nobody answered for it.
def test_c2b_subscribe_that_was_not_answered_is_sent_on_a_session_that_is_present():
    d = Dialogue()
    subscribed(d)
    d.stream.answer(subscribe(2, (b"b", 1)), b"")
    assert isinstance(error_of(d.client.subscribe, b"b", 1), MQTTError)
    d.connect(False, is_present=True)
    [packet] = d.take_packets()
    assert packet == subscribe(read_id(packet), (b"b", 1))


def test_c2b_session_that_was_lost_when_in_flight_then_all_goes_out_as_new():
    for qos in (1, 2):
        for is_reconnect in (True, False):
            d = Dialogue()
            dropped = d.watch_drops()
            for payload in (b"1", b"2", b"3"):
                d.publish(payload, qos)
            if qos == 2:
                d.b2c(pubrec(1), pubrec(2))
                d.b2c(pubcomp(1))
            else:
                d.b2c(puback(1))
            d.stream.take()
            d.lose()
            (d.reconnect if is_reconnect else d.connect)(False, is_present=False)
            sent = d.take_publishes()
            assert [(one[0], one[1], one[3]) for one in sent] == [(b"2", qos, 0), (b"3", qos, 0)]
            assert not dropped and d.client.inflight == 2


# 311-2.3.1-3, 311-3.3.1-1, 311-4.1.0-1, 311-4.4.0-1.
def test_c2b_session_that_is_present_when_in_flight_then_goes_on():
    d = Dialogue()
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    d.publish(b"3", 1)
    d.b2c(pubrec(1))
    d.stream.take()
    d.lose()
    d.connect(False, is_present=True)
    sent = d.take_packets()
    assert sent[-2:] == [publish(b"t", b"2", 2, 2, dup=1), publish(b"t", b"3", 1, 3, dup=1)]
    assert sent[:-2] == [pubrel(1)]


def test_b2c_session_that_was_lost_then_held_ids_are_free():
    for is_present, count in ((True, 1), (False, 2)):
        d = Dialogue()
        d.b2c(publish(b"t", b"old", 2, 5))
        d.lose()
        d.connect(False, is_present=is_present)
        d.b2c(publish(b"t", b"new", 2, 5))
        d.c2b(pubrec(5))
        assert len(d.messages) == count


# The same over a reset: the journal's ids and messages are of a session that is gone.
def test_session_that_was_lost_after_a_reset_then_all_begins_anew():
    flash = FailingFlash()
    d = Dialogue(store=flash.journal())
    d.publish(b"1", 2)
    d.publish(b"2", 1)
    d.b2c(pubrec(1), publish(b"t", b"old", 2, 5))
    again = Dialogue(is_connected=False, store=flash.journal())
    again.connect(False, is_present=False)
    sent = again.take_publishes()
    assert [(one[0], one[1], one[3]) for one in sent] == [(b"1", 2, 0), (b"2", 1, 0)]
    again.b2c(publish(b"t", b"new", 2, 5))
    again.c2b(pubrec(5))
    assert [message[1] for message in again.messages] == [b"new"]


# 311-4.3.3-1.
def test_session_that_is_present_after_a_reset_then_all_goes_on():
    flash = FailingFlash()
    d = Dialogue(store=flash.journal())
    d.publish(b"1", 2)
    d.b2c(pubrec(1), publish(b"t", b"old", 2, 5))
    again = Dialogue(is_connected=False, store=flash.journal())
    again.connect(False, is_present=True)
    again.c2b(pubrel(1))
    again.b2c(publish(b"t", b"old", 2, 5, dup=1))
    again.c2b(pubrec(5))
    assert not again.messages


# MQTT 3.1.1 §4.4: a broker that got it answers it; TCP loses nothing.
def test_c2b_nothing_is_sent_again_by_time():
    d = Dialogue(keepalive=0)
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.publish(b"3", 2)
    d.b2c(pubrec(2))
    d.stream.take()
    for _ in range(10):
        d.wait(3600)
    d.c2b()
    assert d.client.is_connected and d.client.inflight == 3


def test_c2b_retry_interval_that_was_given_is_kept_to():
    d = Dialogue(keepalive=0, retry_interval=20)
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.b2c(pubrec(2))
    d.stream.take()
    d.wait(19.999)
    d.c2b()
    d.wait(0.001)
    sent = d.take_packets()
    assert sorted(sent) == sorted([publish(b"t", b"1", 1, 1, dup=1), pubrel(2)])


# 311-2.2.2-1, 311-3.6.1-1.
def test_c2b_pubrel_is_never_marked_dup():
    d = Dialogue()
    d.publish(b"1", 2)
    d.b2c(pubrec(1))
    d.stream.take()
    for _ in range(3):
        d.lose()
        d.connect(False, is_present=True)
        d.c2b(pubrel(1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


# 311-4.6.0-4.
def test_c2b_pubrels_leave_in_the_order_of_the_pubrecs():
    d = Dialogue()
    for payload in (b"1", b"2", b"3"):
        d.publish(payload, 2)
    d.stream.take()
    d.b2c(pubrec(2), pubrec(3), pubrec(1))
    d.c2b(pubrel(2), pubrel(3), pubrel(1))
    d.b2c(pubcomp(1), pubcomp(2), pubcomp(3))
    assert d.client.inflight == 0


# 311-3.8.1-1.
def test_c2b_subscribe_is_never_marked_dup():
    d = Dialogue(keepalive=0, retry_interval=20, connect_timeout=60)
    subscribed(d)
    d.lose()
    d.connect(False, is_present=False)
    d.wait(20)
    d.wait(40)
    packets = d.take_packets()
    assert packets
    for packet in packets:
        assert packet == subscribe(read_id(packet), (b"a", 1))


# 311-3.9.3-1.
def test_b2c_refused_filter_raises_and_is_not_remembered():
    d = Dialogue()
    d.stream.answer(subscribe(1, (b"secret", 1)), suback(1, 0x80))
    assert isinstance(error_of(d.client.subscribe, b"secret", 1), MQTTError)
    d.lose()
    d.connect(False, is_present=False)
    d.c2b()


def test_b2c_refused_filter_between_others_leaves_the_others():
    """311-3.9.3-1: where the session goes on nothing is asked again, else what was granted."""
    d = Dialogue()
    pairs = [(b"a", 1), (b"secret", 1), (b"c", 0)]
    error = error_of(d.subscribe, subscribe(1, *pairs), suback(1, 1, 0x80, 0), pairs)
    assert isinstance(error, MQTTError) and "secret" in str(error)
    d.stream.take()
    d.connect(False)
    d.c2b()
    d.connect(False, is_present=False)
    first = read_id(d.stream.sent)
    d.c2b(subscribe(first, (b"a", 1)))
    d.b2c(suback(first, 1))
    d.c2b(subscribe(first + 1, (b"c", 0)))


def test_c2b_session_after_a_clean_one_is_another_whatever_the_broker_says():
    """A CONNECT that was under way for long made it: it knows no filter of this client's."""
    d = Dialogue(clean=True)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.publish(b"x", 1)
    d.take_packets()
    d.lose()
    stream = d.new_stream(False, True)
    assert d.client.connect(False, stream=stream) is False
    d.stream = stream
    d.work()
    d.c2b(subscribe(3, (b"a", 1)), publish(b"t", b"x", 1, 2))
