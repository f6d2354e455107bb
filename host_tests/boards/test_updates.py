"""Updates over the air: bundles, the rollout's bookkeeping, and real MicroPython.

Two virtual boards with a real broker run an old firmware and get a new one.  Power cuts:
host_tests/firmware/test_update_cuts.py.
"""

import hashlib
from types import SimpleNamespace

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from host_tests.boards.console import drained
from host_tests.brokers import Mosquitto
from host_tests.firmware import decoding
from host_tests.patience import SECONDS
from tools.boards import release, watch
from tools.boards.compile import newest_source
from tools.boards.errors import BoardError
from tools.boards.fleetkey import make_key, read_key
from tools.boards.profile import load_profile
from tools.boards.release import make_bundle, manifest_of, read_base
from tools.boards.rollout import FAILED, RUNNING, Device, Rollout, read_fleet
from tools.boards.rollout import run as carry_out

KEY = bytes(range(32))
FILES = {"boot.py": b"boot", "update.mpy": b"update", "a.mpy": b"a" * 500, "b.mpy": b"b"}


def test_key_file_is_private_and_never_overwritten(tmp_path):
    path = tmp_path / "fleet.key"
    make_key(path)
    assert path.stat().st_mode & 0o077 == 0
    assert len(read_key(path)) == 32
    with pytest.raises(BoardError, match="is there already"):
        make_key(path)
    path.write_text("not hex")
    with pytest.raises(BoardError, match="no key: 32 to 128 hex digits"):
        read_key(path)


def test_file_that_cannot_be_written_is_told_in_one_line(run, tmp_path):
    path = tmp_path / "no" / "key"
    assert run("key", path, status=1) == f"Error: {path}: No such file or directory\n"


def test_bundle_on_a_base_brings_what_changed_and_names_the_rest():
    first = make_bundle("desk", FILES, KEY, 1)
    kinds = {line.split()[-1]: line[0] for line in manifest_of(first)[2:]}
    assert kinds == {"boot.py": "=", "update.mpy": "=", "a.mpy": "+", "b.mpy": "+",
                     "release.txt": "+", "deployed.txt": "+"}  # fmt: skip
    newer = FILES | {"b.mpy": b"B", "c.mpy": b"c"}
    del newer["a.mpy"]
    second = make_bundle("desk", newer, KEY, 2, read_base(first, "first"))
    kinds = {line.split()[-1]: line[0] for line in manifest_of(second)[2:]}
    assert kinds == {"boot.py": "=", "update.mpy": "=", "a.mpy": "-", "b.mpy": "+", "c.mpy": "+",
                     "release.txt": "+", "deployed.txt": "+"}  # fmt: skip


def test_bundle_that_needs_another_boot_py_is_refused():
    base = read_base(make_bundle("desk", FILES, KEY, 1), "first")
    with pytest.raises(BoardError, match="boot.py changed: only make deploy"):
        make_bundle("desk", FILES | {"boot.py": b"new"}, KEY, 2, base)


WHOLE = make_bundle("desk", FILES, KEY, 1)


@pytest.mark.parametrize(
    "data",
    [b"", b"no bundle", release.MAGIC + b"\0\0\0\1x", WHOLE[:-1], WHOLE + b"\0"],
    ids=["empty", "text", "short", "cut", "long"],
)
def test_base_that_is_no_whole_bundle_is_told(data):
    """Each device took one that was cut off in its copying, and refused it then."""
    with pytest.raises(BoardError, match="old: no whole bundle"):
        read_base(data, "old")


@pytest.mark.parametrize(
    ("board", "release", "text"),
    [
        ("RPI_PICO_W", 1, "base: made for RPI_PICO_W, not for desk"),
        ("desk", 7, "base: its release 7 is not older than 7"),
    ],
)
def test_release_on_a_base_that_its_boards_would_refuse_is_told(
    run, tmp_path, board, release, text
):
    """Each board said so, when it had received the whole bundle."""
    key, base = tmp_path / "key", tmp_path / "base"
    make_key(key)
    base.write_bytes(make_bundle(board, FILES, KEY, release))
    words = ("release", "--board", "desk", "--key", key, "--base", base, "--number")
    output = run(*words, 7, "--out", tmp_path / "one.bundle", status=1)
    assert text in output
    run(*words, 0, status=2)
    run(*words, 7, "--out", tmp_path, status=2)


