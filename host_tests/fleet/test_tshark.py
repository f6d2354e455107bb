"""Packets counted type by type, as tshark counts them.

Real captures lie in the folder that UMQTT31_CAPTURES names; without it only simulated
ones are compared.
"""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from host_tests.fleet.captures import decode, simulated, types
from host_tests.fleet.simulate.run import Plan
from tools.fleet import schemas

_NAMED = os.environ.get("UMQTT31_CAPTURES")
CAPTURES = sorted(
    path
    for path in (Path(_NAMED).rglob("*") if _NAMED else ())
    if path.suffix in (".pcap", ".pcapng", ".cap")
)


def _tshark(path):
    command = ["tshark", "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE"]
    command += ["-Y", "mqtt", "-T", "fields", "-e", "mqtt.msgtype"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers = done.stdout.replace(",", "\n").split()
    return dict(Counter(schemas.PACKET_TYPES[int(number)] for number in numbers))


PLANS = {
    "plain": Plan(devices=30, readings=1500),
    "faults": Plan(devices=30, readings=1500, fault_rate=0.2, seed=2),
    "rough": Plan(devices=30, readings=1500, fault_rate=0.1, wire_rate=0.6, seed=3),
    "level 5": Plan(devices=12, readings=900, levels=(5,), fault_rate=0.1, seed=4),
}


@pytest.mark.parametrize("name", PLANS)
def test_counts_of_a_simulated_capture_equal_those_of_tshark(name, tmp_path):
    path = tmp_path / "fleet.pcap"
    path.write_bytes(simulated(PLANS[name])[0])
    assert types(decode(path)[0]) == _tshark(path)


def pytest_generate_tests(metafunc):
    """Real captures that are not there are not collected."""
    if "real_capture" in metafunc.fixturenames:
        metafunc.parametrize("real_capture", CAPTURES, ids=[path.name for path in CAPTURES])


if CAPTURES:

    def test_counts_of_a_real_capture_equal_those_of_tshark(real_capture):
        assert types(decode(real_capture)[0]) == _tshark(real_capture)
