"""The sensor node as it is flashed, each chip's own sensors and radio in stand-ins.

From a provisioned filesystem to a reading at a real broker, and over a reset.
"""

import re
import time

import pytest

from host_tests.boards.console import drained, read_until
from host_tests.firmware.decoding import readings_of
from host_tests.patience import SECONDS, until
from tools.boards.profile import load_profile
from tools.demo.collector import Collector

TEMPERATURE, SIGNAL = 1, 5
SLEEP_ABOVE_MS = 1000  # the virtual board wakes at once, whatever the time


@pytest.mark.parametrize(
    ("name", "level"),
    [("ESP32_GENERIC", 5), ("ESP32_GENERIC_H2", 4), ("RPI_PICO_W", 3), ("W5500_EVB_PICO", 5)],
)
def test_provisioned_board_publishes_its_readings_and_obeys_a_reset(
    shared_mosquitto, make_node, name, level
):
    board = make_node(name, shared_mosquitto, name, level=level)
    collector = Collector(shared_mosquitto.host, shared_mosquitto.port, f"virtual-{name}")
    first = read_until(board.port, "connected", act=board.power_on)
    read_until(board.port, "accepted 0 20")
    with drained(board.port):
        until(lambda: collector.statuses[name])  # it is subscribed
    second = read_until(board.port, "connected", act=lambda: collector.command(name, "reset"))
    second += read_until(board.port, "accepted 0 10")
    board.unplug()
    until(lambda: collector.statuses[name][-1] == "offline")
    collector.close()
    assert f"boot 1 of {name} on {name}" in first
    assert f"boot 2 of {name} on {name}" in second
    readings = readings_of(collector)
    for boot in (1, 2):
        numbers = [one["sequence"] for one in readings if one["boot"] == boot]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers
    values = dict(readings[0]["values"])
    assert 2650 < values[TEMPERATURE] < 2750
    assert values.get(SIGNAL) == (-50 if load_profile(name).network == "wifi" else None)
    # The board's clock is the computer's.
    assert abs(readings[-1]["time"] - time.time()) < 2 * SECONDS


def test_board_whose_node_runs_takes_every_command_and_goes_on(shared_mosquitto, run, make_node):
    """journal and deploy stop it by one Ctrl-C, whatever it does, and start it again."""
    board = make_node("RPI_PICO_W", shared_mosquitto, "busy", interval_ms=60_000)
    read_until(board.port, "connected", act=board.power_on)
    for words in (["journal"], ["deploy", "--board", "RPI_PICO_W"]):
        time.sleep(0.5)  # greeted and idle, its heap locked
        output = run(*words, "--port", board.port)
        assert "of busy" in read_until(board.port, "connected", restart=True)
    assert "0 of " in output


# An RP2's light sleep takes its time, so its interval is short.
@pytest.mark.parametrize(
    ("name", "interval_ms"), [("ESP32_GENERIC_C3", 60_000), ("RPI_PICO_W", 2000)]
)
def test_sleeping_board_goes_on_with_its_numbers_after_each_deep_sleep(
    shared_mosquitto, make_node, name, interval_ms
):
    """Each wake is a reset: boot.py, main.py, journal and broker anew."""
    about = {"interval_ms": interval_ms, "sleep_above_ms": SLEEP_ABOVE_MS}
    board = make_node(name, shared_mosquitto, name, **about)
    collector = Collector(shared_mosquitto.host, shared_mosquitto.port, f"virtual-{name}")
    output = read_until(board.port, "accepted 0 5", act=board.power_on)
    board.cut_power()
    again = read_until(board.port, "accepted 0 1", act=board.power_on)
    board.unplug()
    # Awake for longer than a short interval it takes a second sample.
    wakes = output.count(f"boot 1 of {name}")
    assert 3 <= wakes <= 5
    assert len(re.findall(r"^sleep \d+", output, re.M)) == wakes - 1
    assert output.count("connected") in (wakes - 1, wakes)
    assert "boot 2" not in output
    assert f"boot 2 of {name}" in again
    # The last wake was cut off.
    sent = int(re.findall(r"accepted 0 (\d+)", output[: output.rindex("boot 1")])[-1])
    until(lambda: len(collector.arrivals) >= sent)
    collector.close()
    readings = readings_of(collector)
    numbers = [(one["boot"], one["sequence"]) for one in readings]
    assert numbers[:sent] == [(1, number) for number in range(1, sent + 1)]
    assert "online" not in collector.statuses[name]


def test_sleeping_board_without_broker_keeps_its_readings_and_sends_them_later(
    mosquitto, make_node
):
    about = {"interval_ms": 60_000, "sleep_above_ms": SLEEP_ABOVE_MS}
    board = make_node("ESP32_GENERIC", mosquitto, "alone", **about)
    # Subscribed before, as the board may be at the broker first.
    collector = Collector(mosquitto.host, mosquitto.port, "virtual-alone")
    mosquitto.stop()
    output = read_until(board.port, "accepted 0 3", act=board.power_on)
    assert output.count("deep sleep") == 2
    assert output.count("broker: ") == 2
    mosquitto.start()
    read_until(board.port, "connected")
    read_until(board.port, "deep sleep")
    board.unplug()
    until(lambda: len(collector.arrivals) >= 3)
    collector.close()
    readings = readings_of(collector)
    assert [one["sequence"] for one in readings][:3] == [1, 2, 3]
    # Each keeps the time at which it was measured.
    times = [one["time"] for one in readings]
    assert times == sorted(times)
    assert all(abs(one - time.time()) < 2 * SECONDS for one in times)