def test_key_and_release_command_write_what_a_rollout_takes(run, tmp_path):
    key, out = tmp_path / "fleet.key", tmp_path / "one.bundle"
    run("key", key)
    output = run("release", "--board", "desk", "--key", key, "--number", 7, "--out", out)
    assert "release 7, " in output
    release.check_key(out.read_bytes(), "one.bundle", read_key(key))
    assert manifest_of(out.read_bytes())[:2] == ["board desk", "release 7"]


@pytest.fixture
def roll_out(run, tmp_path):
    """roll_out(server, bundle=…, fleet=…, key=…) -> what the command says; it has to fail."""
    files = {"bundle": WHOLE, "fleet": b"id,site\nhall-1,north\n", "key": KEY.hex().encode()}

    def command(server="127.0.0.1:1", **others):
        words = ["rollout", "--server", server]
        for name, data in (files | others).items():
            (tmp_path / name).write_bytes(data)
            words += [f"--{name}", tmp_path / name]
        return run(*words, status=1)

    return command


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({}, "Connection refused"),
        # Each device took the whole bundle, and refused it then.
        ({"bundle": b"id\na\n"}, "bundle: no whole bundle; make one with make release"),
        ({"key": b"00" * 32}, "bundle: signed with another key than that of KEY="),
    ],
)
def test_rollout_that_cannot_be_says_why(roll_out, others, text):
    assert text in roll_out(**others)


def test_rollout_whose_user_the_broker_does_not_know_says_so(roll_out, tmp_path):
    """It tried again and again, and 15 minutes later no device had said a word."""
    passwords = tmp_path / "passwords"
    passwords.touch()
    with Mosquitto(allow_anonymous=False, password_file=passwords) as broker:
        text = "the broker refuses: Not authorized; are --user and --password-file right?"
        assert text in roll_out(f"{broker.host}:{broker.port}")


def test_read_fleet_takes_a_batch_or_a_list(tmp_path):
    path = tmp_path / "fleet"
    path.write_text("id,user,site\na,u,north\nb,u,\n")
    assert [one.root for one in read_fleet(path, "p")] == ["p/north/a", "p/b"]
    path.write_text("a\n\nb\n")
    assert [one.root for one in read_fleet(path, "p")] == ["p/a", "p/b"]
    path.write_text("client_id,prefix\na,q/r\nb,\n")
    assert [one.root for one in read_fleet(path, "p")] == ["q/r/a", "p/b"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "no devices; write one id a line"),
        (b"id,site\n", "no devices; write one id a line"),
        (b"id;site\na;north\n", "line 1: 'id;site' is no id; allowed: a column id, commas"),
        (b"name,site\na,north\n", "line 1: 'name,site' is no id; allowed: a column id"),
        (b"a\n\n#\n", "line 3: '#' is no id"),
        (b"id,site\na,north\n,south\n", "line 3: '' is no id"),
        (b"id,site\na,north\na,north\n", "line 3: 'a' is there already"),
        (b"id\n\xff\n", "not a text file in UTF-8"),
    ],
)
def test_read_fleet_of_something_else_says_so(tmp_path, data, text):
    """A header that was not known was a device that nobody heard of for 15 minutes."""
    path = tmp_path / "fleet"
    path.write_bytes(data)
    with pytest.raises(BoardError) as caught:
        read_fleet(path, "p")
    assert text in caught.value.message


# --- the rollout's bookkeeping, without any I/O -----------------------------------

BUNDLE = bytes(range(256)) * 8
ID = hashlib.sha256(BUNDLE).digest()[:8]
NAME = ID.hex()


def proven(topic, text, nonce, key=KEY, name=NAME):
    """An answer as firmware/ota.py writes it, with code of its own."""
    said = f"{name} {text}".encode()
    return decoding.proven(key, topic.encode(), said, nonce.hex().encode())


