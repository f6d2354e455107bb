"""The firmware as it is, under real MicroPython: heap locked, and with a real broker."""

import contextlib
import time
from types import SimpleNamespace

import pytest

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import Certificates
from host_tests.brokers.ear import Ear
from host_tests.firmware.decoding import decode, readings_of
from host_tests.patience import SECONDS, until
from settings import problems
from tools.boards.profile import load_profile
from tools.demo.collector import Collector
from tools.demo.desk import HEAP_BYTES, DeskNode
from tools.demo.proxy import Proxy
from tools.micropython import choose
from tools.project import ROOT

PREFIX = "firmware-"
LEVELS = (3, 4, 5)
MODULES = [ROOT / folder for folder in ("lib", "firmware", "boards/desk", "host_tests/standin")]

LOCKED = """
import micropython
from clock import Clock
from reading import Reading
from sensors.internal import FreeHeap
from sensors.sht3x import SHT3x
from sensors.simulated import Simulated
from timekeeper import Timekeeper

class I2C:
    answer = b"\\xbe\\xef\\x92\\xbe\\xef\\x92"
    def writeto(self, address, data):
        pass
    def readfrom_into(self, address, buf):
        for i in range(6):
            buf[i] = self.answer[i]

reading = Reading("node-7", 0x0100, 3)
clock = Clock()
times = Timekeeper(clock)
times.hear(b"1800000000", False)
sensors = [Simulated(), SHT3x(I2C()), FreeHeap()]

def sample():
    for number in range(1, 31):
        reading.clear()
        for sensor in sensors:
            sensor.measure(reading)
        clock.now_ms += 10_000
        times.count()
        envelope = reading.number(2, number, times.uptime_s, times.high, times.low)
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


@contextlib.contextmanager
def started(node):
    """A node that runs, and is killed at the end."""
    node.start()
    try:
        yield node
    finally:
        node.kill()


def running(interpreter, place, heap_bytes=None, extra=None, **settings):
    broker, folder, device = place
    about = {"client_id": device, "server": broker.host, "port": broker.port}
    about |= {"prefix": PREFIX + device} | settings
    return started(DeskNode(interpreter, folder / "node", about, heap_bytes, extra))


@pytest.fixture
def collector(place):
    """Hears the node of this test."""
    broker, _, device = place
    made = Collector(broker.host, broker.port, PREFIX + device)
    yield made
    made.close()


def test_node_on_micropython_publishes_obeys_and_resets(micropython, place, collector):
    device = place[2]
    with running(micropython, place, streams=[0, 1, 2], interval_ms=50) as node:
        node.wait_until(lambda: node.accepted.get((1, 0), 0) >= 5, SECONDS, "readings")
        collector.command(device, "interval 20")
        node.wait_for_word("command", timeout_s=SECONDS)
        collector.command(device, "reset")
        assert node.wait(SECONDS) == 0
    report = node.report
    until(lambda: len(collector.arrivals) >= sum(report["accepted"]))
    until(lambda: collector.statuses[device][-1:] == ["offline"])
    assert report["interval_ms"] == 20
    assert report["undelivered"] == 0
    # The whole run worked without allocating while it was connected.
    assert report["unlocked_rounds"] == 0
    for stream in (0, 1, 2):
        readings = readings_of(collector, stream)
        assert [one["sequence"] for one in readings] == list(range(1, len(readings) + 1))
        assert len(readings) == report["accepted"][stream] == node.accepted[1, stream]
        assert {(one["device"], one["boot"]) for one in readings} == {(device, 1)}
    assert {one.qos for one in collector.arrivals if one.topic.endswith("/2")} == {2}
    assert collector.statuses[device] == ["online", "offline"]


@pytest.mark.parametrize("level", LEVELS)
def test_node_at_each_level_loses_nothing_by_a_pulled_plug(place, collector, level):
    """Its will is told; readings at QoS 1 and 2 in a journal, commands at QoS 2, heap locked."""
    device = place[2]
    with running(
        choose(), place, level=level, store="journal", streams=[1, 2], interval_ms=20
    ) as node:
        node.wait_until(lambda: node.accepted.get((1, 1), 0) >= 20, SECONDS, "readings")
        node.kill()
        until(lambda: collector.statuses[device] == ["online", "offline"])
        node.start()
        node.wait_until(lambda: node.accepted.get((2, 1), 0) >= 20, SECONDS, "readings")
        collector.command(device, "reset")
        assert node.wait(SECONDS) == 0
    places = {(boot, stream) for boot in (1, 2) for stream in (0, 1)}

    def arrived(boot, stream):
        readings = readings_of(collector, stream)
        return [one["sequence"] for one in readings if one["boot"] == boot]

    until(lambda: all(len(set(arrived(*place))) >= node.accepted[place] for place in places))
    assert node.report["unlocked_rounds"] == node.report["undelivered"] == 0
    for boot, stream in places:
        numbers = arrived(boot, stream)
        # The last ones before the plug was pulled may not have been printed yet.
        accepted = node.accepted[boot, stream]
        assert sorted(set(numbers))[:accepted] == list(range(1, accepted + 1))
        assert stream == 0 or len(numbers) == len(set(numbers))


def test_node_answers_each_command_of_a_burst(place):
    """Twice as many as its queue takes; none is lost, done or refused."""
    broker, _, device = place
    ids = {f"c{number}" for number in range(40)}
    heard, root = {}, f"{PREFIX}{device}/{device}"
    with Ear(broker.port) as ear, running(choose(), place, interval_ms=60_000) as node:
        node.wait_for_word("connected", timeout_s=SECONDS)
        for name in ids:
            ear.client.publish(f"{root}/command", f"#{name} sample", qos=2)
        while heard.keys() != ids:
            heard.update([ear.next(f"{root}/answer").split(" ", 1)])
    assert set(heard.values()) <= {"done", "refused: too many at once"}
    assert list(heard.values()).count("done") >= 8


def test_node_with_its_heap_locked_ends_by_one_ctrl_c(micropython, place, collector):
    """It took it for an allocation and went on, so no tool reached a running board.

    Without a sample, and with every message acknowledged: nothing goes on but poll().
    """
    with running(micropython, place, interval_ms=60_000) as node:
        node.wait_until(lambda: len(collector.arrivals) == 1, SECONDS, "reading")
        collector.command(place[2], "sample")
        node.wait_until(lambda: len(collector.arrivals) == 2, SECONDS, "second reading")
        node.interrupt()
        assert node.wait(SECONDS) in (1, 130)  # newer interpreters say Ctrl-C as shells do
    assert node.lines[-1] == "KeyboardInterrupt: "


FLOATING = """\
import board

