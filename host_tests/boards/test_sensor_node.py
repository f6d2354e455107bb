"""The sensor node as it is flashed, each chip's own sensors and radio in stand-ins.

From a provisioned filesystem to a reading at a real broker, and over a reset.
"""

import pytest

from host_tests.boards.console import read_until
from host_tests.firmware.decoding import decode
from tools.boards.compile import build_tree, tree_files
from tools.boards.config import device_files
from tools.boards.profile import load_profile
from tools.demo.collector import Collector

TEMPERATURE, SIGNAL = 1, 5


def settings(path, broker, name):
    """A device.toml as a person writes it -> its path and the device's name."""
    path.write_text(
        f'client_id = "{name}"\nserver = "{broker.host}"\nport = {broker.port}\n'
        f'prefix = "virtual-{name}"\nstore = "journal"\nstreams = [1]\ninterval_ms = 100\n'
        'wifi_ssid = "workshop"\nwifi_password = "of no use here"\n'
    )
    return path


@pytest.mark.parametrize("name", ["ESP32_GENERIC", "ESP32_GENERIC_C3", "RPI_PICO_W"])
def test_provisioned_board_publishes_its_readings_and_obeys_a_reset(
    shared_mosquitto, make_board, tmp_path, name
):
    profile = load_profile(name)
    config = settings(tmp_path / "device.toml", shared_mosquitto, name)
    files = tree_files(build_tree(profile, tmp_path / "fs")) | device_files(config, profile)
    board = make_board(profile, files)
    collector = Collector(shared_mosquitto.host, shared_mosquitto.port, f"virtual-{name}")
    board.power_on()
    first = read_until(board.port, "connected")
    read_until(board.port, "accepted 0 20")
    collector.command(name, "reset")
    second = read_until(board.port, "connected") + read_until(board.port, "accepted 0 10")
    board.unplug()
    collector.wait_for_silence(0.3, 10)
    collector.close()
    assert f"boot 1 of {name} on {name}" in first
    assert f"boot 2 of {name} on {name}" in second
    readings = [decode(one.payload) for one in collector.arrivals]
    for boot in (1, 2):
        numbers = [one["sequence"] for one in readings if one["boot"] == boot]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers
    values = dict(readings[0]["values"])
    assert 2650 < values[TEMPERATURE] < 2750
    assert values[SIGNAL] == -50
