"""make watch: what devices publish, in one line each."""

import json
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.ear import Ear
from host_tests.patience import SECONDS
from host_tests.test_terminal import CLASSES
from tools.boards.clock import publish_time
from tools.boards.errors import BoardError
from tools.boards.watch import connect, line_of
from tools.boards.watch import watch as listen
from tools.demo.listener import Listener
from tools.demo.proxy import Proxy
from tools.project import ROOT

ARRIVED = datetime(2026, 11, 22, 3, 0, 7, tzinfo=UTC)
TIME = int(datetime(2026, 11, 22, 3, 0, 1, tzinfo=UTC).timestamp())


def envelope(stream, *values, time=TIME, version=2):
    head = bytes([0x75, version, 2, 1]) + b"".join(n.to_bytes(4, "big") for n in (3, 12, 86465))
    head += bytes([stream, len(values)]) + b"hall-1".ljust(23, b"\0")
    body = b"".join(bytes([kind]) + n.to_bytes(4, "big", signed=True) for kind, n in values)
    return head + body + (time.to_bytes(4, "big") if version == 2 else b"")


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """The computer's time zone, for times that people read."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


READING = envelope(0, (1, 2150), (2, 4520), (5, -61), (200, 7))
HEALTH = envelope(255, (16, 3), (6, 142336), (17, 99000), (18, 2), (19, 0), (20, 1000), (21, 1))
# Behind "sensors/"; what a line says behind its day and hour, or None.
LINES = [
    ("hall-1/reading/0", READING,
     "01 hall-1 3/0/12: 21.50 °C, 45.2 %, -61 dBm, kind 200: 7"),
    ("north/hall-1/reading/0", envelope(0, (4, 3312), time=0),
     "07 (arrived) hall-1 3/0/12: 3.31 V"),
    ("hall-1/reading/1", envelope(1, version=1), "07 (arrived) hall-1 3/1/12: no values"),
    ("hall-1/health", HEALTH,
     "01 hall-1 health: boot 3, up 1 day, 0:01:05, firmware 2.1, reset by its watchdog, "
     "142,336 B free, largest block 99,000 B, 2 reconnects, 0 drops, 10.0 % full, "
     "1 corrupt pages"),
    ("hall-1/status", b"online", "07 hall-1 is online"),
    ("hall-1/answer", b"17 done", "07 hall-1 answers: 17 done"),
    ("hall-1/fault", "journal: …".encode(), "07 hall-1 fault: journal: …"),
    ("hall-1/fault", b"", "07 hall-1 fault: none"),
    ("north/hall-1/update/answer", b"0123456789abcdef rolled back",
     "07 hall-1 update: 0123456789abcdef rolled back"),
    # Without the proof behind it.
    ("hall-1/update/answer", b"0123456789abcdef refused: flash: 28 " + b"0" * 32,
     "07 hall-1 update: 0123456789abcdef refused: flash: 28"),
    ("hall-1/update/answer", b"0123456789abcdef have 946 of 473", None),
    ("hall-1/update", b"O12345678\0\0\1\0", None),
    ("hall-1/command", b"#17 reset", None),
    ("hall-1/status", b"up\x1b[2J\n2026-11-22 03:00:07 hall-2 is \xc2\x9b2Joffline",
     "07 hall-1 is up\ufffd[2J\ufffd2026-11-22 03:00:07 hall-2 is \ufffd2Joffline"),
    ("hall-1/reading/0", b"nonsense", None),
    ("hall-1/reading/0", READING + b"\0", None),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "payload", "line"), LINES)
def test_line_of_message_is_what_a_person_wants_to_know(topic, payload, line):
    found = line_of(f"sensors/{topic}", payload, ARRIVED)
    assert found == (line and f"2026-11-22 03:00:{line}")
    assert line_of("lonely", b"online", ARRIVED) is None


def test_line_of_message_as_json_has_numbers_in_their_units():
    found = json.loads(line_of("sensors/hall-1/reading/0", READING, ARRIVED, as_json=True))
    assert found["values"] == {"temperature": 21.5, "humidity": 45.2, "signal": -61, "kind_200": 7}
    assert (found["device"], found["kind"], found["time"]) == ("hall-1", "reading", TIME)
    twice = envelope(0, (1, 2150), (1, -5))
    found = json.loads(line_of("sensors/hall-1/reading/0", twice, ARRIVED, as_json=True))
    assert found["values"] == {"temperature": 21.5, "temperature_2": -0.05}
    status = json.loads(line_of("sensors/hall-1/status", b"online", ARRIVED, as_json=True))
    assert (status["device"], status["status"]) == ("hall-1", "online")
    topic, text = "sensors/hall-1/update/answer", b"0123456789abcdef running"
    update = json.loads(line_of(topic, text, ARRIVED, as_json=True))
    assert (update["device"], update["update"]) == ("hall-1", text.decode())


# Without surrogates, which UTF-8 cannot have.
HOSTILE = {
    one
    for one in map(chr, range(sys.maxunicode + 1))
    if one != " " and unicodedata.category(one) in CLASSES
}
SENT = "".join(sorted(HOSTILE)).encode(errors="ignore").decode()


@pytest.mark.parametrize("kind", ["status", "answer", "fault", "update/answer"])
def test_line_of_message_has_no_control_character_in_either_form(kind):
    """`--json` let U+009B and bidirectional overrides through."""
    topic = f"sensors/hall{SENT}/{kind}"
    line = line_of(topic, SENT.encode(), ARRIVED)
    assert not set(line) & HOSTILE
    line = line_of(topic, SENT.encode(), ARRIVED, as_json=True)
    assert not set(line) & HOSTILE
    found = json.loads(line)
    assert (found["topic"], found[kind.split("/")[0]]) == (topic, SENT)


def test_line_of_reading_of_a_hostile_device_is_harmless():
    name = "\x9b\u202e\x1b".encode()  # as long as the one that it replaces
    data = READING.replace(b"hall-1", name)
    for as_json in (False, True):
        line = line_of("sensors/\u202e/reading/0", data, ARRIVED, as_json)
        assert line and not set(line) & HOSTILE


def started(mosquitto, errors, command, *words):
    argv = [sys.executable, "-m", "tools", "boards", command, *words]
    argv += ["--server", f"{mosquitto.host}:{mosquitto.port}"]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)


def test_watch_command_shows_what_comes_and_ends_well_by_ctrl_c(shared_mosquitto):
    words = ["watch", "--prefix", "watched", "--json"]
    topic = "watched/hall-1/status"
    with Ear(shared_mosquitto.port) as ear:
        with started(shared_mosquitto, subprocess.PIPE, *words) as process:
            # Retained, so that it comes whenever the subscription does.
            ear.say(topic, "online", retain=True, qos=1)
            assert json.loads(process.stdout.readline())["status"] == "online"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS)
        ear.say(topic, "", retain=True, qos=1)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("words", "missing"),
    [("watch", "SERVER"), ("monitor", "PORT"), ("rollout --server x", "BUNDLE"),
     ("deploy --board desk", "PORT")],
)  # fmt: skip
def test_command_without_what_it_needs_names_the_word_for_make(run, words, missing):
    assert f"with make: {missing}=" in run(*words.split(), status=2)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["watch", "--prefix", "a#"], "'--prefix': allowed: 1 to 64 characters without + #"),
        (["watch", "--prefix", ""], "'--prefix': allowed: 1 to 64 characters"),
        (["rollout", "--prefix", "/a"], "'--prefix': allowed: 1 to 64 characters"),
        (["clock", "--topic", "a/#"], "'--topic': allowed: 1 to 64 characters"),
        (["clock", "--every", "0"], "'--every': 0 is not in the range x>=1"),
        (["watch", "--password-file", "empty"], "--password-file goes with --user"),
        (["watch", "--user", "u", "--password-file", "empty"], "empty is empty"),
        (["command", "hall+1", "sample"], "'DEVICE': allowed: 1 to 64 characters without + #"),
    ],
)
def test_options_that_no_broker_takes_are_told(run, tmp_path, monkeypatch, words, text):
    """They ended with a traceback, or were left out without a word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    if words[0] == "rollout":
        words = [*words, "--bundle", "empty", "--fleet", "empty"]
    output = run(*words, "--server", "127.0.0.1:1", status=2)
    assert text in " ".join(output.split())


