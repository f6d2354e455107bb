"""Readings as envelopes and as JSON, and what Home Assistant is told of them.

Envelopes are read by a reader that shares no code with what writes them.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery import Discovery
from host_tests.brokers.ear import Ear
from host_tests.firmware.decoding import decode
from host_tests.firmware.test_real_node import collector, place, running  # noqa: F401
from host_tests.patience import SECONDS
from jsonreading import KINDS, JSONReading
from reading import HUMIDITY, TEMPERATURE, Reading
from settings import problems
from tools.boards.envelope import _KINDS
from tools.micropython import choose


def test_reading_with_two_values_has_the_documented_bytes():
    reading = Reading("node-7", 0x0102, 5)
    reading.clear()
    reading.add(TEMPERATURE, 2150)
    reading.add(HUMIDITY, -1)
    envelope = bytes(reading.number(3, 1000, 86400, 0x6553, 0xF100))
    assert envelope.hex() == (
        "75020102" + "00000005" + "000003e8" + "00015180" + "0302"
        + "6e6f64652d37" + "00" * 17
        + "0100000866" + "02ffffffff" + "6553f100"
    )  # fmt: skip


def test_reading_when_full_leaves_out_further_values_until_it_is_cleared():
    reading = Reading("n", 0x0100, 1)
    for _ in range(2):
        reading.clear()
        assert decode(bytes(reading.number(0, 1, 0)))["values"] == []
        assert [reading.add(128 + i, i) for i in range(10)] == [True] * 9 + [False]
        assert decode(bytes(reading.number(0, 1, 0)))["values"] == [(128 + i, i) for i in range(9)]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1 << 70])
def test_reading_refuses_a_value_of_more_than_32_bits(value):
    """MicroPython would cut it without a word."""
    reading = Reading("n", 0x0100, 1)
    with pytest.raises(ValueError, match="has more than 32 bits"):
        reading.add(1, value)
    with pytest.raises(TypeError):
        reading.add(1, 21.5)
    assert decode(bytes(reading.number(0, 1, 0)))["values"] == []


@given(
    device=st.text(min_size=1, max_size=23).filter(
        lambda text: len(text.encode()) <= 23 and "\0" not in text
    ),
    boot=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**32 - 1),
    stream=st.integers(0, 255),
    values=st.lists(st.tuples(st.integers(0, 255), st.integers(-(2**31), 2**31 - 1)), max_size=8),
)
def test_reading_of_anything_allowed_reads_back(device, boot, sequence, stream, values):
    reading = Reading(device, 0x0100, boot)
    reading.clear()
    for kind, value in values:
        reading.add(kind, value)
    found = decode(bytes(reading.number(stream, sequence, 9)))
    assert found == {
        "magic": 0x75, "version": 2, "firmware": 0x0100, "boot": boot, "sequence": sequence,
        "time": 0,
        "uptime_s": 9, "stream": stream, "device": device, "values": values,
    }  # fmt: skip


def test_json_reading_has_device_counters_and_values_in_usual_units():
    reading = JSONReading('the "7"', 0x0203, 5)
    for kind, value in ((1, -1), (1, 2150), (2, 4500), (3, 101325), (4, 3299), (5, -61), (200, 9)):
        reading.add(kind, value)
    assert json.loads(reading.number(1, 12, 34, 27465, 53504)) == {
        "device": 'the "7"', "firmware": "2.3", "boot": 5, "stream": 1, "sequence": 12,
        "uptime_s": 34, "time": 1_800_000_000 - 1_800_000_000 % 65536 + 53504,
        "temperature": -0.01, "temperature_2": 21.5, "humidity": 45.0, "pressure": 1013.25,
        "supply": 3.299, "signal": -61, "kind_200": 9,
    }  # fmt: skip
    reading.clear()
    assert "temperature" not in json.loads(reading.number(1, 13, 35))
    assert "time" not in json.loads(reading.number(1, 13, 35))


def test_json_names_and_units_are_those_of_the_tools():
    tools = {kind: (name, divisor) for kind, (name, divisor, _) in _KINDS.items()}
    assert {kind: (name, 10**decimals) for kind, (name, decimals) in KINDS.items()} == tools


def test_largest_json_reading_and_description_fit_the_smallest_buffer():
    name = "n" * 23
    wanted = {"client_id": name, "server": "b", "prefix": "p" * 64, "site": "s" * 32}
    wanted |= {"format": "json", "discovery": "h" * 64, "buffer_size": 128}
    (told,) = problems(wanted)
    most = int(told.split()[-1])
    assert problems(wanted | {"buffer_size": most}) == []
    reading = JSONReading(name, 0x6464, (1 << 32) - 1)
    while reading.add(21, -(1 << 31)):
        pass
    topic = "/".join(("p" * 64, "s" * 32, name))
    payload = reading.number(255, (1 << 32) - 1, (1 << 32) - 1, 65535, 65535)
    assert len(topic + "/reading/0") + len(payload) + 9 <= most
    sizes = []
    discovery = Discovery(
        "h" * 64, name, f"{topic}/reading/0".encode(), f"{topic}/status".encode()
    )
    discovery.tell(reading, lambda name, text, *_: sizes.append(len(name) + len(text) + 9))
    assert max(sizes) <= most


def test_discovery_tells_each_value_once_and_goes_on_where_it_failed():
    reading = JSONReading("node 7", 0x0200, 1)
    reading.add(1, 2000)
    reading.add(2, 4000)
    told = []

    def publish(topic, text, *how):
        assert how == (True, 1)
        if len(told) == 1 and not is_room:
            raise OSError("full")
        told.append((topic, json.loads(text)))

    found = Discovery("homeassistant", "node 7", b"s/node 7/reading/0", b"s/node 7/status")
    is_room = False
    with pytest.raises(OSError, match="full"):
        found.tell(reading, publish)
    is_room = True
    found.tell(reading, publish)
    found.tell(reading, publish)
    assert [topic for topic, _ in told] == [
        b"homeassistant/sensor/node_7/temperature/config",
        b"homeassistant/sensor/node_7/humidity/config",
    ]
    assert told[0][1] == {
        "name": "temperature",
        "uniq_id": "node_7_temperature",
        "stat_t": "s/node 7/reading/0",
        "val_tpl": "{{ value_json.temperature }}",
        "stat_cla": "measurement",
        "dev": {"ids": ["node_7"], "name": "node 7"},
        "dev_cla": "temperature",
        "unit_of_meas": "°C",
        "avty_t": "s/node 7/status",
    }


def test_node_with_json_publishes_objects_and_describes_them(place, collector):  # noqa: F811
    broker, _, device = place
    names = ("temperature", "humidity", "free_heap")
    settings = {"format": "json", "discovery": f"ha-{device}", "buffer_size": 768}
    with Ear(broker.port) as ear, running(choose(), place, interval_ms=50, **settings) as node:
        node.wait_until(lambda: len(collector.arrivals) >= 5, SECONDS, "readings")
        topics = [f"ha-{device}/sensor/{device}/{name}/config" for name in names]
        found = [json.loads(ear.next(topic)) for topic in topics]
    readings = [json.loads(one.payload) for one in collector.arrivals]
    assert [one["sequence"] for one in readings][:5] == [1, 2, 3, 4, 5]
    assert readings[0]["temperature"] == 15.1
    for name, about in zip(names, found):
        assert about["val_tpl"] == "{{ value_json.%s }}" % name
        assert name in readings[0]
        assert about["stat_t"] == collector.arrivals[0].topic
