"""The firmware as it is, under real MicroPython: heap locked, and with a real broker."""

import pytest

from host_tests.firmware.decoding import decode
from tools.brokers.certificates import HERE, Certificates
from tools.brokers.mosquitto import TLSMosquitto
from tools.demo.collector import Collector
from tools.desk import HEAP_BYTES, DeskNode
from tools.micropython import ROOT, choose

PREFIX = "firmware-"
MODULES = (ROOT / "lib", ROOT / "firmware", ROOT / "boards" / "desk")

LOCKED = """
import micropython
from reading import Reading
from sensors.health import FreeHeap
from sensors.sht3x import SHT3x
from sensors.simulated import Simulated
from walltime import WallTime

class I2C:
    answer = b"\\xbe\\xef\\x92\\xbe\\xef\\x92"
    def writeto(self, address, data):
        pass
    def readfrom_into(self, address, buf):
        for i in range(6):
            buf[i] = self.answer[i]

reading = Reading("node-7", 0x0100, 3)
walltime = WallTime()
walltime.set(1800000000, 0)
sensors = [Simulated(), SHT3x(I2C()), FreeHeap()]

def sample():
    for number in range(1, 31):
        reading.clear()
        for sensor in sensors:
            sensor.measure(reading)
        walltime.read(number * 10)
        envelope = reading.number(2, number, number * 10, walltime.high, walltime.low)
        if number == 30:
            micropython.heap_unlock()
    print(bytes(envelope).hex())

micropython.heap_lock()
sample()
"""


def test_sampling_with_heap_locked_writes_the_whole_envelope(micropython):
    done = micropython.run(LOCKED, heap_bytes=HEAP_BYTES[micropython.bits], micropypath=MODULES)
    assert done.returncode == 0, done.stdout + done.stderr
    found = decode(bytes.fromhex(done.stdout))
    assert (found["device"], found["boot"], found["stream"]) == ("node-7", 3, 2)
    assert (found["sequence"], found["uptime_s"]) == (30, 300)
    assert found["time"] == 1_800_000_300
    *values, (kind, free_bytes) = found["values"]
    assert values == [(1, 1800), (2, 4600), (1, 8552), (2, 7458)]
    assert kind == 6
    assert 0 < free_bytes < HEAP_BYTES[micropython.bits]


@pytest.fixture
def place(shared_mosquitto, tmp_path, request):
    """(broker, folder, device) of this test's own."""
    name = "".join(c for c in request.node.name if c.isalnum())
    return shared_mosquitto, tmp_path, name[-23:]


def start_node(interpreter, place, **settings):
    broker, folder, device = place
    node = DeskNode(
        interpreter,
        folder / "node",
        {
            "client_id": device,
            "server": broker.host,
            "port": broker.port,
            "prefix": PREFIX + device,
        }
        | settings,
    )
    node.start()
    return node


def collect(place):
    broker, _, device = place
    return Collector(broker.host, broker.port, PREFIX + device)


def test_node_on_micropython_publishes_obeys_and_resets(micropython, place):
    collector = collect(place)
    node = start_node(micropython, place, streams=[0, 1, 2], interval_ms=50)
    device = place[2]
    try:
        node.wait_until(lambda: node.accepted.get((1, 0), 0) >= 5, 30, "readings")
        collector.command(device, "interval 20")
        node.wait_until(lambda: "command interval 20" in node.lines, 30, "command")
        collector.command(device, "reset")
        assert node.wait(30) == 0
    finally:
        node.kill()
    collector.wait_for_silence(0.3, 10)
    collector.close()
    report = node.report
    assert report["interval_ms"] == 20
    assert report["undelivered"] == 0
    # The whole run worked without allocating while it was connected.
    assert report["unlocked_rounds"] == 0
    for stream in (0, 1, 2):
        readings = [
            decode(one.payload) for one in collector.arrivals if one.topic.endswith(f"/{stream}")
        ]
        assert [one["sequence"] for one in readings] == list(range(1, len(readings) + 1))
        assert len(readings) == report["accepted"][stream] == node.accepted[1, stream]
        assert {(one["device"], one["boot"]) for one in readings} == {(device, 1)}
    assert {one.qos for one in collector.arrivals if one.topic.endswith("/2")} == {2}
    assert collector.statuses[device] == ["online", "offline"]


def test_node_that_dies_is_reported_offline_and_counts_its_next_boot(place):
    collector = collect(place)
    device = place[2]
    node = start_node(choose(), place, interval_ms=50)
    try:
        for boot in (1, 2):
            node.wait_until(lambda: collector.statuses[device][-1:] == ["online"], 30, "online")
            node.wait_until(lambda: node.accepted.get((node.boot, 0), 0) > 2, 30, "readings")
            assert node.boot == boot
            node.kill()
            collector.wait_for_silence(0.3, 10)
            assert collector.statuses[device][-1] == "offline"
            node.start()
    finally:
        node.kill()
        collector.close()
    assert {decode(one.payload)["boot"] for one in collector.arrivals} >= {1, 2}


def test_node_with_wrong_settings_says_so_and_stops(tmp_path):
    node = DeskNode(choose(), tmp_path, {"client_id": "a/b", "server": "127.0.0.1"})
    node.start()
    assert node.wait(30) == 2
    assert node.lines == [
        'cannot start: settings.json: client_id is "a/b"; '
        "allowed: 1 to 23 characters without / + # or control characters"
    ]


def test_node_without_broker_keeps_sampling_and_tells_why(place):
    broker, folder, _ = place
    node = DeskNode(
        choose(),
        folder,
        {"client_id": "alone", "server": broker.host, "port": 1, "interval_ms": 20},
    )
    node.start()
    try:
        node.wait_until(lambda: node.counts["broker:"] > 0, 30, "reason")
        node.wait_until(lambda: node.accepted_in_stream(0) >= 16, 30, "readings")
    finally:
        node.kill()
    assert any("ECONNREFUSED" in line for line in node.lines)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Certificates of the authority that signed the broker's, and of another one."""
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.make("ca", is_authority=True)
    made.make("other", is_authority=True)
    made.make("server", "ca", hosts=HERE)
    return made


@pytest.mark.parametrize(("ca", "is_right"), [("ca", True), ("other", False)])
def test_node_with_tls_connects_or_says_why_and_goes_on(certificates, tmp_path, ca, is_right):
    with TLSMosquitto(certificates.path, "server") as broker:
        folder = tmp_path / "node"
        folder.mkdir()
        (folder / "ca.pem").write_bytes((certificates.path / f"{ca}.crt").read_bytes())
        settings = {"server": "localhost", "port": broker.port, "tls": "ca.pem"}
        node = DeskNode(
            choose(bits=64),
            folder,
            {"client_id": "t", "interval_ms": 50, "max_mqueue_len": 200} | settings,
        )
        node.start()
        try:
            if is_right:
                node.wait_until(lambda: "connected" in node.lines, 30, "connection")
            else:
                node.wait_until(lambda: node.counts["broker:"] > 0, 30, "reason")
                count = node.accepted_in_stream(0)
                node.wait_until(lambda: node.accepted_in_stream(0) > count + 5, 30, "readings")
        finally:
            node.kill()
    assert ("connected" in node.lines) == is_right