class Floating:
    celsius = 20.0
    def measure(self, reading):
        self.celsius += 0.25
        reading.add(1, int(self.celsius * 100))

class Wrong:
    def measure(self, reading):
        reading.add(1, 21.5)

board.sensors = lambda: [Floating(), Wrong()]
from start import start
start(board)
"""


def test_node_with_sensors_that_allocate_or_are_wrong_publishes_while_it_is_online(
    micropython, place, collector, tmp_path
):
    (tmp_path / "floating.py").write_text(FLOATING)
    extra = tmp_path / "floating.py"
    with running(micropython, place, extra=extra, interval_ms=50) as node:
        node.wait_for_word("connected", timeout_s=SECONDS)
        node.wait_for_readings(5, timeout_s=SECONDS)
    assert node.counts["sensor:"] == 1
    until(lambda: len(collector.arrivals) >= 6)
    values = [one["values"] for one in readings_of(collector)[:6]]
    assert values == [[(1, 2000 + 25 * number)] for number in range(1, 7)]


def test_node_that_loses_its_broker_says_so_and_stays_locked(place, collector):
    """Each error raised with the heap locked was one of memory, and told nobody."""
    broker, _, device = place
    proxy = Proxy(broker.port)
    with running(choose(), place, interval_ms=60_000, port=proxy.port) as node:
        node.wait_for_word("connected", timeout_s=SECONDS)
        proxy.cut()
        node.wait_for_word("connected", 2, SECONDS)
        collector.command(device, "reset")
        assert node.wait(SECONDS) == 0
    proxy.close()
    assert [line for line in node.lines if line.startswith("broker: ")]
    assert node.report["unlocked_rounds"] == 0


def test_node_takes_the_time_that_somebody_publishes(place, collector):
    """Later than the computer's, so that the readings show whose it is."""
    topic = PREFIX + place[2] + "/all/time"
    told = int(time.time()) + 100_000_000
    with running(choose(), place, interval_ms=50, time_topic=topic) as node:
        node.wait_until(lambda: collector.statuses[place[2]] == ["online"], SECONDS, "online")
        with Ear(place[0].port) as somebody:
            somebody.say(topic, str(told), qos=1)
        node.wait_for_readings(10, timeout_s=SECONDS)
    until(lambda: collector.statuses[place[2]][-1] == "offline")
    first, *_, last = [one["time"] for one in readings_of(collector)]
    assert first < told <= last < told + 60


