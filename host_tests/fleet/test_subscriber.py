"""The live subscriber killed (SIGKILL) at many moments, with a real broker.

Shows for our own client on CPython, with the spool as its store of received ids:
QoS 1 loses nothing, QoS 2 arrives exactly once (MQTT-4.3.2-4, MQTT-4.3.3-8, -10).
"""

import json
import socketserver
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import paho.mqtt.client as paho
import pytest

from host_tests.patience import SECONDS
from host_tests.standin import packets
from tools.fleet.live.spool import Spool, spool_files
from tools.fleet.live.subscriber import Subscriber
from tools.project import ROOT

_SPOOLER = Path(__file__).with_name("spooler.py")


@pytest.fixture
def publisher(mosquitto):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="fleet-publisher")
    client.max_inflight_messages_set(1000)
    client.connect(mosquitto.host, mosquitto.port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


def _wait(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "nothing more arrives"
        time.sleep(0.02)


def _lines(folder):
    found = []
    for path, _ in spool_files(folder):
        found += [json.loads(line) for line in path.read_bytes().splitlines() if line[-1:] == b"}"]
    return found


def _payloads(folder, topic):
    lines = [one for one in _lines(folder) if one["topic"] == topic]
    return [bytes.fromhex(one["payload"]).decode() for one in lines]


def _subscribe_once(folder, port, client_id):
    # Makes the session at the broker.
    subscriber = Subscriber(Spool(folder), client_id, "127.0.0.1", port, ["k/#"])
    subscriber.start()
    _wait(lambda: subscriber.is_subscribed)
    subscriber.stop()


def test_subscriber_when_killed_at_many_moments_then_qos1_all_and_qos2_once(
    tmp_path, mosquitto, publisher
):
    _subscribe_once(tmp_path, mosquitto.port, "fleet-kills")
    sent = 0
    for steps in [*range(1, 30), *range(31, 140, 12)]:
        for _ in range(12):
            for qos in (0, 1, 2):
                last = publisher.publish("k/%d" % qos, str(sent), qos)
            sent += 1
        last.wait_for_publish(SECONDS)
        command = [sys.executable, _SPOOLER, tmp_path, mosquitto.port, "fleet-kills", steps]
        environment = {"PYTHONPATH": "%s:%s" % (ROOT, ROOT / "lib"), "PATH": ""}
        life = subprocess.Popen(list(map(str, command)), env=environment)
        assert life.wait(SECONDS) == -9
    spool = Spool(tmp_path)
    subscriber = Subscriber(spool, "fleet-kills", "127.0.0.1", mosquitto.port, ["k/#"])
    subscriber.start()
    _wait(lambda: len(set(_payloads(tmp_path, "k/2"))) == sent and not spool.held)
    _wait(lambda: len(set(_payloads(tmp_path, "k/1"))) == sent)
    subscriber.stop()
    spool.close()
    expected = list(map(str, range(sent)))
    assert _payloads(tmp_path, "k/2") == expected
    once = Counter(_payloads(tmp_path, "k/1"))
    assert sorted(once, key=int) == expected
    assert max(once.values()) > 1  # killed between disk and PUBACK at least once


def test_subscriber_when_broker_restarts_then_it_goes_on(tmp_path, mosquitto, publisher):
    spool = Spool(tmp_path)
    subscriber = Subscriber(spool, "fleet-restart", "127.0.0.1", mosquitto.port, ["k/#"])
    subscriber.start()
    _wait(lambda: subscriber.is_subscribed)
    publisher.publish("k/2", "before", 2).wait_for_publish(SECONDS)
    _wait(lambda: spool.count == 1)
    mosquitto.restart()
    publisher.reconnect_delay_set(1, 1)
    _wait(publisher.is_connected)
    publisher.publish("k/2", "after", 2).wait_for_publish(SECONDS)
    _wait(lambda: spool.count == 2)
    subscriber.stop()
    spool.close()
    assert _payloads(tmp_path, "k/2") == ["before", "after"]


class _Refusing(socketserver.StreamRequestHandler):
    # A broker for one connection, which refuses all filters.
    def handle(self):
        self.server.levels.append(self._packet()[8])
        self.wfile.write(packets.connack())
        while body := self._packet():
            if body[-1:] == b"\2":  # the QoS that is asked for
                self.server.asked += 1
                self.wfile.write(packets.suback(int.from_bytes(body[2:4], "big"), 0x80))

    def _packet(self):
        head = self.rfile.read(2)  # all of them are short
        return head + self.rfile.read(head[1]) if head else b""


def test_subscriber_when_the_broker_refuses_the_filter_then_it_says_so_and_waits(tmp_path):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Refusing) as server:
        server.asked, server.levels = 0, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        subscriber = Subscriber(Spool(tmp_path), "fleet-refused", "127.0.0.1", port, ["other/#"])
        subscriber.start()
        _wait(lambda: subscriber.last_error is not None)
        subscriber.stop()
        server.shutdown()
    assert "refused" in str(subscriber.last_error) and "other/#" in str(subscriber.last_error)
    assert (server.asked, server.levels, subscriber.is_subscribed) == (1, [4], False)


def test_subscriber_when_nobody_listens_then_it_says_why(tmp_path):
    subscriber = Subscriber(Spool(tmp_path), "fleet-nobody", "127.0.0.1", 1, ["#"])
    subscriber.start()
    _wait(lambda: subscriber.last_error is not None)
    subscriber.stop()
    assert "refused" in str(subscriber.last_error)
