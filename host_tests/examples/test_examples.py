"""Every program of `examples/` does what it says, under CPython and real MicroPython.

Programs run as they are, but for the constants at their top: where the broker is, and
how often they say something; and for the pauses before they connect again.
"""

import contextlib
import json
import queue
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from host_tests.brokers import Mosquitto, TLSMosquitto
from host_tests.brokers.certificates import Certificates
from host_tests.brokers.ear import Ear
from host_tests.docs.typed import Terminal
from host_tests.patience import SECONDS, until
from host_tests.running import CPYTHON
from tools.demo.listener import Listener
from tools.micropython import interpreters
from tools.project import ROOT

EXAMPLES = ROOT / "examples"
DESK = Path(__file__).parent / "desk"


class Program:
    """One example with its constants set, in a folder that is the board's filesystem."""

    def __init__(self, interpreter, folder, name, **constants):
        self._interpreter = interpreter
        self._folder = folder
        self._path = folder / "main.py"
        code = (EXAMPLES / f"{name}.py").read_text()
        for key, value in constants.items():
            code, count = re.subn(rf"^{key} = .+$", f"{key} = {value!r}", code, flags=re.MULTILINE)
            assert count == 1, key
        self._path.write_text("import hurry\n" + code)

    def running(self):
        """It runs meanwhile, and is killed then."""
        paths = self._interpreter.environment([DESK, ROOT / "lib", ROOT / "host_tests/standin"])
        return Terminal(self._interpreter.argv(self._path), self._folder, paths)

    def run(self):
        """Run it to its end -> what it printed."""
        with self.running() as terminal:
            text = "".join(f"{line}\n" for line in terminal.lines)
            assert terminal.process.wait(SECONDS) == 0, text
        return text


# The oldest MicroPython, with the object sizes of a microcontroller.
RUNNERS = [CPYTHON, *interpreters()[:1]]


@pytest.fixture(params=RUNNERS, ids=lambda one: one.id)
def program(request, tmp_path):
    """program(name, **constants) -> a Program in the test's folder."""
    return lambda name, **constants: Program(
        request.param, tmp_path, name, SERVER="127.0.0.1", **constants
    )