@pytest.mark.parametrize(
    "server", [":1883", "broker:x", "broker:0", "broker:65536", "broker:1:2", "[::1", "::g"]
)
def test_server_that_is_none_is_told(run, server):
    output = run("watch", "--server", server, status=1)
    assert output == f"Error: {server}: no server; allowed: HOST, HOST:PORT or [IPv6]:PORT\n"


@pytest.mark.parametrize(
    ("server", "host", "port"),
    [("broker", "broker", 1883), ("10.0.0.1:1884", "10.0.0.1", 1884), ("::1", "::1", 1883),
     ("[::1]", "::1", 1883), ("[fe80::1%eth0]:1884", "fe80::1%eth0", 1884)],
)  # fmt: skip
def test_server_may_be_an_address_of_either_version(server, host, port, monkeypatch):
    asked = []
    monkeypatch.setattr("tools.boards.watch.paho.Client.connect", lambda *one: asked.append(one))
    monkeypatch.setattr("tools.boards.watch._await_answer", lambda *one: None)
    connect(server)
    assert asked[0][1:3] == (host, port)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "Connection refused"),
        (lambda sock: sock.close(), "it closes the connection; is that an MQTT broker's port"),
        (lambda sock: None, "no answer in 1 s; is that an MQTT broker's port"),
    ],
    ids=["nobody", "closes", "silent"],
)
@pytest.mark.parametrize("command", ["watch", "clock"])
def test_command_to_a_port_that_is_no_broker_s_is_one_line(
    run, monkeypatch, command, answer, text
):
    """Each tried for ever, without a word; a broker that wants TLS closes the connection."""
    monkeypatch.setattr("tools.boards.watch._ANSWER_S", 1)
    held = []
    listener = Listener(lambda sock: (held.append(sock), answer(sock)))
    if answer is None:
        listener.close()
    output = run(command, "--server", f"127.0.0.1:{listener.port}", status=1)
    listener.close()
    for sock in held:
        sock.close()
    assert output.count("\n") == 1
    assert f"127.0.0.1:{listener.port}: {text}" in output


