"""CONNECT and CONNACK of level 5, and what they say of the session.  MQTT 5 §3.1, §3.2."""

import umqtt31
from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import asked, connack, connect, properties
from host_tests.standin.stream import ScriptedStream
from umqtt31.properties import encode
from umqtt31.v5 import MQTTClient

LEVELS = (5,)


def test_c2b_connect_with_everything_keeps_the_payload_order():
    """MQTT-3.1.3-1, MQTT-3.1.2-9, MQTT-3.1.2-17, MQTT-3.1.2-19."""
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", b"\x00\xff", retain=True, qos=1)
    d.client.v5.will_properties = encode(will_delay_interval=5, content_type="c")
    d.client.v5.properties = encode(request_problem_information=0, user_property=(("k", "v"),))
    said = asked(False)[1:] + b"\x17\x00\x26\x00\x01k\x00\x01v"
    request = connect(
        b"dev", 0xEC, 60, b"w/t", b"\x00\xff", "zoë".encode(), b"s",
        level=5,
        properties=bytes((len(said),)) + said,
        will_properties=properties(will_delay=5, content_type=b"c"),
    )  # fmt: skip
    d.stream = ScriptedStream()
    d.stream.answer(request, connack())
    assert d.client.connect(False, stream=d.stream) is False and d.stream.has_answered()


def test_class_of_another_level_names_the_one_to_take():
    error = error_of(umqtt31.MQTTClient, b"d", "h", level=5)
    assert isinstance(error, ValueError) and "umqtt31.v5" in str(error)
    error = error_of(MQTTClient, b"d", "h", level=4)
    assert isinstance(error, ValueError) and "MQTTClient from umqtt31" in str(error)