def test_node_without_broker_keeps_sampling_and_tells_why(place):
    with running(choose(), place, port=1, interval_ms=20) as node:
        node.wait_for_readings(16, timeout_s=SECONDS)
        node.wait_for_word("broker:", timeout_s=SECONDS)
    assert any("ECONNREFUSED" in line for line in node.lines)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Certificates of the authority that signed the broker's, and of another one."""
    made = Certificates.usual(tmp_path_factory.mktemp("certificates"), "node")
    made.make("other", is_authority=True)
    return made


def tls_node(certificates, folder, broker, ca="ca", **settings):
    """A node whose files for TLS lie where a board has them."""
    folder.mkdir()
    for name in (f"{ca}.crt", "node.crt", "node.key"):
        (folder / name).write_bytes((certificates.path / name).read_bytes())
    about = {"client_id": "t", "server": "localhost", "port": broker.port, "tls": f"{ca}.crt"}
    interpreter = choose(bits=64, certificates=True)
    return started(DeskNode(interpreter, folder, about | {"interval_ms": 50} | settings))


def test_node_with_tls_and_a_wrong_authority_says_why_and_goes_on(certificates, tmp_path):
    with TLSMosquitto(certificates.path, "server") as broker:
        with tls_node(
            certificates, tmp_path / "node", broker, "other", max_mqueue_len=200
        ) as node:
            node.wait_for_word("broker:", timeout_s=SECONDS)
            node.wait_for_readings(5, timeout_s=SECONDS)
    told = [line for line in node.lines if line.startswith("broker: ")]
    assert len(told) == 1
    assert told[0].endswith(": certificate of localhost: not trusted")
    assert "connected" not in node.lines


@pytest.mark.parametrize("level", LEVELS)
def test_node_at_each_level_connects_with_its_own_certificate(certificates, tmp_path, level):
    """To a broker that demands one, with the smallest buffer that its names leave.

    What the node prints shows nothing of its key.
    """
    seen = {3: "p1", 4: "p2", 5: "p5"}[level]
    folder = tmp_path / "node"
    with TLSMosquitto(certificates.path, "server", require_certificate=True) as broker:
        more = {"tls_cert": "node.crt", "tls_key": "node.key", "level": level}
        more |= {"user": "u" * 60, "password": "p" * 60}
        (told,) = problems(
            {"client_id": "t", "server": "b", "buffer_size": 128} | more | {"tls": "ca.crt"}
        )
        more["buffer_size"] = int(told.split()[-1])
        with tls_node(certificates, folder, broker, **more) as node:
            node.wait_for_word("connected", timeout_s=SECONDS)
            node.wait_for_readings(20, timeout_s=SECONDS)
        log = broker.log_text()
    assert f"as t ({seen}, c0, k60" in log
    assert "Received PUBLISH from t " in log
    key = (folder / "node.key").read_text().splitlines()[1:-1]
    assert not any(part in line for part in key for line in node.lines)


def test_node_without_its_certificate_is_refused_and_says_so(certificates, tmp_path):
    with TLSMosquitto(certificates.path, "server", "1.2", require_certificate=True) as broker:
        with tls_node(certificates, tmp_path / "node", broker) as node:
            node.wait_for_word("broker:", timeout_s=SECONDS)
    assert any("wants another certificate from us" in line for line in node.lines)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"client_id": "a/b"}, 'settings.json: client_id is "a/b"; '
         "allowed: 1 to 23 characters without / + # or control characters"),
        ({"tls_cert": "lost.crt", "tls_key": "node.key"}, "ssl: cannot read cert 'lost.crt'"),
    ],
)  # fmt: skip
def test_node_that_cannot_start_says_why_and_stops(certificates, tmp_path, settings, said):
    nobody = SimpleNamespace(port=1)
    with tls_node(certificates, tmp_path / "node", nobody, **settings) as node:
        assert node.wait(SECONDS) == 2
    (line,) = node.lines
    assert line.startswith(f"cannot start: {said}")


def test_node_with_journal_and_updates_has_room_in_the_heap_of_an_esp32(place):
    """What opens the journal and what makes the node lay in it at a time."""
    heap_bytes = load_profile("ESP32_GENERIC").memory.heap
    settings = {"store": "journal", "update_key": "00" * 32, "interval_ms": 20}
    with running(choose(bits=32), place, heap_bytes, **settings) as node:
        node.wait_for_word("connected", timeout_s=SECONDS)
        node.wait_for_readings(20, timeout_s=SECONDS)
