"""Reasons in answers, in DISCONNECT, and AUTH, which is refused.  MQTT 5 §3.4 to §3.7, §3.14,
§4.13."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    connack,
    disconnect,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
)
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, PROTOCOL, MQTTError
from umqtt31.properties import encode

LEVELS = (5,)


def test_b2c_puback_that_refuses_ends_the_flow_and_is_told():
    """MQTT-4.4.0-2, MQTT-4.3.2-3."""
    d = Dialogue(is_queueing=True)
    dropped = d.watch_drops()
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.stream.take()
    d.b2c(puback(1, 0x97, properties(reason_string=b"full")), puback(2, 0x10))
    assert dropped == [(1, 0x97)] and d.client.inflight == 0
    assert d.client.v5.reason == 0x97 and d.client.stats.dropped == 1
    d.lose()
    d.connect(False)
    d.c2b()


def test_b2c_refusal_before_a_handler_that_raises_or_publishes_is_told():
    """MQTT-4.3.3-5."""

    def fail(message):
        raise KeyError

    oversize = publish(b"t", b"x" * 300, 1, 8)
    for answered in ((), (publish(b"t", b"x", 1, 7),)):
        for last in (publish(b"t", b"y"), oversize):
            d = Dialogue(is_queueing=True)
            dropped = d.watch_drops()
            d.publish(b"1")
            d.client.on_message = lambda message: message.payload == b"y" and fail(message)
            d.stream.feed(puback(1, 0x97), *answered, last)
            error_of(d.client.poll)
            assert dropped == [(1, 0x97)]
        d = Dialogue(is_queueing=True)
        dropped = d.watch_drops()
        d.publish(b"1")
        d.client.on_message = lambda message, d=d: d.publish(b"z" * 200, 0)
        d.b2c(puback(1, 0x97), *answered, publish(b"t", b"y"))
        assert dropped == [(1, 0x97)]


def test_b2c_pubrec_that_refuses_ends_the_flow_and_frees_the_id():
    """MQTT-4.3.3-4, MQTT-4.3.3-5, MQTT-4.4.0-2."""
    for store in (None, FailingFlash().journal()):
        d = Dialogue(is_queueing=True, max_inflight=2, store=store)
        dropped = d.watch_drops()
        for k in (b"1", b"2", b"3"):
            d.publish(k, 2)
        d.work()
        d.stream.take()
        d.b2c(pubrec(2, 0x87), pubrec(1))
        d.c2b(pubrel(1), publish(b"t", b"3", 2, 3))
        assert dropped == [(2, 0x87)] and d.client.inflight == 2
        d.b2c(pubrec(2), pubcomp(1), pubrec(3), pubcomp(3))
        assert d.client.inflight == 0 and len(dropped) == 1


def test_b2c_refused_when_the_connection_is_lost_at_once_then_is_not_sent_again():
    """MQTT-4.4.0-2: what the answer said holds, whatever comes between."""
    d = Dialogue(is_queueing=True)
    dropped = d.watch_drops()
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.stream.feed(puback(1, 0x80), OSError(104))
    assert isinstance(error_of(d.work), MQTTError)
    d.connect(False)
    d.work()
    d.c2b(publish(b"t", b"2", 1, 2, dup=1))
    assert dropped == [(1, 0x80)]


def test_b2c_refused_when_the_connection_is_lost_at_once_then_a_clean_one_tells_that_reason():
    d = Dialogue(is_queueing=True)
    dropped = d.watch_drops()
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.stream.feed(puback(1, 0x97), b"")
    assert code_of(d.work) == CLOSED
    d.connect(True)
    assert dropped == [(1, 0x97), (2, CLOSED)]


def test_b2c_refusal_followed_by_what_only_a_client_sends_is_told_all_the_same():
    """CONNECT, with the flags and the id that the refused message waits with."""
    for qos, first in ((1, 0x40), (2, 0x50)):
        for malformed in (0x10, 0x18):
            d = Dialogue(is_queueing=True)
            dropped = d.watch_drops()
            d.publish(b"1", qos)
            d.stream.feed(bytes((first, 3, 0, 1, 0x97, malformed, 2, 0, 1)))
            assert code_of(d.work) == PROTOCOL, hex(malformed)
            d.connect(False)
            d.work()
            assert dropped == [(1, 0x97)], hex(malformed)


def test_on_drop_that_raises_leaves_the_rest_to_the_next_poll():
    d = Dialogue(is_queueing=True)
    dropped = d.watch_drops()
    told = d.client.on_drop

    def raise_once(packet_id, reason):
        told(packet_id, reason)
        if packet_id == 1:
            raise KeyError

    d.client.on_drop = raise_once
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.stream.feed(puback(1, 0x80), puback(2, 0x80))
    assert isinstance(error_of(d.work), KeyError)
    d.work()
    assert dropped == [(1, 0x80), (2, 0x80)] and d.client.inflight == 0


def test_b2c_answers_with_properties_are_read_and_malformed_ones_end_the_connection():
    """MQTT-4.13.1-1, MQTT-2.1.3-1."""
    said = properties(reason_string=b"why", user_property=[(b"k", b"v")])
    d = Dialogue()
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.b2c(puback(1, 0, said), pubrec(2, 0, said), pubcomp(2, 0x92, said))
    assert d.client.inflight == 0
    d.b2c(publish(b"t", b"x", 2, 5), pubrel(5, 0, 0, said))
    for bad, reason in (
        (b"\x40\x04\x00\x01\x00\x01", 0x81),
        (b"\x40\x05\x00\x01\x00\x00\x00", 0x81),
        (b"\x40\x06\x00\x01\x00\x02\x01\x01", 0x81),
        (b"\x50\x01\x00", 0x81),
        (b"\x42\x02\x00\x01", 0x81),
        (b"\x60\x02\x00\x01", 0x81),
        (b"\x91\x04\x00\x01\x00\x00", 0x81),
        (b"\xd0\x01\x00", 0x81),
        (b"\xd1\x00", 0x81),
        (b"\x20\x03\x00\x00\x00", 0x82),
        (b"\x10\x02\x00\x01", 0x82),
        (b"\xa2\x02\x00\x01", 0x81),
    ):
        d = Dialogue()
        d.stream.feed(bad)
        assert code_of(d.work) == PROTOCOL, bad
        d.c2b(disconnect(reason))


def test_b2c_disconnect_tells_its_reason():
    """MQTT-4.13.2-1, MQTT-3.14.4-1, MQTT-3.14.4-2."""
    for reason, code in ((0x8E, 0x8E), (0x8B, 0x8B), (0x9C, 0x9C), (0, CLOSED), (4, CLOSED)):
        d = Dialogue()
        d.publish(b"1", 1)
        d.stream.take()
        said = properties(reason_string=b"why", server_reference=b"h")
        d.stream.feed(disconnect(reason, said))
        assert code_of(d.work) == code
        assert d.stream.is_closed and d.client.v5.reason == reason
        assert d.client.v5.disconnect.reason_string == b"why"
        assert d.client.v5.disconnect.server_reference == b"h"
        d.c2b()
        d.reconnect(False)
        d.c2b(publish(b"t", b"1", 1, 1, dup=1))


def test_b2c_disconnect_in_all_its_forms():
    long = properties(reason_string=b"r" * 200)
    for form, code in (
        (b"\xe0\x00", CLOSED),
        (b"\xe0\x01\x80", 0x80),
        (b"\xe0\x02\x8d\x00", 0x8D),
        (disconnect(0x81, long), 0x81),
        (b"\xe0\x02\x80\x01", PROTOCOL),
        (b"\xe0\x03\x80\x00\x00", PROTOCOL),
        (b"\xe0\x07\x80\x05\x11\x00\x00\x00\x01", PROTOCOL),
        (b"\xe1\x00", PROTOCOL),
    ):
        d = Dialogue()
        d.stream.feed(form)
        assert code_of(d.work) == code, form
    d = Dialogue()
    d.stream.feed(disconnect(0x81, long))
    assert code_of(d.work) == 0x81
    assert d.client.v5.disconnect.reason_string == b"r" * 200


def test_b2c_disconnect_with_properties_of_any_length_is_read():
    """MQTT-1.5.5-1: their length takes one byte or two."""
    for n in (122, 123, 124, 125, 126, 252, 253, 300):
        d = Dialogue(buffer_size=512)
        d.stream.feed(disconnect(0x81, properties(reason_string=b"r" * n)))
        assert code_of(d.work) == 0x81, n
        assert d.client.v5.disconnect.reason_string == b"r" * n


def test_b2c_auth_is_refused():
    """MQTT-4.12.0-6, MQTT-4.12.0-7."""
    for packet in (b"\xf0\x02\x18\x00", b"\xf0\x00", b"\xf0\x01\x18"):
        d = Dialogue()
        d.stream.feed(packet)
        assert code_of(d.work) == PROTOCOL
        d.c2b(disconnect(0x82))
    assert isinstance(error_of(encode, authentication_method="SCRAM"), ValueError)


def test_c2b_disconnect_that_cannot_be_written_is_told_by_name_and_closes():
    for name, bad in (
        ("leave_reason", "4"),
        ("leave_reason", None),
        ("leave_reason", 256),
        ("leave_reason", -1),
        ("properties", "4"),
        ("properties", encode(server_keep_alive=5)),
    ):
        d = Dialogue()
        setattr(d.client.v5, name if name == "leave_reason" else "leave_properties", bad)
        error = error_of(d.client.disconnect)
        kind = TypeError if name == "leave_reason" and not isinstance(bad, int) else ValueError
        assert isinstance(error, kind) and name in str(error), (bad, error)
        assert d.stream.is_closed and not d.client.is_connected


def test_c2b_disconnect_gives_no_expiry_to_a_session_that_has_none():
    """MQTT 5 §3.14.2.2.2: a protocol error, after which brokers publish the will."""
    for expiry, given in ((0, 1), (0, 0xFFFFFFFF), (0, 0), (5, 60)):
        d = Dialogue(is_connected=False)
        d.client.v5.session_expiry = expiry
        d.stream = ScriptedStream()
        d.stream.feed(connack())
        d.client.connect(False, d.stream)
        d.stream.take()
        d.client.v5.session_expiry = 60  # of the next connection
        d.client.v5.leave_properties = encode(session_expiry_interval=given)
        if given and not expiry:
            error = error_of(d.client.disconnect)
            assert isinstance(error, ValueError) and "leave_properties" in str(error)
            d.c2b()
        else:
            d.client.disconnect()
            d.c2b(disconnect(0, properties(session_expiry=given)))
        assert d.stream.is_closed