class Taker:
    """A device: takes chunks in turn, as firmware/ota.py does."""

    most_bytes = 100

    def __init__(self, rollout, name):
        self.rollout, self.root = rollout, f"p/{name}"
        self.got = b""
        self.knows = False

    def take(self, payload, now):
        """-> what the rollout sends in answer."""
        if payload[:1] == b"O":
            assert payload[1:13] == ID + len(BUNDLE).to_bytes(4, "big")
            self.knows = True
        elif not self.knows:
            return []
        else:
            assert len(payload) <= 13 + self.most_bytes
            if int.from_bytes(payload[9:13], "big") == len(self.got):
                self.got += payload[13:]
        return self.says(f"have {len(self.got)} of {self.most_bytes}", now)

    def says(self, text, now):
        topic = f"{self.root}/update/answer"
        return self.rollout.hear(topic, proven(topic, text, self.rollout.nonce), now)


def rollout_to(*names, **options):
    """-> a rollout to these devices, and what takes the place of each."""
    rollout = Rollout(BUNDLE, [Device(name, f"p/{name}") for name in names], KEY, **options)
    return rollout, *(Taker(rollout, name) for name in names)


def carry(rollout, takers, now, lose=lambda number: False):
    """Carry messages until there are none; `lose`: which do not arrive."""
    by_root = {taker.root: taker for taker in takers}
    left, count = list(rollout.work(now)), 0
    while left:
        topic, payload = left.pop(0)
        count += 1
        if not lose(count):
            left += by_root[topic.removesuffix("/update")].take(payload, now)
    return count


