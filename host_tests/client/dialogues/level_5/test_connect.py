"""CONNECT and CONNACK of level 5, and what they say of the session.  MQTT 5 §3.1, §3.2."""

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of, error_of, with_ids_from_1
from host_tests.client.dialogues.level_5.opened import opened
from host_tests.client.wire import (
    asked,
    connack,
    connect,
    disconnect,
    properties,
    publish,
    pubrec,
    pubrel,
)
from host_tests.standin.store import KeepingStore
from host_tests.standin.stream import ScriptedStream
from umqtt31 import (
    PROTOCOL,
    REFUSED_CLIENT_ID,
    REFUSED_CREDENTIALS,
    REFUSED_NOT_AUTHORIZED,
    REFUSED_UNAVAILABLE,
    REFUSED_VERSION,
    MQTTError,
)
from umqtt31.properties import encode
from umqtt31.v5 import NO_LOCAL, MQTTClient

LEVELS = (5,)


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
    assert isinstance(error_of(umqtt31.MQTTClient, b"d", "h", password=b"x", level=4), ValueError)


def test_c2b_client_id_that_the_broker_assigned_is_used_from_then_on():
    """MQTT-3.1.3-2."""
    d = Dialogue(is_connected=False)
    d.client = MQTTClient(b"", "broker")
    said = connack(0, 0, properties(assigned_client_id=b"made-up"))
    assert opened(d, connect(b"", 0, 60, level=5), said, False) is False
    assert d.client.v5.connack.assigned_client_identifier == b"made-up"
    for _ in range(2):
        assert opened(d, connect(b"made-up", 0, 60, level=5), connack(0, 1), False) is True
    assert d.client.v5.assigned_client_id == b"made-up"


def test_c2b_client_id_that_the_broker_assigned_is_forgotten_by_a_reset_and_may_be_set_again():
    """Without it the broker makes another, and what it had released comes to it as new."""
    for kept, present, first in ((b"made-up", 1, pubrel(1)), (b"", 0, publish(b"t", b"x", 2, 1))):
        store = KeepingStore()
        said = connack(0, 0, properties(assigned_client_id=b"made-up"))
        d = Dialogue(is_connected=False)
        d.client = with_ids_from_1(MQTTClient, b"", "broker", store=store)
        opened(d, connect(b"", 0, 60, level=5), said, False)
        d.publish(b"x", 2)
        d.b2c(pubrec(1))
        d.client = MQTTClient(b"", "broker", store=store)
        d.client.v5.assigned_client_id = kept
        opened(d, connect(kept, 0, 60, level=5), connack(0, present), False)
        d.c2b(first)


def test_c2b_client_id_that_is_set_again_may_be_text():
    d = Dialogue(is_connected=False)
    d.client = with_ids_from_1(MQTTClient, b"", "broker")
    d.client.v5.assigned_client_id = "zoë"
    opened(d, connect("zoë".encode(), 2, 60, level=5))
    for bad, kind in ((5, TypeError), (b"\xff", ValueError)):
        d.client.v5.assigned_client_id = bad
        error = error_of(d.client.connect)
        assert isinstance(error, kind) and "assigned_client_id" in str(error), error


def test_c2b_options_of_other_levels_that_mean_nothing_are_refused():
    """MQTT-4.4.0-1: no time-out repeats a message."""
    assert isinstance(error_of(Dialogue, retry_interval=20), ValueError)
    for level in (3, 4):
        d = Dialogue(level=level)
        given = encode(user_property=(("a", "b"),))
        assert isinstance(error_of(d.publish, properties=given), TypeError)
        assert isinstance(error_of(d.client.subscribe, b"a", 1 | NO_LOCAL), ValueError)
        assert isinstance(error_of(d.client.subscribe, b"a", 1, given), TypeError)
        assert isinstance(error_of(getattr, d.client, "v5"), AttributeError)
        d.c2b()


def test_class_of_another_level_names_the_one_to_take():
    error = error_of(umqtt31.MQTTClient, b"d", "h", level=5)
    assert isinstance(error, ValueError) and "umqtt31.v5" in str(error)
    error = error_of(MQTTClient, b"d", "h", level=4)
    assert isinstance(error, ValueError) and "MQTTClient from umqtt31" in str(error)


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


def test_b2c_connack_with_properties_of_any_length_is_read():
    """MQTT-1.5.5-1: their length takes one byte or two."""
    for n in (120, 121, 122, 200, 300):
        d = Dialogue(is_connected=False, buffer_size=512)
        said = properties(receive_maximum=2, reason_string=b"r" * n)
        opened(d, d.connect_packet(True), connack(0, 0, said))
        assert d.client.v5.connack.receive_maximum == 2, n
        assert d.client.v5.connack.reason_string == b"r" * n
