"""What MQTT 5 changes on the wire: connecting, reasons, limits.  MQTT 5 §3, §4."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    asked,
    connack,
    connect,
    disconnect,
    packet,
    pingreq,
    properties,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
    unsuback,
    unsubscribe,
)
from tools.standin.stream import ScriptedStream
from umqtt31 import (
    AWAITING_REL,
    CLOSED,
    NETWORK,
    PROTOCOL,
    REFUSED_CLIENT_ID,
    REFUSED_CREDENTIALS,
    REFUSED_FILTER,
    REFUSED_NOT_AUTHORIZED,
    REFUSED_UNAVAILABLE,
    REFUSED_VERSION,
    TIMEOUT,
    TOO_LARGE,
    MQTTClient,
    MQTTError,
)
from umqtt31.properties import encode
from umqtt31.v5 import NO_LOCAL, NO_RETAINED, RETAIN_AS_PUBLISHED, RETAINED_IF_NEW

LEVELS = (5,)


def opened(d, packet, reply=None, clean=True):
    """The client connects with just this CONNECT -> session present."""
    d.stream = ScriptedStream()
    d.stream.answer(packet, reply or connack())
    is_present = d.client.connect(clean, stream=d.stream)
    assert d.stream.has_answered()
    return is_present


def allowed(is_present=False, clean=True, **said):
    """A client whose broker says this in CONNACK."""
    options = said.pop("options", {})
    d = Dialogue(is_connected=False, **options)
    opened(d, d.connect_packet(clean), connack(0, int(is_present), properties(**said)), clean)
    return d


# --- CONNECT ----------------------------------------------------------------------------


def test_c2b_connect_carries_version_5_and_its_properties():
    """MQTT-3.1.0-1, MQTT-3.1.2-1, MQTT-2.2.2-1, MQTT-3.1.3-3."""
    d = Dialogue(is_connected=False, keepalive=300)
    opened(
        d,
        b"\x10\x1d\x00\x04MQTT\x05\x02\x01\x2c"
        b"\x0d\x11\x00\x00\x00\x00\x21\x00\x24\x27\x00\x00\x01\x00"
        b"\x00\x03dev",
        b"\x20\x03\x00\x00\x00",
    )
    assert d.client.is_connected
    d.c2b()


def test_c2b_connect_that_keeps_its_session_keeps_it_for_ever_unless_told():
    """MQTT-3.1.2-23."""
    for given, clean, seconds in ((None, False, 0xFFFFFFFF), (60, False, 60), (60, True, 60)):
        d = Dialogue(is_connected=False)
        d.client.v5.session_expiry = given
        said = properties(session_expiry=seconds, receive_maximum=36, maximum_packet_size=256)
        opened(d, connect(b"dev", 2 if clean else 0, 60, level=5, properties=said), clean=clean)


def test_c2b_connect_with_everything_keeps_the_payload_order():
    """MQTT-3.1.3-1, MQTT-3.1.2-9, MQTT-3.1.2-17, MQTT-3.1.2-19."""
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", b"\x00\xff", retain=True, qos=1)
    d.client.v5.will_properties = encode(will_delay_interval=5, content_type="c")
    d.client.v5.properties = encode(request_problem_information=0, user_property=(("k", "v"),))
    said = asked(False)[1:] + b"\x17\x00\x26\x00\x01k\x00\x01v"
    opened(
        d,
        connect(
            b"dev",
            0xEC,
            60,
            b"w/t",
            b"\x00\xff",
            "zoë".encode(),
            b"s",
            level=5,
            properties=bytes((len(said),)) + said,
            will_properties=properties(will_delay=5, content_type=b"c"),
        ),
        clean=False,
    )


def test_c2b_connect_with_a_password_alone_is_valid():
    """MQTT-3.1.2-16, MQTT-3.1.2-19: from level 5 on a password needs no user name."""
    d = Dialogue(is_connected=False, password=b"token")
    opened(d, connect(b"dev", 0x42, 60, b"token", level=5))
    assert isinstance(error_of(MQTTClient, b"d", "h", password=b"x", level=4), ValueError)


def test_c2b_properties_that_connect_cannot_have_are_refused():
    for name in ("properties", "will_properties"):
        d = Dialogue(is_connected=False)
        d.client.set_last_will(b"w", b"x")
        setattr(d.client.v5, name, encode(server_keep_alive=5))
        stream = ScriptedStream()
        assert isinstance(error_of(d.client.connect, stream=stream), ValueError)
        assert stream.take() == b""


def test_c2b_client_id_that_the_broker_assigned_is_used_from_then_on():
    """MQTT-3.1.3-2."""
    d = Dialogue(is_connected=False)
    d.client = MQTTClient(b"", "broker", level=5)
    said = connack(0, 0, properties(assigned_client_id=b"made-up"))
    assert opened(d, connect(b"", 0, 60, level=5), said, False) is False
    assert d.client.v5.connack.assigned_client_identifier == b"made-up"
    for _ in range(2):
        assert opened(d, connect(b"made-up", 0, 60, level=5), connack(0, 1), False) is True
    assert d.client.v5.assigned_client_id == b"made-up"


def test_c2b_options_of_other_levels_that_mean_nothing_are_refused():
    """MQTT-4.4.0-1: no time-out repeats a message."""
    assert isinstance(error_of(Dialogue, retry_interval=20), ValueError)
    for level in (3, 4):
        d = Dialogue(level=level)
        assert isinstance(error_of(d.publish, properties=encode(content_type="x")), ValueError)
        assert isinstance(error_of(d.client.subscribe, b"a", 1 | NO_LOCAL), ValueError)
        assert isinstance(
            error_of(d.client.subscribe, b"a", 1, encode(user_property=(("a", "b"),))), ValueError
        )
        assert isinstance(error_of(getattr, d.client, "v5"), AttributeError)
        d.c2b()


# --- CONNACK ----------------------------------------------------------------------------


def test_b2c_connack_that_refuses_has_the_codes_of_the_other_levels():
    """MQTT-3.2.2-8, MQTT-4.13.2-1: what can be told apart at all levels has one code."""
    for reason, code in (
        (0x84, REFUSED_VERSION),
        (0x85, REFUSED_CLIENT_ID),
        (0x86, REFUSED_CREDENTIALS),
        (0x87, REFUSED_NOT_AUTHORIZED),
        (0x88, REFUSED_UNAVAILABLE),
        (0x89, REFUSED_UNAVAILABLE),
        (0x97, REFUSED_UNAVAILABLE),
        (0x9F, REFUSED_UNAVAILABLE),
        (0x80, 0x80),
        (0x8A, 0x8A),
        (0x9D, 0x9D),
        (0xFF, 0xFF),
    ):
        d = Dialogue(is_connected=False)
        said = properties(reason_string=b"because", server_reference=b"other:1883")
        error = error_of(opened, d, d.connect_packet(True), connack(reason, 0, said))
        assert isinstance(error, MQTTError) and error.code == code, reason
        assert d.stream.is_closed and d.client.v5.reason == reason
        assert d.client.v5.connack.server_reference == b"other:1883"
        assert d.client.v5.connack.reason_string == b"because"


def test_reconnect_goes_on_where_the_reason_may_heal_and_raises_where_not():
    for reason, is_final in ((0x88, False), (0x89, False), (0x9F, False), (0x87, True)):
        d = Dialogue()
        d.lose()
        d.next_stream = ScriptedStream()
        d.next_stream.answer(d.connect_packet(False), connack(reason))
        if is_final:
            assert code_of(d.client.reconnect, 5000) == REFUSED_NOT_AUTHORIZED
        else:
            assert d.client.reconnect(5000) is False


def test_b2c_connack_of_a_broker_without_level_5_names_another_level():
    d = Dialogue(is_connected=False)
    error = error_of(opened, d, d.connect_packet(True), b"\x20\x02\x00\x01")
    assert error.code == REFUSED_VERSION and "level=4" in str(error)


def test_b2c_connack_that_is_malformed_closes_with_its_reason():
    """MQTT-3.2.2-1, MQTT-3.2.2-2, MQTT-4.13.1-1."""
    for bad, reason in (
        (b"\x20\x02\x00\x00", 0x82),
        (b"\x20\x03\x02\x00\x00", 0x82),
        (b"\x20\x03\x01\x00\x00", 0x82),
        (b"\x20\x03\x00\x00\x01", 0x81),
        (b"\x20\x04\x00\x00\x00\x00", 0x81),
        (b"\x20\x05\x00\x00\x02\x23\x01", 0x94),
        (b"\x20\x06\x00\x00\x03\x21\x00\x00", 0x82),
        (b"\x20\x00", 0x82),
        (b"\x21\x03\x00\x00\x00", 0x82),
        (b"\x30\x05\x00\x01t\x00x", 0x82),
        (b"\xf0\x00", 0x82),
        (b"\xe0\x00", 0x82),
    ):
        d = Dialogue(is_connected=False)
        assert code_of(opened, d, d.connect_packet(True), bad) == PROTOCOL, bad
        assert d.stream.is_closed
        assert d.stream.take() == disconnect(reason), bad


def test_b2c_session_that_is_present_goes_on_and_another_begins_anew():
    """MQTT-3.2.2-3, MQTT-3.2.2-5, MQTT-4.4.0-1, MQTT-3.3.1-1."""
    for is_present in (True, False):
        d = Dialogue()
        d.publish(b"1", 1)
        d.publish(b"2", 2)
        d.b2c(publish(b"t", b"old", 2, 9))
        d.lose()
        d.connect(False, is_present)
        dup = int(is_present)
        d.c2b(publish(b"t", b"1", 1, 1, dup), publish(b"t", b"2", 2, 2, dup))
        d.b2c(publish(b"t", b"old", 2, 9))
        assert len(d.messages) == 2 - dup


# At levels 3 and 4 a clean session ends with its connection; here it ends when it expires.
def test_session_that_began_clean_goes_on_while_it_has_not_expired():
    d = Dialogue(is_connected=False)
    d.client.v5.session_expiry = 60
    said = properties(session_expiry=60, receive_maximum=36, maximum_packet_size=256)
    opened(d, connect(b"dev", 2, 60, level=5, properties=said))
    d.publish(b"1", 1)
    d.lose()
    opened(d, connect(b"dev", 0, 60, level=5, properties=said), connack(0, 1), False)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1))


def test_b2c_server_keep_alive_takes_the_place_of_ours():
    """MQTT-3.1.2-21, MQTT-3.2.2-21, MQTT-3.1.2-20."""
    d = allowed(server_keep_alive=10)
    assert d.client.keepalive == 10
    d.wait(7.4)
    d.c2b()
    d.wait(0.2)
    d.c2b(pingreq())
    d.connect()
    assert d.client.keepalive == 60
    d.wait(30)
    d.c2b()


# --- receive maximum --------------------------------------------------------------------


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


# --- other limits of the broker -----------------------------------------------------------


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
    d = allowed(maximum_packet_size=30)
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
    for make in (None, FailingFlash):
        d = Dialogue(is_connected=False, store=make().journal() if make else None)
        dropped = d.watch_drops()
        d.publish(b"1", 1)
        d.publish(b"2", 2)
        d.publish(b"3", 1, retain=True)
        d.publish(b"4" * 50, 1)
        d.publish(b"5", 1)
        said = properties(maximum_qos=1, retain_available=0, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, 0, said), False)
        d.work()
        d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"5", 1, 5))
        assert dropped == [(2, 0x9B), (3, 0x9A), (4, 0x95)]
        d.b2c(puback(1), puback(5))
        assert d.client.inflight == d.client.queued == 0


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


# --- reasons in answers -----------------------------------------------------------------


def test_b2c_puback_that_refuses_ends_the_flow_and_is_told():
    """MQTT-4.4.0-2, MQTT-4.3.2-3."""
    d = Dialogue()
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


def test_b2c_pubrec_that_refuses_ends_the_flow_and_frees_the_id():
    """MQTT-4.3.3-4, MQTT-4.3.3-5, MQTT-4.4.0-2."""
    for store in (None, FailingFlash().journal()):
        d = Dialogue(max_inflight=2, store=store)
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


def test_b2c_refusal_of_nothing_that_waits_for_it_changes_nothing():
    d = Dialogue()
    dropped = d.watch_drops()
    d.publish(b"1", 2)
    d.publish(b"2", 1)
    d.b2c(puback(1, 0x80), pubrec(2, 0x80), puback(7, 0x80), pubrec(7, 0x80))
    assert d.client.inflight == 2 and d.client.stats.strays == 4 and not dropped
    d.b2c(pubrec(1), pubrec(1, 0x80), puback(2), pubcomp(1))
    assert d.client.inflight == 0 and not dropped


def test_b2c_refused_while_the_window_is_full_then_the_next_one_goes():
    """MQTT-4.9.0-2: a refused message takes no place any more."""
    d = allowed(receive_maximum=1)
    for k in (b"1", b"2", b"3"):
        d.publish(k, 1)
    d.stream.take()
    d.b2c(puback(1, 0x80))
    d.c2b(publish(b"t", b"2", 1, 2))


def test_b2c_refused_when_the_connection_is_lost_at_once_then_is_not_sent_again():
    """MQTT-4.4.0-2: what the answer said holds, whatever comes between."""
    d = Dialogue()
    dropped = d.watch_drops()
    d.publish(b"1", 1)
    d.publish(b"2", 1)
    d.stream.feed(puback(1, 0x80), OSError(104))
    assert isinstance(error_of(d.work), MQTTError)
    d.connect(False)
    d.work()
    d.c2b(publish(b"t", b"2", 1, 2, dup=1))
    assert dropped == [(1, 0x80)]


def test_on_drop_that_raises_leaves_the_rest_to_the_next_poll():
    d = Dialogue()
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


# --- DISCONNECT and AUTH ----------------------------------------------------------------


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


def test_b2c_disconnect_without_a_reason_has_none_of_the_packet_before():
    d = Dialogue()
    d.stream.feed(pubrel(0x8700), b"\xe0\x00")
    assert code_of(d.work) == CLOSED
    assert d.client.v5.reason == 0


def test_b2c_auth_is_refused():
    """MQTT-4.12.0-6, MQTT-4.12.0-7."""
    d = Dialogue()
    d.stream.feed(b"\xf0\x02\x18\x00")
    assert code_of(d.work) == PROTOCOL
    d.c2b(disconnect(0x82))
    assert isinstance(error_of(encode, authentication_method="SCRAM"), ValueError)


def test_c2b_disconnect_says_what_the_program_wants():
    """MQTT-3.14.2-1, MQTT-3.14.4-1, MQTT-3.14.4-2."""
    for reason, given, expected in (
        (0, b"", b"\xe0\x00"),
        (4, b"", b"\xe0\x02\x04\x00"),
        (
            0,
            encode(session_expiry_interval=60),
            disconnect(0, properties(session_expiry=60)),
        ),
    ):
        d = Dialogue()
        d.client.v5.leave_reason = reason
        d.client.v5.leave_properties = given
        d.client.disconnect()
        d.c2b(expected)
        assert d.stream.is_closed


def test_c2b_half_a_packet_is_followed_by_no_disconnect():
    d = Dialogue()
    d.stream.write_most = 3
    d.publish(b"x" * 20)
    d.stream.feed(b"\xf0\x00")
    d.stream.is_blocked = True
    assert code_of(d.work) == PROTOCOL
    assert len(d.stream.take()) == 3


# --- subscriptions ------------------------------------------------------------------------


def test_c2b_subscribe_with_options_and_identifier():
    """MQTT-3.8.3-3, MQTT-3.8.1-1."""
    d = Dialogue()
    options = NO_LOCAL | RETAIN_AS_PUBLISHED | RETAINED_IF_NEW
    assert options == 0x1C and NO_RETAINED == 0x20
    said = properties(subscription_id=[300])
    request = subscribe(1, (b"a", 1 | options), properties=said)
    granted = d.subscribe(
        request, suback(1, 1), b"a", 1 | options, encode(subscription_identifier=300)
    )
    assert granted == [1]
    d.subscribe(subscribe(2, (b"b", 0), (b"c", 0x22)), suback(2, 0, 2), [(b"b", 0), (b"c", 0x22)])
    d.lose()
    d.connect(False, is_present=False)
    d.c2b(subscribe(3, (b"a", 1 | options), properties=said))
    d.b2c(suback(3, 1))
    d.c2b(subscribe(4, (b"b", 0)))
    d.b2c(suback(4, 0))
    d.c2b(subscribe(5, (b"c", 0x22)))


def test_c2b_subscribe_with_options_that_are_none_is_refused():
    """MQTT-3.8.3-4, MQTT-3.8.3-5."""
    d = Dialogue()
    for name, options in ((b"a", 3), (b"a", 0x30), (b"a", 0x40), (b"$share/g/a", 4), (b"a", -1)):
        assert isinstance(error_of(d.client.subscribe, name, options), ValueError), options
    for bad in (encode(content_type="x"), encode(receive_maximum=3)):
        assert isinstance(error_of(d.client.subscribe, b"a", 1, bad), ValueError)
    d.c2b()
    assert d.subscribe(subscribe(1, (b"$share/g/a", 9)), suback(1, 1), b"$share/g/a", 9) == [1]


def test_b2c_suback_with_reasons_refuses_filters_by_their_place():
    """MQTT-3.9.3-1, MQTT-3.8.4-7."""
    d = Dialogue()
    said = properties(reason_string=b"why")
    d.stream.answer(subscribe(1, (b"a", 1), (b"b", 1)), suback(1, 1, 0x87, properties=said))
    error = error_of(d.client.subscribe, [(b"a", 1), (b"b", 1)])
    assert error.code == REFUSED_FILTER and "b'b'" in str(error) and "b'a'" not in str(error)
    assert d.client.v5.reason == 0x87
    d.lose()
    d.connect(False, is_present=False)
    d.c2b(subscribe(2, (b"a", 1)))


def test_b2c_suback_of_0x80_is_a_reason_and_of_a_qos_none():
    d = Dialogue()
    d.subscribe(subscribe(1, (b"a", 2)), suback(1, 2), b"a", 2)
    assert d.client.v5.reason == 0
    d.stream.answer(subscribe(2, (b"b", 1)), suback(2, 0x80))
    assert code_of(d.client.subscribe, b"b", 1) == REFUSED_FILTER
    assert d.client.v5.reason == 0x80


def test_b2c_unsuback_with_reasons():
    """MQTT-3.11.3-1: a filter that was not there is fine, one that stays is told."""
    d = Dialogue()
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.stream.answer(unsubscribe(2, b"a", b"b"), unsuback(2, 0, 0x11))
    d.client.unsubscribe([b"a", b"b"])
    d.stream.answer(unsubscribe(3, b"c", b"d"), unsuback(3, 0, 0x87))
    error = error_of(d.client.unsubscribe, [b"c", b"d"])
    assert error.code == REFUSED_FILTER and "b'd'" in str(error) and "b'c'" not in str(error)
    for bad in (unsuback(4, 0, 0), suback(4, 0), b"\xb0\x02\x00\x04"):
        d = Dialogue()
        d.stream.answer(unsubscribe(1, b"a"), bad.replace(b"\x00\x04", b"\x00\x01"))
        assert code_of(d.client.unsubscribe, b"a") == PROTOCOL


# --- messages that the handler refuses ------------------------------------------------------


def refusing(d, reasons):
    """The handler refuses messages whose payload is in `reasons`, with the reason there."""

    def handle(message):
        d.keep(message)
        if message.payload in reasons:
            message.refuse(reasons[message.payload])

    d.client.on_message = handle


def refused(answer, packet_id, reason):
    return answer(packet_id, reason, properties(reason_string=b"refused"))


def test_b2c_message_that_the_handler_refuses_is_answered_with_its_reason():
    """MQTT-4.3.3-9: the id is not held, so that it is another message when it comes again.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5 0x87
    B: PUBLISH QoS 2 id 5, C: PUBREC 5, B: PUBREL 5, C: PUBCOMP 5
    """
    d = Dialogue()
    refusing(d, {b"bad": 0x87})
    d.b2c(publish(b"t", b"bad", 2, 5), publish(b"t", b"good", 2, 5), pubrel(5))
    d.c2b(refused(pubrec, 5, 0x87), pubrec(5), pubcomp(5))
    d.b2c(publish(b"t", b"bad", 1, 6), publish(b"t", b"bad"), publish(b"t", b"good", 1, 7))
    d.c2b(refused(puback, 6, 0x87), puback(7))
    assert len(d.messages) == 5 and d.client.stats.duplicates == 0


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


def test_b2c_refusal_that_was_not_written_when_the_link_is_lost_changes_nothing():
    """MQTT-4.3.3-6: the PUBREL behind it was never on the wire."""
    d = Dialogue()
    refusing(d, {b"bad": 0x99})
    d.publish(b"1", 2)
    d.stream.take()
    d.stream.is_blocked = True
    d.stream.feed(publish(b"t", b"bad", 1, 0x62), pubrec(1))
    d.client.poll()
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1))


def test_b2c_message_is_refused_with_the_least_and_the_largest_reason():
    for reason in (0x80, 0xFF):
        d = Dialogue()
        refusing(d, {b"bad": reason})
        d.b2c(publish(b"t", b"bad", 1, 6), publish(b"t", b"bad", 2, 7))
        d.c2b(refused(puback, 6, reason), refused(pubrec, 7, reason))


def test_reason_that_refuses_nothing_is_no_reason():
    d = Dialogue()
    errors = []
    for reason in (0, 0x7F, 0x100):
        d.client.on_message = lambda message, reason=reason: errors.append(
            error_of(message.refuse, reason)
        )
        d.b2c(publish(b"t", b"x", 1, 3))
        d.c2b(puback(3))
    assert [isinstance(error, ValueError) for error in errors] == [True] * 3


# --- messages with properties ---------------------------------------------------------------


def test_b2c_message_shows_its_properties():
    """MQTT-3.3.2-13, MQTT-3.3.2-19."""
    d = Dialogue()
    seen = []

    def look(message):
        buf = bytearray(4)
        seen.append(
            (
                message.topic,
                message.payload,
                message.payload_format_indicator,
                message.message_expiry_interval,
                message.content_type,
                message.response_topic,
                message.correlation_data,
                message.user_property,
                message.subscription_identifier,
                message.property_into(9, buf),
                bytes(buf),
            )
        )

    d.client.on_message = look
    said = properties(
        payload_format=1,
        message_expiry=70000,
        content_type=b"a/b",
        response_topic=b"r",
        correlation_data=b"\x00\x01\x02",
        user_property=[(b"k", b"v"), (b"k", b"w")],
        subscription_id=[1, 200],
    )
    d.b2c(publish(b"t", b"one", 1, 5, properties=said), publish(b"t", b"two"))
    pairs = [(b"k", b"v"), (b"k", b"w")]
    assert seen == [
        (b"t", b"one", 1, 70000, b"a/b", b"r", b"\x00\x01\x02", pairs, [1, 200], 3, b"\0\1\2\0"),
        (b"t", b"two", None, None, None, None, None, [], [], -1, bytes(4)),
    ]
    d.c2b(puback(5))


def test_b2c_message_with_many_properties_is_read_in_any_pieces():
    said = properties(user_property=[(b"key%d" % k, b"value") for k in range(20)])
    assert len(said) > 130
    for read_most in (0, 1, 7, 64):
        d = Dialogue(buffer_size=512)
        d.stream.read_most = read_most
        d.stream.feed(publish(b"t", b"x" * 100, 2, 7, properties=said), publish(b"t", b"y"))
        for _ in range(600):
            d.client.poll()
        assert [message[1] for message in d.messages] == [b"x" * 100, b"y"]
        d.c2b(pubrec(7))


def test_b2c_publish_that_is_malformed_ends_the_connection_with_its_reason():
    """MQTT-3.3.2-8, MQTT-3.1.2-27, MQTT-4.13.1-1."""
    for body, reason in (
        (b"\x00\x01t", 0x81),
        (b"\x00\x01t\x01", 0x81),
        (b"\x00\x01t\x02\x01\x00\x00", 0x00),
        (b"\x00\x01t\x03\x23\x00\x01", 0x94),
        (b"\x00\x00\x03\x23\x00\x01x", 0x94),
        (b"\x00\x00\x00x", 0x81),
        (b"\x00\x01t\x04\x01\x00\x01\x00", 0x82),
        (b"\x00\x01t\x02\x01\x02", 0x82),
        (b"\x00\x01t\x05\x03\x00\x02\xc3\x28", 0x81),
        (b"\xff\xfft", 0x81),
    ):
        d = Dialogue()
        d.stream.feed(packet(0x30, body))
        if not reason:
            d.work()
            assert [message[1] for message in d.messages] == [b"\x00"]
            continue
        assert code_of(d.work) == PROTOCOL, body
        d.c2b(disconnect(reason))
        assert not d.messages


def test_c2b_message_takes_its_properties_along():
    """MQTT-2.2.2-1, MQTT-3.3.4-6."""
    given = encode(
        content_type="a/b",
        response_topic="r/é",
        correlation_data=b"\x00\x01",
        user_property=(("k", "v"), ("k", "w")),
        payload_format_indicator=1,
    )
    said = properties(
        content_type=b"a/b",
        response_topic="r/é".encode(),
        correlation_data=b"\x00\x01",
        user_property=[(b"k", b"v"), (b"k", b"w")],
        payload_format=1,
    )
    for qos in (0, 1, 2):
        d = Dialogue()
        d.publish(b"x", qos, properties=given)
        d.publish(b"y", qos)
        d.publish(b"z", qos, properties=given)
        d.c2b(
            publish(b"t", b"x", qos, 1, properties=said),
            publish(b"t", b"y", qos, 2),
            publish(b"t", b"z", qos, 3, properties=said),
        )
        if qos:
            d.lose()
            d.connect(False)
            d.c2b(
                publish(b"t", b"x", qos, 1, 1, properties=said),
                publish(b"t", b"y", qos, 2, 1),
                publish(b"t", b"z", qos, 3, 1, properties=said),
            )


def test_c2b_properties_of_any_length_up_to_the_buffer():
    for n in (100, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 200, 240):
        d = Dialogue(buffer_size=256)
        data = encode(correlation_data=b"c" * n)
        said = properties(correlation_data=b"c" * n)
        for qos in (0, 1):
            expected = publish(b"t", b"x", qos, 1, properties=said)
            if len(expected) > 256:
                assert code_of(d.publish, b"x", qos, properties=data) == TOO_LARGE
                d.c2b()
            else:
                d.publish(b"x", qos, properties=data)
                d.c2b(expected)


def test_c2b_properties_that_a_message_cannot_have_are_refused():
    """MQTT-3.3.4-6: nor does a program name a topic alias, or an age beside max_age."""
    d = Dialogue()
    for bad in (
        encode(subscription_identifier=1),
        encode(message_expiry_interval=1),
        encode(will_delay_interval=1),
        b"\x23\x00\x01",
        b"\x03\x00",
        b"\xff",
    ):
        assert isinstance(error_of(d.publish, properties=bad), ValueError), bad
    assert isinstance(
        error_of(d.publish, properties={"content_type": "x"}), (TypeError, ValueError)
    )
    for bad in (1 << 40, 1, 1.5, ["x"]):
        for call in (d.publish, lambda **more: d.client.subscribe(b"a", 1, **more)):
            error = error_of(call, properties=bad)
            assert isinstance(error, TypeError) and "properties" in str(error), (bad, error)
    d.c2b()
    assert d.client.inflight == 0


# --- message expiry -------------------------------------------------------------------------


def test_c2b_message_that_waited_says_what_is_left_and_too_old_is_not_sent():
    """MQTT-4.3.3-7."""
    d = Dialogue(is_connected=False)
    dropped = d.watch_drops()
    d.publish(b"1", 1, max_age=10)
    d.publish(b"2", 2, max_age=100, properties=encode(content_type="c"))
    d.publish(b"3", 1)
    d.clock.sleep_ms(15500)
    d.connect(False)
    said = properties(message_expiry=85, content_type=b"c")
    d.c2b(publish(b"t", b"2", 2, 2, properties=said), publish(b"t", b"3", 1, 3))
    assert dropped == [(1, TIMEOUT)]


def test_c2b_message_that_goes_out_at_once_says_its_whole_age():
    d = Dialogue()
    for qos in (0, 1, 2):
        d.publish(b"x", qos, max_age=86400)
    said = properties(message_expiry=86400)
    d.c2b(*[publish(b"t", b"x", qos, qos, properties=said) for qos in (0, 1, 2)])


def test_c2b_message_behind_the_window_says_what_is_left():
    for store in (None, FailingFlash().journal()):
        d = Dialogue(max_inflight=1, store=store)
        d.publish(b"1", 1)
        d.publish(b"2", 1, max_age=60)
        d.work()
        d.stream.take()
        d.wait(20)
        d.b2c(puback(1))
        d.c2b(publish(b"t", b"2", 1, 2, properties=properties(message_expiry=40)))


def test_c2b_age_is_counted_from_publish_whatever_the_clock_says_then():
    """And whatever message without an age was accepted behind it."""
    for since_start_ms in (0, 2500, 100_000, 500_000_000):
        d = Dialogue(is_connected=False, max_mqueue_len=4)
        d.clock.sleep_ms(since_start_ms)
        for age in (3, 86_400, 65_538):
            d.publish(b"%d" % age, 1, max_age=age)
        d.publish(b"0", 1, properties=encode(content_type="c"))
        d.clock.sleep_ms(1800)
        d.connect(False)
        left = [properties(message_expiry=age - 1) for age in (3, 86_400, 65_538)]
        d.c2b(
            publish(b"t", b"3", 1, 1, properties=left[0]),
            publish(b"t", b"86400", 1, 2, properties=left[1]),
            publish(b"t", b"65538", 1, 3, properties=left[2]),
            publish(b"t", b"0", 1, 4, properties=properties(content_type=b"c")),
        )


def test_c2b_age_is_where_it_belongs_in_messages_of_any_length():
    said = properties(message_expiry=9)
    for topic in (b"t", b"t" * 130, b"t" * 300):
        for size in (1, 100, 300):
            d = Dialogue(is_connected=False, buffer_size=700, mqueue_store_qos0=True)
            payload = b"x" * size
            d.publish(payload, 1, topic, max_age=10)
            d.publish(payload, 2, topic, max_age=10, retain=True)
            d.publish(payload, 0, topic, max_age=10, retain=True)
            d.clock.sleep_ms(1000)
            d.connect(False)
            d.c2b(
                publish(topic, payload, 1, 1, properties=said),
                publish(topic, payload, 2, 2, retain=1, properties=said),
                publish(topic, payload, retain=1, properties=said),
            )


def test_c2b_message_sent_again_when_its_age_is_over_says_1_second():
    d = Dialogue()
    d.publish(b"1", 1, max_age=60)
    d.lose()
    d.clock.sleep_ms(100_000)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, 1, 1, properties=properties(message_expiry=1)))


def test_c2b_message_sent_again_after_any_number_of_days_says_1_second():
    """MQTT-4.3.3-7: it was sent, so it is sent again, however old."""
    d = Dialogue()
    d.publish(b"1", 2, max_age=60)
    d.lose()
    for _ in range(20):
        d.clock.sleep_ms(86400000)
        assert d.client.reconnect() is False
    d.connect(False)
    d.c2b(publish(b"t", b"1", 2, 1, 1, properties=properties(message_expiry=1)))


def test_c2b_message_of_an_earlier_life_says_what_was_left_when_it_was_accepted():
    """MQTT-4.6.0-1: nobody knows for how long the power was off."""
    flash = FailingFlash()
    d = Dialogue(is_connected=False, store=flash.journal())
    d.publish(b"1", 1, max_age=60, properties=encode(content_type="c"))
    d.publish(b"2", 1)
    d.client.disconnect()
    again = Dialogue(is_connected=False, store=flash.journal())
    again.publish(b"3", 1, max_age=30)
    again.clock.sleep_ms(10000)
    again.connect(False)
    again.c2b(
        publish(b"t", b"1", 1, 1, properties=properties(message_expiry=60, content_type=b"c")),
        publish(b"t", b"2", 1, 2),
        publish(b"t", b"3", 1, 3, properties=properties(message_expiry=20)),
    )


def test_b2c_message_that_is_too_old_has_its_flow_completed():
    """MQTT-4.3.3-13, MQTT-4.5.0-2: whatever the handler does with it."""
    d = Dialogue()
    d.b2c(publish(b"t", b"x", 2, 5, properties=properties(message_expiry=1)))
    d.c2b(pubrec(5))
    d.wait(10)
    d.b2c(publish(b"t", b"x", 2, 5, 1, properties=properties(message_expiry=1)))
    d.c2b(pubrec(5))
    d.b2c(pubrel(5))
    d.c2b(pubcomp(5))
    assert len(d.messages) == 1


# --- topic aliases ---------------------------------------------------------------------------


def aliased(topics, most, **options):
    d = Dialogue(is_connected=False, **options)
    d.client.v5.topic_aliases = topics
    opened(d, d.connect_packet(False), connack(0, 0, properties(topic_alias_maximum=most)), False)
    return d


def with_alias(alias):
    return properties(topic_alias=alias)


def test_c2b_topic_goes_out_once_and_then_as_a_number():
    """MQTT-3.3.2-8, MQTT-3.3.2-9, MQTT-3.2.2-17."""
    for qos in (0, 1, 2):
        d = aliased(2, 10)
        for topic in (b"long/a", b"long/b", b"long/c", b"long/a", b"long/b"):
            packet_id = d.publish(b"x", qos, topic)
            if qos:
                d.b2c(pubrec(packet_id), pubcomp(packet_id), puback(packet_id))
        sent = [one for one in d.take_packets() if one[0] >> 4 == 3]
        assert sent == [
            publish(b"long/a", b"x", qos, 1, properties=with_alias(1)),
            publish(b"long/b", b"x", qos, 2, properties=with_alias(2)),
            publish(b"long/c", b"x", qos, 3),
            publish(b"", b"x", qos, 4, properties=with_alias(1)),
            publish(b"", b"x", qos, 5, properties=with_alias(2)),
        ], qos


def test_c2b_no_alias_where_the_broker_or_the_program_wants_none():
    """MQTT-3.2.2-18."""
    for wanted, most in ((0, 10), (5, 0)):
        d = aliased(wanted, most)
        d.publish(b"1", 1)
        d.publish(b"2", 1)
        d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 1, 2))


def test_c2b_what_is_sent_again_or_waited_has_its_topic():
    """MQTT-3.3.2-7: an alias means nothing on the next connection."""
    d = aliased(1, 1)
    d.publish(b"0", 0)
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.c2b(
        publish(b"t", b"0", properties=with_alias(1)),
        publish(b"", b"1", 1, 1, properties=with_alias(1)),
        publish(b"", b"2", 2, 2, properties=with_alias(1)),
    )
    d.lose()
    d.publish(b"3", 1)
    said = connack(0, 1, properties(topic_alias_maximum=1))
    opened(d, d.connect_packet(False), said, False)
    d.c2b(
        publish(b"t", b"1", 1, 1, 1),
        publish(b"t", b"2", 2, 2, 1),
        publish(b"t", b"3", 1, 3),
    )
    d.publish(b"4", 1)
    d.c2b(publish(b"t", b"4", 1, 4, properties=with_alias(1)))


def test_c2b_first_alias_of_a_topic_makes_no_packet_larger_than_the_broker_takes():
    """MQTT-3.2.2-15: it waits for a shorter message."""
    for size in range(10, 40):
        d = Dialogue(is_connected=False)
        d.client.v5.topic_aliases = 1
        said = properties(topic_alias_maximum=1, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, 0, said), False)
        whole = publish(b"topic", b"x" * size)
        if len(whole) > 40:
            continue
        d.publish(b"x" * size, 0, b"topic")
        d.publish(b"y", 0, b"topic")
        first, second = d.take_packets()
        named = publish(b"topic", b"x" * size, properties=with_alias(1))
        assert first == (named if len(whole) + 5 <= 40 else whole)
        assert len(first) <= 40
        known = publish(b"", b"y", properties=with_alias(1))
        assert second == (
            known if first == named else publish(b"topic", b"y", properties=with_alias(1))
        )


def test_c2b_known_alias_of_a_short_topic_makes_no_packet_larger_than_the_broker_takes():
    """MQTT-3.2.2-15: an alias takes three bytes, this topic one."""
    for size in range(26, 34):
        d = Dialogue(is_connected=False)
        d.client.v5.topic_aliases = 1
        said = properties(topic_alias_maximum=1, maximum_packet_size=40)
        opened(d, d.connect_packet(False), connack(0, 0, said), False)
        d.publish(b"first", 0)
        d.publish(b"x" * size, 0)
        _, packet = d.take_packets()
        known = publish(b"", b"x" * size, properties=with_alias(1))
        assert packet == (known if size < 31 else publish(b"t", b"x" * size))
        assert len(packet) <= 40


def test_c2b_nothing_in_a_journal_has_an_alias():
    """MQTT-3.3.2-7."""
    flash = FailingFlash()
    d = aliased(1, 1, store=flash.journal())
    for payload in (b"1", b"2", b"3"):
        d.publish(payload, 1)
        d.work()
    again = Dialogue(is_connected=False, store=flash.journal())
    again.connect(False)
    assert again.take_publishes() == [(b"1", 1, 1, 1), (b"2", 1, 2, 1), (b"3", 1, 3, 1)]


def test_c2b_alias_behind_other_packets_goes_to_its_own_message_only():
    """MQTT-4.6.0-2: answers first, and what waits for them has its topic."""
    d = aliased(1, 1, mqueue_store_qos0=True)
    d.stream.is_blocked = True
    d.stream.feed(publish(b"t", b"in", 1, 9))
    d.client.poll()
    for qos in (0, 1, 0):
        d.publish(b"%d" % qos, qos)
    d.stream.is_blocked = False
    d.work()
    d.publish(b"last", 1)
    d.c2b(
        puback(9),
        publish(b"t", b"0"),
        publish(b"t", b"1", 1, 1),
        publish(b"t", b"0"),
        publish(b"t", b"last", 1, 2, properties=with_alias(1)),
    )


def test_c2b_qos0_with_an_age_while_offline_is_refused_and_nothing_is_given_up_for_it():
    d = Dialogue(is_connected=False, level=5, max_mqueue_len=1, overflow="drop_oldest")
    dropped = d.watch_drops()
    d.publish(b"kept")
    assert code_of(d.publish, b"lost", 0, max_age=5) == CLOSED
    assert dropped == [] and d.client.queued == 1


def test_c2b_qos0_with_properties_when_the_link_is_dead_says_so():
    d = Dialogue(level=5)
    d.stream.write_error = OSError(104)
    assert code_of(d.publish, b"lost", 0, properties=encode(content_type="text")) == NETWORK


def test_c2b_topic_that_may_change_gets_no_alias():
    d = aliased(2, 10)
    topic = bytearray(b"long/a")
    for _ in range(2):
        d.client.publish(topic, b"x", False, 0)
    assert [one for one in d.take_packets() if one[0] >> 4 == 3] == [publish(b"long/a", b"x")] * 2


def test_b2c_message_has_no_property_of_another_name():
    d = Dialogue()
    errors = []
    d.client.on_message = lambda message: errors.append(error_of(getattr, message, "nosuch"))
    d.b2c(publish(b"t", b"x", properties=properties(content_type=b"c")))
    assert [isinstance(error, AttributeError) for error in errors] == [True]