def test_every_example_has_its_test_and_its_line():
    tested = set(re.findall(r'"(\w+)"', Path(__file__).read_text()))
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names <= tested
    text = (EXAMPLES / "README.md").read_text()
    assert sorted(re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \|", text, re.M)) == sorted(names)


def test_every_example_names_level_3():
    for path in sorted(EXAMPLES.glob("*.py")):
        text = path.read_text()
        assert re.findall(r"level=(\d)", text) == ["3"] * text.count("MQTTClient("), path.name


def await_attempt(port, folder):
    """Wait until somebody tries to reach the broker at `port`, which is not there.

    The link was not there before either: it comes when it was tried."""
    if (folder / "no_link.txt").exists():
        until((folder / "link_tried.txt").exists)
        (folder / "no_link.txt").unlink()
        (folder / "link_tried.txt").unlink()
    with socket.create_server(("127.0.0.1", port)) as nobody:
        nobody.settimeout(SECONDS)
        nobody.accept()[0].close()


def live_through_outages(program, broker, folder, hear, listen=Ear, at_end=lambda *_: None):
    """Broker and link are off at the start, then the broker, then both -> what hear(ear) found
    each time when both were back; at_end(ear, process) then."""
    heard = queue.Queue()
    with listen(broker.port, "ear"):
        broker.stop()
    (folder / "no_link.txt").touch()
    found = []
    with program.running() as process:
        for outage in range(3):
            await_attempt(broker.port, folder)
            broker.start()
            with listen(broker.port, "ear", heard) as ear:
                found.append(hear(ear))
                if outage == 1:
                    (folder / "no_link.txt").touch()
                elif outage == 2:
                    at_end(ear, process)
                broker.stop()
    return found


def hear_new(topic, known):
    """-> a function for live_through_outages that adds eight more numbers to `known`, each once,
    however often it came."""

    def hear(ear):
        count = len(known) + 8
        while len(known) < count:
            number = int(ear.next(topic))
            if number not in known:
                known.append(number)

    return hear


@pytest.mark.parametrize(
    ("name", "topic", "said", "printed"),
    [
        ("minimal", "home/sensor-7/count", ("home/sensor-7/led", "on"), "led is on"),
        ("asyncio_tasks", "home/desk-1/count", ("home/desk-1/period", "soon"), "not a number:"),
        ("ethernet", "home/pump-2/count", ("home/pump-2", "unheard"), "network: 10.0.0.2"),
    ],
)
def test_example_keeps_what_it_samples_through_outages_and_hears_what_is_said(
    program, mosquitto, tmp_path, name, topic, said, printed
):
    sampler = program(name, PORT=mosquitto.port, PERIOD_MS=100)
    known = []

    def hear_it(ear, process):
        ear.say(*said, retain=True, qos=1)
        assert any(line.startswith(printed) for line in process.lines)  # reads until then

    live_through_outages(sampler, mosquitto, tmp_path, hear_new(topic, known), at_end=hear_it)
    # As many as may wait from before the first connection, and never one before an older one.
    assert known[:16] == list(range(1, 17))
    assert known == sorted(known)


@pytest.mark.parametrize(
    ("name", "topic"),
    [("home_assistant", "home/cellar/state"), ("readings", "home/logger-4/reading")],
)
def test_example_goes_on_after_each_outage(program, mosquitto, tmp_path, name, topic):
    (tmp_path / "time.txt").touch()
    sampler = program(name, PORT=mosquitto.port, PERIOD_MS=50)

    def hear(ear):
        return [ear.next(topic) for _ in range(20)]

    assert len(live_through_outages(sampler, mosquitto, tmp_path, hear)) == 3


def test_commands_are_obeyed_after_each_outage(program, mosquitto, tmp_path):
    numbers = iter(range(3))

    def hear(ear):
        number = next(numbers)
        ear.say("home/door/command", '{"id": %d, "do": "state"}' % number, retain=True, qos=2)
        while (answer := json.loads(ear.next("home/door/answer")))["id"] != number:
            pass
        return answer["id"]

    door = program("commands", PORT=mosquitto.port)
    assert live_through_outages(door, mosquitto, tmp_path, hear) == [0, 1, 2]


def test_deep_sleep_five_wakes_two_without_broker_all_arrive(program, mosquitto):
    meter = program("deep_sleep", PORT=mosquitto.port, AWAKE_MS=20_000)
    with Ear(mosquitto.port) as ear:
        assert "all acknowledged" in meter.run()
        assert ear.next("home/meter-1/wake") == "1"
    mosquitto.stop()
    for _ in range(2):
        assert "kept for the next wake: " in meter.run()
    mosquitto.start()
    with Ear(mosquitto.port) as ear:
        for _ in range(2):
            assert "all acknowledged" in meter.run()
        assert [ear.next("home/meter-1/wake") for _ in range(4)] == ["2", "3", "4", "5"]


def test_deep_sleep_is_awake_for_a_bounded_time_whoever_is_silent(program, tmp_path):
    """It waited for each one anew."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        meter = program("deep_sleep", PORT=silent.getsockname()[1], AWAKE_MS=3000)
        assert "kept for the next wake: no answer in time\n" in meter.run()
        (tmp_path / "no_link.txt").touch()
        assert "kept for the next wake: " in meter.run()


@pytest.mark.parametrize(("port", "failing"), [(1883, "journal.bin"), (65536, "nothing")])
def test_deep_sleep_when_something_fails_then_it_sleeps_all_the_same(
    program, tmp_path, port, failing
):
    """It ended with a traceback, awake, until the battery was empty."""
    (tmp_path / failing).mkdir()
    assert "kept for the next wake: " in program("deep_sleep", PORT=port).run()


def test_tls_client_shows_its_certificate_through_outages(program, tmp_path):
    (tmp_path / "time.txt").touch()
    certificates = Certificates.usual(tmp_path, "device")
    with TLSMosquitto(tmp_path, "server", "1.2", require_certificate=True) as broker:

        def hear(_):
            count = broker.log_text().count("PUBACK to sensor-7") + 8
            until(lambda: broker.log_text().count("PUBACK to sensor-7") >= count)

        client = program("tls_client", PORT=broker.port, PERIOD_MS=100)
        # Its log tells what it got: an ear would need a certificate, too.
        live_through_outages(client, broker, tmp_path, hear, lambda *_: contextlib.nullcontext())
        broker.start()
        certificates.make("other", is_authority=True)
        certificates.make("device", "other")
        with program("tls_client", PORT=broker.port, PERIOD_MS=100).running() as process:
            assert any("certificate" in line for line in process.lines)


@pytest.mark.parametrize("is_off", ["home", "cloud"])
def test_two_brokers_go_on_after_each_outage_of_either(program, mosquitto, tmp_path, is_off):
    numbers = map(str, range(3))
    with Mosquitto() as cloud, Ear(cloud.port) as sky, Ear(mosquitto.port) as home:
        gateway = program(
            "two_brokers", PORT=mosquitto.port, CLOUD="127.0.0.1", CLOUD_PORT=cloud.port
        )

        def hear(ear):
            ends = (ear, sky) if is_off == "home" else (home, ear)
            number = next(numbers)
            ends[0].say("home/a", number, retain=True, qos=1)
            while ends[1].next("site-1/home/a") != number:
                pass

        broker = mosquitto if is_off == "home" else cloud
        assert len(live_through_outages(gateway, broker, tmp_path, hear)) == 3


def test_home_assistant_gets_description_state_and_availability(program, mosquitto):
    with Ear(mosquitto.port) as ear:
        with program("home_assistant", PORT=mosquitto.port, PERIOD_MS=50).running():
            assert ear.next("home/cellar/available") == "online"
            state = json.loads(ear.next("home/cellar/state"))
        assert ear.next("home/cellar/available") == "offline"  # its will
    with Ear(mosquitto.port) as later:
        found = json.loads(later.next("homeassistant/sensor/cellar_temperature/config"))
    assert found["state_topic"] == "home/cellar/state"
    assert found["availability_topic"] == "home/cellar/available"
    assert found["value_template"] == "{{ value_json.%s }}" % next(iter(state))


def test_commands_are_answered_once_also_those_said_while_it_was_away(program, mosquitto):
    door = program("commands", PORT=mosquitto.port)
    with Ear(mosquitto.port) as ear:

        def order(text):
            ear.say("home/door/command", text, qos=2)

        def answer():
            return json.loads(ear.next("home/door/answer"))

        order('{"id": 0, "do": "state"}')  # nobody there, nobody known: lost
        with door.running():
            ear.say("home/door/command", '{"id": 1, "do": "state"}', retain=True, qos=2)
            assert answer() == {"id": 1, "result": "closed"}
            order('{"id": 2, "do": "open"}')
            assert answer() == {"id": 2, "result": "open"}
            order('{"id": 3, "do": "jump"}')
            refused = answer()
            assert refused["id"] == 3
            assert "jump" in refused["error"]
            order("[")
            assert answer()["id"] is None
        ear.say("home/door/command", "", retain=True, qos=2)
        for number in (4, 5):
            order('{"id": %d, "do": "state"}' % number)
        with door.running():
            found = [None]
            while found[-1] != 5:
                found.append(answer()["id"])
            # Beside them the end of the kept command, and perhaps "[" once more, which
            # has no number: it was not acknowledged when the power went.
            assert [number for number in found if number is not None] == [4, 5]
            order('{"id": 6, "do": "close"}')
            assert answer() == {"id": 6, "result": "closed"}


def test_readings_before_the_clock_was_set_get_their_time_and_outlive_a_reset(
    program, mosquitto, tmp_path
):
    logger = program("readings", PORT=mosquitto.port, PERIOD_MS=100)
    start_s = int(time.time())
    with logger.running() as process:
        assert next(process.lines).startswith("no time:")
        assert next(process.lines).startswith("no time:")
        mosquitto.stop()
        (tmp_path / "time.txt").touch()
        lines = (line for line in process.lines if line.startswith("{"))
        stamped = [json.loads(next(lines)) for _ in range(8)]
    mosquitto.start()
    # What was said before the last of them is on flash, and had no broker.
    with Ear(mosquitto.port) as ear, logger.running():
        found = [json.loads(ear.next("home/logger-4/reading")) for _ in range(7)]
    assert found == stamped[:7]
    times = [one["at"] for one in stamped]
    assert times == sorted(times)
    assert start_s - 1 <= times[0] and times[-1] <= time.time()  # both clocks in whole seconds


# Its ticks come round within two seconds, as within two weeks.
TWO_WEEKS = """\
import time
import umqtt31
started, ticks_ms = time.time(), time.ticks_ms
def later():
    return (ticks_ms() + 6 * 86_400_000 * min(int(time.time() - started), 2)) % (1 << 30)
time.ticks_ms = later
"""


def test_readings_after_two_weeks_have_their_time(tmp_path):
    """Six days after the clock was set they were twelve too old."""
    (tmp_path / "time.txt").touch()
    logger = Program(
        CPYTHON, tmp_path, "readings", SERVER="127.0.0.1", PORT=1, PERIOD_MS=4 * 86_400_000
    )
    main = tmp_path / "main.py"
    main.write_text(TWO_WEEKS + main.read_text())
    start_s = int(time.time())
    with logger.running() as process:
        lines = (line for line in process.lines if line.startswith("{"))
        times = [json.loads(next(lines))["at"] for _ in range(4)]
    assert start_s <= times[0] <= times[-1] <= time.time()


def test_ethernet_says_whether_its_cable_is_in(program, tmp_path):
    (tmp_path / "no_link.txt").touch()
    with program("ethernet", PERIOD_MS=50).running() as process:
        assert next(process.lines) == "network: no cable"
        (tmp_path / "no_link.txt").unlink()
        assert next(process.lines) == "network: 10.0.0.2"


class Modem:
    """Plays a modem: AT commands, then a connection to the broker that it passes through."""

    def __init__(self, folder, broker_port):
        self._folder = folder
        self._carrier = folder / "carrier.txt"
        self._broker_port = broker_port
        self.broker = None
        self.orders = []
        self._listener = Listener(self._serve)
        (folder / "modem.txt").write_text(str(self._listener.port))

    def close(self):
        self._listener.close()

    def _serve(self, board):
        self._board = board
        line = b""
        with board, contextlib.suppress(ConnectionError):
            while data := board.recv(4096):
                if self._carrier.exists():
                    with contextlib.suppress(OSError):  # the link may end just now
                        self.broker.sendall(data)
                    continue
                line = (line + data).replace(b"+++", b"")
                while b"\r\n" in line:
                    order, line = line.split(b"\r\n", 1)
                    self._obey(order)
        if self.broker:
            self.broker.close()

    def _obey(self, order):
        self.orders.append(order)
        if not order.startswith(b"AT+CIPSTART"):
            self._board.sendall(b"\r\nOK\r\n")
            return
        if (self._folder / "no_link.txt").exists():
            (self._folder / "link_tried.txt").touch()
            self._board.sendall(b"\r\nERROR\r\n")
            return
        try:
            self.broker = socket.create_connection(("127.0.0.1", self._broker_port))
        except OSError:
            self._board.sendall(b"\r\nOK\r\n\r\nCONNECT FAIL\r\n")
            return
        self._carrier.touch()
        self._board.sendall(b"\r\nOK\r\n\r\nCONNECT\r\n")
        threading.Thread(target=self._pass_back, args=(self.broker,), daemon=True).start()

    def _pass_back(self, broker):
        with contextlib.suppress(OSError):
            while data := broker.recv(4096):
                self._board.sendall(data)
        self._carrier.unlink(missing_ok=True)


def test_uart_modem_dials_again_when_the_link_ends(program, mosquitto, tmp_path):
    modem = Modem(tmp_path, mosquitto.port)
    with Ear(mosquitto.port) as ear:
        with program("uart_modem", PORT=mosquitto.port, PERIOD_MS=50).running():
            assert ear.next("home/tank-3/count") == "1"
            assert ear.next("home/tank-3/count") == "2"
            modem.broker.shutdown(socket.SHUT_RDWR)  # it hangs up
            # QoS 2 and a kept session: none is missing, none comes twice.
            assert [ear.next("home/tank-3/count") for _ in range(40)] == [
                str(number) for number in range(3, 43)
            ]
    modem.close()
    # The second may stand behind what was cut off half written.
    assert b"\n".join(modem.orders).count(b"AT+CIPMODE=1") == 2


def test_uart_modem_loses_nothing_through_outages(program, mosquitto, tmp_path):
    modem = Modem(tmp_path, mosquitto.port)
    tank = program("uart_modem", PORT=mosquitto.port, PERIOD_MS=100)
    known = []
    live_through_outages(tank, mosquitto, tmp_path, hear_new("home/tank-3/count", known))
    modem.close()
    assert known[:16] == list(range(1, 17))
    assert known == sorted(known)
