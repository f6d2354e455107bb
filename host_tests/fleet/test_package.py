"""The zipped code stands alone: workers of a cluster need nothing else of this project."""

import subprocess
import sys

from host_tests.fleet.captures import simulated
from host_tests.fleet.simulate.run import Plan
from host_tests.patience import SECONDS
from tools.fleet.spark import engine

_DECODE = """
import sys
sys.path.insert(0, sys.argv[1])
from tools.fleet import mqtt
from tools.fleet.capture.files import Source
from tools.fleet.capture.frames import Tally
from tools.fleet.decode.decoder import decoded, only_packets
from tools.fleet.spark import job, steps
assert all(sys.argv[1] in one.__file__ for one in (job, steps, mqtt))
found = decoded(Source(sys.argv[2], "a.pcap", "default"), {1883}, Tally())
print(sum(only_packets(one).num_rows for one in found))
"""


def test_package_when_it_is_all_of_the_project_then_it_decodes_a_capture(tmp_path):
    code, capture = tmp_path / "fleet.zip", tmp_path / "a.pcap"
    assert engine.package(code) > 50
    data, truth = simulated(Plan(devices=2, readings=20, seed=1))
    capture.write_bytes(data)
    command = [sys.executable, "-I", "-c", _DECODE, code, capture]
    about = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(command, **about, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == sum(truth.packets.values())


def test_package_when_written_again_then_it_is_the_same_file(tmp_path):
    engine.package(tmp_path / "a.zip")
    engine.package(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
