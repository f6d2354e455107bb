"""Who may do what at a broker: the guide's rules in mosquitto, and what deploy says of others."""

import subprocess

import paho.mqtt.client as paho
import pytest

from host_tests.brokers import Mosquitto
from host_tests.docs import blocks
from host_tests.patience import SECONDS
from tools.boards import access

PAGE = "docs/guides/access.md"
USERS = ("operator", "collector", "hall-1", "hall-2", "yard-1")
HALL_1 = "sensors/hall-1"
YARD_1 = "sensors/north/yard-1"
SAYS = ("reading/0", "health", "status", "fault", "answer", "update/answer")
HEARS = ("command", "update")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """Mosquitto with both blocks of the guide: addresses and paths are the test's own."""
    folder = tmp_path_factory.mktemp("rules")
    settings, rules = (one.text for one in blocks.of_kind("conf") if one.page == PAGE)
    (folder / "rules").write_text(rules)
    (folder / "passwords").touch(mode=0o600)
    for name in USERS:
        words = ["mosquitto_passwd", "-b", folder / "passwords", name, f"of {name}"]
        subprocess.run(words, check=True, capture_output=True)
    options = dict(line.split(" ", 1) for line in settings.splitlines())
    del options["listener"]
    for name, value in options.items():
        options[name] = value.replace("/etc/mosquitto", str(folder))
    with Mosquitto(**options) as mosquitto:
        yield mosquitto


class Peer:
    """A client of MQTT 5, whose broker says whether it took a message."""

    def __init__(self, broker, user=None):
        self.refusals, self.taken, self.heard = [], [], []
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        if user:
            self.client.username_pw_set(user, f"of {user}")
        self.client.on_connect = lambda *about: self.refusals.append(about[3])
        self.client.on_publish = lambda *about: self.taken.append(about[3])
        self.client.on_message = lambda client, data, message: self.heard.append(message.topic)
        self.client.on_subscribe = lambda *_: self.taken.append(None)
        self.client.connect(broker.host, broker.port)
        self._loop(lambda: self.refusals)

    def _loop(self, is_done):
        for _ in range(10 * SECONDS):
            if is_done():
                return
            self.client.loop(timeout=0.1)
        raise AssertionError("no answer of the broker")

    def may_publish(self, topic):
        self.taken.clear()
        self.client.publish(topic, b"x", qos=1)
        self._loop(lambda: self.taken)
        return not self.taken[0].is_failure

    def subscribe(self, topic):
        self.taken.clear()
        self.client.subscribe(topic, 1)
        self._loop(lambda: self.taken)

    def hears_until(self, topic):
        self._loop(lambda: topic in self.heard)
        return set(self.heard)


def topics(root, kinds):
    return {f"{root}/{kind}" for kind in kinds}


ALL = set().union(*(topics(root, SAYS + HEARS) for root in (HALL_1, "sensors/hall-2", YARD_1)))
COMMANDS = set().union(*(topics(root, HEARS) for root in (HALL_1, "sensors/hall-2", YARD_1)))


def test_nobody_without_a_name_or_with_a_wrong_password_connects(broker):
    assert Peer(broker).refusals[0].is_failure
    assert Peer(broker, "somebody").refusals[0].is_failure
    assert not Peer(broker, "operator").refusals[0].is_failure


@pytest.mark.parametrize(
    ("user", "said", "heard"),
    [
        ("operator", COMMANDS | {"sensors/time"}, ALL),
        ("collector", set(), ALL),
        ("hall-1", topics(HALL_1, SAYS + HEARS), topics(HALL_1, HEARS)),
        ("yard-1", topics(YARD_1, SAYS + HEARS), topics(YARD_1, HEARS)),
    ],
)
def test_user_publishes_and_hears_what_the_rules_allow_and_no_more(broker, user, said, heard):
    asked = ALL | {"sensors/time", "other"}
    # Mosquitto 2.0.11 ends the connection behind a message that it refused.
    assert {topic for topic in asked if Peer(broker, user).may_publish(topic)} == said
    peer = Peer(broker, user)
    peer.subscribe("sensors/#")
    for name, root in (("hall-1", HALL_1), ("hall-2", "sensors/hall-2"), ("yard-1", YARD_1)):
        device = Peer(broker, name)
        for topic in sorted(topics(root, SAYS)):
            assert device.may_publish(topic)
    operator = Peer(broker, "operator")
    for topic in sorted(COMMANDS):
        assert operator.may_publish(topic)
    assert operator.may_publish("sensors/time")  # all may hear it, so it ends what is heard
    assert peer.hears_until("sensors/time") == heard | {"sensors/time"}


def settings(broker, **more):
    return {"client_id": "hall-1", "server": broker.host, "port": broker.port} | more


def test_deploy_doubts_a_broker_that_takes_commands_from_anybody(shared_mosquitto, tmp_path):
    text = access.doubt(settings(shared_mosquitto), tmp_path)
    assert text.startswith(f"{shared_mosquitto.host}:{shared_mosquitto.port} lets anybody command")
    assert PAGE in text


def test_deploy_doubts_no_broker_with_the_rules_of_the_guide(broker, tmp_path):
    assert access.doubt(settings(broker), tmp_path) is None


def test_deploy_doubts_no_broker_that_anybody_may_only_read(tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("topic read sensors/#\n")
    with Mosquitto(acl_file=rules) as readable:
        assert access.doubt(settings(readable, site="north"), tmp_path) is None


def test_deploy_doubts_no_broker_that_cannot_be_asked(tmp_path):
    about = {"client_id": "hall-1", "server": "127.0.0.1", "port": 1}
    assert access.doubt(about, tmp_path) is None
    assert access.doubt(about | {"server": "::1"}, tmp_path) is None
    assert access.doubt(about | {"tls": "missing.crt"}, tmp_path) is None


def test_deploy_command_warns_of_an_open_broker(
    shared_mosquitto, start_board, desk, run, make_config
):
    config = make_config(**settings(shared_mosquitto))
    board = start_board(desk)
    words = ("--board", "desk", "--port", board.port, "--config", config)
    output = run("deploy", *words, "--no-check", "--no-start")
    assert f"{shared_mosquitto.port} lets anybody command this device" in output