@pytest.mark.parametrize(
    ("words", "content", "text"),
    [
        (["--user", "u", "--password-file"], b"\xe4\n", "not in UTF-8; save it as that"),
        (["--ca"], b"# no certificate", "no certificate or key in PEM"),
    ],
)
def test_file_of_another_kind_is_told_and_not_the_server(run, tmp_path, words, content, text):
    path = tmp_path / "file"
    path.write_bytes(content)
    output = run("watch", "--server", "127.0.0.1:1", *words, path, status=1)
    assert output.count("\n") == 1 and "127.0.0.1" not in output
    assert f"{path}: {text}" in output


def test_watch_command_shows_its_certificate_to_a_broker_that_asks(run, device_certificates):
    """A wrong one is told in one line; with the right one the first message ends the test."""
    words = ["--ca", device_certificates / "ca.crt", "--prefix", "watched"]
    own = ["--cert", device_certificates / "one.crt", "--cert-key"]
    with TLSMosquitto(device_certificates, "server", require_certificate=True) as broker:
        server = ["--server", f"localhost:{broker.port}"]
        output = run("watch", *server, *words, *own, device_certificates / "two.key", status=1)
        assert output.count("\n") == 1
        assert "PRIVATE" not in output
        files = [str(device_certificates / f) for f in ("ca.crt", "one.crt", "one.key")]
        client = connect(server[1], None, None, *files)
        heard = []
        client.publish("watched/hall-1/status", "online", retain=True)
        with pytest.raises(BoardError, match="disconnected"):
            listen(client, "watched", lambda line: heard.append(line) or client.disconnect())
    assert [line.split(" ", 2)[2] for line in heard] == ["hall-1 is online"]
    output = run("watch", *server, "--cert", device_certificates / "one.crt", status=2)


def test_watch_says_when_the_connection_is_lost_and_there_again(shared_mosquitto):
    """It was silent, and tried again after up to two minutes."""
    said, heard = [], []
    with Proxy(shared_mosquitto.port) as proxy:
        client = connect(f"127.0.0.1:{proxy.port}")
        client.reconnect_delay_set(0, 0)

        def say(text):
            said.append(text)
            if text == "connected again":
                client.publish("lost/hall-1/status", "online")

        def hear(line):
            heard.append(line)
            client.disconnect()

        client.on_subscribe = lambda *_: said or proxy.cut()
        with pytest.raises(BoardError, match="disconnected"):
            listen(client, "lost", hear, on_text=say)
    assert said == ["the broker is gone; waiting for it", "connected again"]
    assert [line.split(" ", 2)[2] for line in heard] == ["hall-1 is online"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_clock_command_publishes_the_time_and_takes_it_away_however_it_ends(shared_mosquitto, end):
    """A board that wakes a week later shall not believe it."""
    topic = f"clock-{end.name}/time"
    words = ["clock", "--topic", topic, "--every", "1"]
    with Ear(shared_mosquitto.port) as ear:
        with started(shared_mosquitto, subprocess.STDOUT, *words) as process:
            assert topic in process.stdout.readline()
            before = [ear.next(topic) for _ in range(2)]
            process.send_signal(end)
            output, _ = process.communicate(timeout=SECONDS)
        while ear.next(topic):
            pass  # at last it is taken away
    assert all(abs(int(one) - time.time()) < 60 for one in before)
    assert (process.returncode, output) == ((0, "\n") if end == signal.SIGINT else (-end, ""))


def test_clock_that_ends_while_its_broker_is_gone_ends_well(shared_mosquitto):
    """Ctrl-C was a traceback then; the will has taken the time away."""
    with Proxy(shared_mosquitto.port) as proxy:
        client = connect(f"127.0.0.1:{proxy.port}", cleared="clock-gone/time")
        lost = threading.Event()
        client.on_disconnect = lambda *_: lost.set()
        stop = SimpleNamespace(wait=lambda seconds: proxy.close() or lost.wait(SECONDS))
        publish_time(client, "clock-gone/time", 60, stop)
    assert lost.is_set()
