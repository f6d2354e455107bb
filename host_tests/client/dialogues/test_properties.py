"""The codec of MQTT 5 properties.  MQTT 5 §1.5, §2.2.2.

The bytes are written out by hand; which packet may have which property is the standard's
table 2-4, for what a client receives and what a program may give.
"""

from host_tests.client.dialogue import error_of, refuses
from micropython import heap_lock, heap_unlock
from umqtt31.properties import (
    RECEIVED,
    SENT,
    Properties,
    behind,
    encode,
    fault_of,
    given,
    take,
    variable,
    variable_at,
)

LEVELS = (5,)

MALFORMED = 0x81
PROTOCOL_ERROR = 0x82
ALIAS_INVALID = 0x94

IN_CONNACK, IN_PUBLISH, IN_ANSWER, IN_DISCONNECT = 0x08, 0x10, 0x20, 0x40
KINDS_IN = (IN_CONNACK, IN_PUBLISH, IN_ANSWER, IN_DISCONNECT)
IN_OTHERS = IN_CONNACK | IN_ANSWER | IN_DISCONNECT
TO_CONNECT, TO_PUBLISH, TO_WILL, TO_DISCONNECT, TO_SUBSCRIBE = 0x08, 0x10, 0x20, 0x40, 0x80
KINDS_OUT = (TO_CONNECT, TO_PUBLISH, TO_WILL, TO_DISCONNECT, TO_SUBSCRIBE)
ALL_OUT = TO_CONNECT | TO_PUBLISH | TO_WILL | TO_DISCONNECT | TO_SUBSCRIBE

PAIRS = b"\x26\x00\x01k\x00\x00\x26\x00\x01k\x00\x01v"
# name, value, bytes, packets that may bring it, packets that a program may give it to
TABLE = (
    ("payload_format_indicator", 1, b"\x01\x01", IN_PUBLISH, TO_PUBLISH | TO_WILL),
    ("message_expiry_interval", 70000, b"\x02\x00\x01\x11\x70", IN_PUBLISH, TO_WILL),
    ("content_type", b"a/b", b"\x03\x00\x03a/b", IN_PUBLISH, TO_PUBLISH | TO_WILL),
    ("response_topic", b"r", b"\x08\x00\x01r", IN_PUBLISH, TO_PUBLISH | TO_WILL),
    ("correlation_data", b"\x00\xff", b"\x09\x00\x02\x00\xff", IN_PUBLISH, TO_PUBLISH | TO_WILL),
    ("subscription_identifier", 300, b"\x0b\xac\x02", IN_PUBLISH, TO_SUBSCRIBE),
    ("session_expiry_interval", 0xFFFFFFFF, b"\x11\xff\xff\xff\xff", IN_CONNACK, TO_DISCONNECT),
    ("assigned_client_identifier", b"c", b"\x12\x00\x01c", IN_CONNACK, 0),
    ("server_keep_alive", 258, b"\x13\x01\x02", IN_CONNACK, 0),
    ("request_problem_information", 0, b"\x17\x00", 0, TO_CONNECT),
    ("will_delay_interval", 5, b"\x18\x00\x00\x00\x05", 0, TO_WILL),
    ("request_response_information", 1, b"\x19\x01", 0, TO_CONNECT),
    ("response_information", b"i", b"\x1a\x00\x01i", IN_CONNACK, 0),
    ("server_reference", b"h:1", b"\x1c\x00\x03h:1", IN_CONNACK | IN_DISCONNECT, 0),
    ("reason_string", b"\xc3\xa9", b"\x1f\x00\x02\xc3\xa9", IN_OTHERS, TO_DISCONNECT),
    ("receive_maximum", 65535, b"\x21\xff\xff", IN_CONNACK, 0),
    ("topic_alias_maximum", 0, b"\x22\x00\x00", IN_CONNACK, 0),
    ("maximum_qos", 1, b"\x24\x01", IN_CONNACK, 0),
    ("retain_available", 0, b"\x25\x00", IN_CONNACK, 0),
    ("user_property", [(b"k", b""), (b"k", b"v")], PAIRS, IN_OTHERS | IN_PUBLISH, ALL_OUT),
    ("maximum_packet_size", 1, b"\x27\x00\x00\x00\x01", IN_CONNACK, 0),
    ("wildcard_subscription_available", 0, b"\x28\x00", IN_CONNACK, 0),
    ("subscription_identifier_available", 1, b"\x29\x01", IN_CONNACK, 0),
    ("shared_subscription_available", 1, b"\x2a\x01", IN_CONNACK, 0),
)