def test_rollout_sends_each_byte_once_when_nothing_is_lost():
    rollout, taker = rollout_to("a")
    count = carry(rollout, [taker], 0)
    assert taker.got == BUNDLE
    assert count == 1 + -(-len(BUNDLE) // 100)
    taker.says("staged", 1)
    assert list(rollout.work(60)) == []  # it restarts now
    taker.says("running", 60)
    assert rollout.is_over
    assert rollout.devices["p/a"].state == RUNNING


def test_rollout_goes_on_where_it_was_after_losses_and_resets():
    rollout, taker = rollout_to("a")
    for turn in range(60):
        if turn % 3 == 1:
            taker.knows = False  # a reset: what it has is on flash
        carry(rollout, [taker], turn * 10, lose=lambda number: number % 4 == 0)
    assert taker.got == BUNDLE


def test_rollout_asks_a_device_again_whose_last_word_was_lost():
    """It ran the release, and 15 minutes later the rollout said that it had failed."""
    rollout, taker = rollout_to("a")
    carry(rollout, [taker], 0)
    taker.says("staged", 5)
    ((topic, payload),) = rollout.work(65)
    assert (topic, payload[:1]) == ("p/a/update", b"O")
    taker.says("staged", 66)  # it is on trial
    assert list(rollout.work(100)) == []
    assert len(list(rollout.work(126))) == 1
    taker.says("running", 127)
    assert rollout.is_over


def test_rollout_works_on_so_many_devices_at_a_time_and_tells_failures():
    rollout, *takers = rollout_to(*"01234", at_once=2, patience_s=100)
    carry(rollout, takers, 0)
    assert [len(one.got) for one in takers] == [len(BUNDLE)] * 2 + [0] * 3
    takers[0].says("refused: wrong signature", 1)
    takers[1].says("rolled back", 1)
    carry(rollout, takers, 10)
    takers[2].says("running", 11)
    for now in range(20, 400, 20):
        rollout_messages = list(rollout.work(now))
        assert len(rollout_messages) <= 2
    late = FAILED, "no word for 100 s"
    assert [(one.state, one.why) for one in rollout.devices.values()] == [
        (FAILED, "wrong signature"), (FAILED, "rolled back"), (RUNNING, ""), late, late,
    ]  # fmt: skip
    assert rollout.is_over


@pytest.mark.parametrize(("running", "tried"), [(0, 20), (1, 30)])
def test_rollout_that_nobody_takes_leaves_the_others_alone(running, tried):
    """A firmware that does not reach the broker was tried by the whole fleet."""
    rollout, *_ = rollout_to(*map(str, range(30)), at_once=10)
    devices, offered = rollout.devices.values(), set()
    for now in range(0, 100, 10):
        for topic, _ in rollout.work(now):
            offered.add(topic)
            name = topic.split("/")[1]
            word = "running" if int(name) < running else "rolled back"
            topic = f"{topic}/answer"
            rollout.hear(topic, proven(topic, word, rollout.nonce), now)
    assert len(offered) == tried
    assert rollout.is_over
    assert [device.why for device in devices].count("not tried, as no other one runs it") == (
        30 - tried
    )


def test_rollout_waits_for_a_device_that_is_busy_with_another_one():
    rollout, taker = rollout_to("a", patience_s=100)
    for now in range(0, 300, 10):
        assert [payload[:1] for _, payload in rollout.work(now)] == [b"O"]
        taker.says("busy", now)
    assert rollout.devices["p/a"].state == "busy"
    carry(rollout, [taker], 300)
    assert taker.got == BUNDLE


def test_rollout_believes_a_device_that_runs_it_after_all():
    rollout, taker, other = rollout_to("a", "b")
    carry(rollout, [taker, other], 0)
    taker.says("refused: for some reason", 1)
    taker.says("running", 2)
    assert (rollout.devices["p/a"].state, rollout.devices["p/a"].why) == (RUNNING, "")
    taker.says("refused: for some reason", 3)
    assert rollout.devices["p/a"].state == RUNNING


def test_rollout_overhears_strangers_and_nonsense():
    rollout, taker = rollout_to("a")
    list(rollout.work(0))
    assert Taker(rollout, "x").says("running", 1) == []
    assert taker.says("have it", 1) == []
    assert not rollout.is_over


NONCE = bytes(range(8))


def forgeries():
    """What somebody without the key can publish as the answer of p/a, and what proves nothing."""
    topic = "p/a/update/answer"
    other_key = bytes(32)
    yield f"{ID.hex()} running".encode()
    yield f"{ID.hex()} running {'0' * 32}".encode()
    yield f"{ID.hex()} refused: \x1b]0;owned\x07".encode()
    yield f"{ID.hex()} have {'9' * 5000} of 400".encode()
    yield proven(topic, "running", NONCE, other_key)
    yield proven(topic, "running", bytes(8))  # of another rollout
    yield proven("p/b/update/answer", "running", NONCE)  # another device's
    yield proven(topic, "running", NONCE, name="0011223344556677")  # about another bundle
    yield proven(topic, "staged", NONCE).replace(b"staged", b"running")
    yield proven(topic, "running", NONCE)[:-1]
    yield b""
    yield b"\xff" * 100


@pytest.mark.parametrize("answer", [*forgeries()])
def test_rollout_believes_no_answer_without_proof(answer):
    """Who may publish there made it say "1 of 1 devices run it", or ended it with a traceback."""
    rollout, _ = rollout_to("a", patience_s=100)
    (device,) = rollout.devices.values()
    rollout.nonce = NONCE
    list(rollout.work(0))
    heard_at = device.heard_at
    assert rollout.hear("p/a/update/answer", answer, 50) == []
    assert (device.state, device.heard_at) == ("offered", heard_at)
    list(rollout.work(100))
    assert device.state == FAILED
    if answer.startswith(NAME.encode()):
        assert device.why == "no word for 100 s with a proof by this key, 1 without"


def test_rollout_of_a_hostile_device_prints_no_escape():
    """A device whose program is somebody else's has the key, too."""
    client, lines = SlowClient(says("have " + "9" * 5000 + " of 400")), []

    def tell(line):
        lines.append(line)
        if line.startswith("0 of 1"):
            client.answers = says("refused: \x1b]0;owned\x07\x9b2J\u202e")

    carry_out(client, rollout_to("a")[0], tell, client)
    assert lines[-1] == "a: failed: \ufffd]0;owned\ufffd\ufffd2J\ufffd"


class SlowClient:
    """A paho client, and its clock: a connection opens at `connects_at` seconds and ends at
    `ends_at`; `answers(topic, payload)` are the (topic, payload) that come of a message."""

    on_connect = on_subscribe = lambda *_: None

    def __init__(self, answers, connects_at=0, ends_at=None):
        self.answers, self.connects_at, self.ends_at = answers, connects_at, ends_at
        self.now = 0.0
        self.tries, self.subscribed, self.sent = [], [], []
        self._is_connected = False

    def is_connected(self):
        return self._is_connected

    def monotonic(self):
        return self.now

    def time_ns(self):
        return 1_800_000_000_123_456_789

    def sleep(self, seconds):
        self.now += seconds

    def loop(self, timeout):
        if self.ends_at is not None and self.now >= self.ends_at:
            self._is_connected = False
            return paho.MQTT_ERR_CONN_LOST
        self.now += timeout
        if not self._is_connected and self.now >= self.connects_at:
            self._is_connected = True
            self.on_connect(self, None, None, ReasonCode(PacketTypes.CONNACK), None)
        return paho.MQTT_ERR_SUCCESS

    def reconnect(self):
        self.tries.append(self.now)
        if self.now < self.connects_at:
            raise ConnectionRefusedError
        self.ends_at = None

    def subscribe(self, topic, qos):
        self.subscribed.append((topic, qos))
        self.on_subscribe()

    def publish(self, topic, payload, qos):
        self.sent.append((self.now, payload))
        for where, answer in self.answers(topic, payload):
            self.on_message(self, None, SimpleNamespace(topic=where, payload=answer))


def says(text):
    """What devices answer to an offer."""

    def answers(topic, payload):
        if payload[:1] == b"O":
            yield f"{topic}/answer", proven(f"{topic}/answer", text, payload[13:])

    return answers


def test_rollout_waits_for_a_broker_that_takes_long_to_accept_a_connection():
    """Each second it opened another one, and no device ever heard of the bundle."""
    client, lines = SlowClient(says("running"), connects_at=5), []
    carry_out(client, rollout_to("a")[0], lines.append, client)
    assert client.tries == []
    assert lines == ["a: running"]


def test_rollout_whose_broker_goes_away_blames_no_device_and_says_so():
    """Devices failed for want of a word, and the queue filled with offers that they got later."""
    client, lines = SlowClient(lambda *_: (), ends_at=20), []
    rollout, _ = rollout_to("a", patience_s=100)
    away = {"from": None}

    def tell(line):
        lines.append(line)
        if line == "the broker is gone; waiting for it":
            away["from"] = client.now
            client.connects_at = client.now + 300
        elif line == "connected again":
            away["sent"] = [at for at, _ in client.sent if at > away["from"]]
            client.answers = says("running")

    carry_out(client, rollout, tell, client)
    quiet = "0 of 1 run it, 1 under way, 0 failed"
    assert lines[:2] == ["a: offered", "the broker is gone; waiting for it"]
    assert lines[2:-2] == [quiet] * 9
    assert lines[-2:] == ["connected again", "a: running"]
    assert away["sent"] == []
    assert 250 < len(client.tries) <= 301


# --- real MicroPython -------------------------------------------------------------


def newer(files):
    """The same firmware, with another file that tells it."""
    return files | {"news.mpy": b"M\x06\x00\x1f" + bytes(40)}


def test_rollout_brings_virtual_boards_a_new_firmware_and_back_where_it_fails(
    shared_mosquitto, make_node, built
):
    """The second firmware cannot start: the board gets the one before back by itself."""
    name, prefix = "RPI_PICO_W", "virtual-updates"
    files, number = built(name), newest_source(load_profile(name))
    about = {"prefix": prefix, "interval_ms": 500, "update_key": KEY.hex(), "trial_s": 30}
    boards = {
        device: make_node(name, shared_mosquitto, device, **about)
        for device in ("good-1", "good-2")
    }
    for board in boards.values():
        board.power_on()
    with drained(*(board.port for board in boards.values())):
        client = watch.connect(f"{shared_mosquitto.host}:{shared_mosquitto.port}")
        bundle = make_bundle(name, newer(files), KEY, number + 1, hashes(files))
        fleet = [Device(device, f"{prefix}/{device}") for device in boards]
        carry_out(client, Rollout(bundle, fleet, KEY, 20, SECONDS), print)
        assert [device.state for device in fleet] == [RUNNING, RUNNING], fleet
        broken = newer(files) | {"start.mpy": b"no bytecode"}
        bundle = make_bundle(name, broken, KEY, number + 2, hashes(newer(files)))
        fleet = [Device("good-1", f"{prefix}/good-1")]
        carry_out(client, Rollout(bundle, fleet, KEY, 20, SECONDS), print)
        assert (fleet[0].state, fleet[0].why) == (FAILED, "rolled back")
    for board in boards.values():
        on_board = board.files()
        assert on_board["news.mpy"] == newer(files)["news.mpy"]
        assert on_board["start.mpy"] == files["start.mpy"]


def hashes(files):
    return {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
