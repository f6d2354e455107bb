"""The real mosquitto as tests use it; that it persists `test_interruption.py` shows."""

import pytest

from host_tests.brokers import BrokerError, Mosquitto
from host_tests.brokers.clients import Node
from host_tests.brokers.families import FAMILIES

FAMILY = FAMILIES["mosquitto"]


def test_broker_killed_starts_again_on_its_port(mosquitto):
    mosquitto.kill()
    assert not mosquitto.is_running
    with pytest.raises(BrokerError, match="not running"):
        _ = mosquitto.pid
    mosquitto.start()
    with Node(mosquitto.port, FAMILY) as node:
        node.publish("a", b"x", qos=1)


def test_broker_with_an_option_writes_it_into_its_configuration():
    with Mosquitto(max_inflight_messages=1, set_tcp_nodelay=True) as broker:
        lines = (broker.folder / "mosquitto.conf").read_text().splitlines()
    assert {"max_inflight_messages 1", "set_tcp_nodelay true"} <= set(lines)


def test_broker_with_an_unknown_option_shows_its_last_words(tmp_path):
    with pytest.raises(BrokerError, match="mosquitto ended at once"):
        Mosquitto(tmp_path, no_such_option=3).start()


def test_broker_on_a_taken_port_is_refused(mosquitto, tmp_path):
    with pytest.raises(BrokerError, match=f"port {mosquitto.port} is taken"):
        Mosquitto(tmp_path, port=mosquitto.port).start()


def test_broker_closed_removes_its_own_folder_only(tmp_path):
    with Mosquitto() as own:
        pass
    with Mosquitto(tmp_path) as given:
        pass
    assert not own.folder.exists()
    assert "mosquitto version" in given.log_text()