# Lengths at every boundary of the encoding, and their bytes.
LENGTHS = (
    (0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (321, b"\xc1\x02"),
    (16383, b"\xff\x7f"), (16384, b"\x80\x80\x01"), (2097151, b"\xff\xff\x7f"),
    (2097152, b"\x80\x80\x80\x01"), (268435455, b"\xff\xff\xff\x7f"),
)  # fmt: skip


def received(data, kind, table=RECEIVED):
    """-> the reason code for what a packet of this kind brought, 0 if it is right; fault_of()
    allocates nothing."""
    buf = bytearray(data + bytes(64))  # there is more room in a receive buffer
    end = len(data)
    heap_lock()
    try:
        return fault_of(table, buf, 0, end, kind)
    finally:
        heap_unlock()


def test_each_property_is_written_and_read_as_the_table_says():
    """MQTT-2.2.2-1, MQTT-1.5.5-1."""
    for name, value, data, _, _ in TABLE:
        assert encode(**{name: value}) == data, name
        found = getattr(Properties(data), name)
        assert found == ([value] if name == "subscription_identifier" else value), name
        assert not getattr(Properties(b""), name)


def test_property_is_taken_from_its_packets_and_no_other():
    for name, _, data, kinds_in, kinds_out in TABLE:
        for kind in KINDS_IN:
            assert received(data, kind) == (0 if kind & kinds_in else MALFORMED), (name, kind)
        for kind in KINDS_OUT:
            if kind & kinds_out:
                assert given(data, kind) == data
            else:
                assert isinstance(error_of(given, data, kind), ValueError), (name, kind)


def test_unknown_property_is_malformed():
    known = [data[0] for _, _, data, _, _ in TABLE]
    for number in range(256):
        if number not in known:
            for kind in KINDS_IN:
                expected = ALIAS_INVALID if number == 35 else MALFORMED
                assert received(bytes((number, 0, 0, 0, 0)), kind) == expected
            assert received(bytes((number, 0, 0)), 0xF8, SENT)


def test_property_that_is_there_twice_is_a_protocol_error():
    for name, _, data, kinds, _ in TABLE:
        may_repeat = name in ("user_property", "subscription_identifier")
        for kind in KINDS_IN:
            if kind & kinds:
                assert received(data + data, kind) == (0 if may_repeat else PROTOCOL_ERROR), name


def test_subscription_identifiers_and_user_properties_are_read_in_their_order():
    data = b"\x0b\x01\x26\x00\x01a\x00\x01b\x0b\x80\x01\x26\x00\x01a\x00\x01c"
    assert received(data, IN_PUBLISH) == 0
    found = Properties(data)
    assert found.subscription_identifier == [1, 128]
    assert found.user_property == [(b"a", b"b"), (b"a", b"c")]


def test_property_that_ends_behind_its_packet_is_malformed():
    for name, _, data, kinds, _ in TABLE:
        for kind in KINDS_IN:
            if kind & kinds:
                # A pair may be whole without the pair behind it.
                for n in range(1, len(data) if name != "user_property" else 6):
                    assert received(data[:n], kind) == MALFORMED, (name, n)


def test_numbers_out_of_their_range_are_protocol_errors():
    for kind, wrong in (
        (IN_PUBLISH, "0102 0b00"),
        (IN_CONNACK, "210000 2100002401 2402 2502 2700000000 2aff"),
    ):
        for data in wrong.split():
            assert received(bytes.fromhex(data), kind) == PROTOCOL_ERROR, data


def test_lengths_that_are_not_the_shortest_or_too_long_are_malformed():
    """MQTT-1.5.5-1."""
    for data in (b"\x0b\x81\x00", b"\x0b\x80\x80\x00", b"\x0b\xff\xff\xff\xff\x01"):
        assert received(data, IN_PUBLISH) == MALFORMED
    assert received(b"\x0b\xff\xff\xff\x7f", IN_PUBLISH) == 0
    for section in (b"\x80\x00", b"\xff\xff\xff\xff", b"\x01", b"\x03\x01\x01"):
        assert take(bytearray(section + bytes(64)), 0, len(section), IN_PUBLISH) == -MALFORMED
    assert take(bytearray(b"\x02\x01\x01payload" + bytes(64)), 0, 10, IN_PUBLISH) == 3


def test_variable_numbers_take_another_byte_where_the_standard_says():
    """MQTT-1.5.5-1."""
    for number, data in LENGTHS:
        assert variable(number) == data
        assert behind(data, 0) == len(data)
        assert variable_at(data, 0) == number
    assert variable_at(b"\xff\xff\xff\xff", 0) == -1


def test_strings_of_more_than_255_bytes_are_read_whole():
    for name, number, value in (
        ("content_type", b"\x03", b"t" * 300),
        ("correlation_data", b"\x09", b"d" * 65535),
        ("user_property", b"\x26", [(b"k" * 256, b"v" * 257)]),
    ):
        data = encode(**{name: value})
        assert data[:1] == number and received(data, IN_PUBLISH) == 0
        assert received(data + b"\x01\x01", IN_PUBLISH) == 0
        assert received(data[:-1], IN_PUBLISH) == MALFORMED
        assert getattr(Properties(data + b"\x01\x01"), name) == value
        assert Properties(data + b"\x01\x01").payload_format_indicator == 1


def test_text_that_is_not_utf8_is_malformed():
    """MQTT-1.5.4-1, MQTT-1.5.4-2, MQTT-1.5.7-1, MQTT-3.3.2-13, MQTT-3.3.2-19."""
    good = ("", "706c61696e01", "c280dfbf", "e0a080ed9fbfee8080", "f0908080f48fbfbf", "efbbbf")
    bad = "00 610062 80 c1bf c2 c241 c2c0 e282c0 e09f80 eda080 e282 f08fbfbf f4908080 f5808080 ff"
    for texts, code in ((good, 0), (bad.split(), MALFORMED)):
        for text in map(bytes.fromhex, texts):
            string = bytes((0, len(text))) + text
            assert received(b"\x03" + string, IN_PUBLISH) == code, text
            assert received(b"\x26" + string + b"\x00\x01v", IN_PUBLISH) == code, text
            assert received(b"\x26\x00\x01k" + string, IN_PUBLISH) == code, text
            assert received(b"\x09" + string, IN_PUBLISH) == 0, text
            if code:
                assert isinstance(error_of(encode, content_type=text), ValueError)
                assert isinstance(error_of(encode, user_property=[(text, b"")]), ValueError)
            else:
                assert encode(content_type=text) == b"\x03" + string


def test_values_that_cannot_be_encoded_are_refused():
    for name, values in (
        ("no_such_property", (1,)), ("authentication_method", ("x",)),
        ("receive_maximum", (65536,)), ("payload_format_indicator", (2,)),
        ("will_delay_interval", (-1, 1 << 32)),
        ("subscription_identifier", (0, 268435456)), ("correlation_data", (b"x" * 65536,)),
        ("response_topic", ("a/+", "")),
    ):  # fmt: skip
        for bad in values:
            assert isinstance(error_of(encode, **{name: bad}), ValueError), (name, bad)
    assert encode(subscription_identifier=268435455) == b"\x0b\xff\xff\xff\x7f"


def test_values_of_another_type_are_refused_by_name():
    for name, values in (
        ("content_type", (5, None, 1.5, [65])),
        ("correlation_data", (5, None, [1])),
        ("session_expiry_interval", ("5", 43200.0, None)),
        ("subscription_identifier", (2.0, "2")),
        ("user_property", ([5], {"unit": "C"}, ("unit", "C"), [("k",)], ["kv"], [("k", 1)])),
    ):
        for bad in values:
            refuses(TypeError, name, encode, **{name: bad})


def test_response_topic_without_wildcards_only():
    """MQTT-3.3.2-13, MQTT-3.3.2-14."""
    assert encode(response_topic="é/x") == b"\x08\x00\x04\xc3\xa9/x"
    for bad in ("a/#", "+", "a\x00"):
        assert isinstance(error_of(encode, response_topic=bad), ValueError)


def test_properties_are_written_in_the_order_of_their_identifiers():
    data = encode(user_property=(("k", "v"),), content_type="t", payload_format_indicator=1)
    assert data == b"\x01\x01\x03\x00\x01t\x26\x00\x01k\x00\x01v"
    assert encode() == b""
