"""The breaking proxy: forwards whole, cuts inside packets, records what tshark reads."""

import json
import socket
import subprocess
import threading
from types import SimpleNamespace

import pytest

from host_tests.patience import SECONDS
from host_tests.standin.packets import publish
from tools.demo.proxy import Proxy
from tools.demo.tap import BROKER, CLIENT, Capture
from tools.setup.system import find

CONNECT = bytes.fromhex("1010 0006 4d5149736470 03 02 003c 0002 6e37")
CONNACK = bytes.fromhex("20020000")


@pytest.fixture
def broker():
    """Accepts connections and keeps what comes; answers are sent by the test."""

    def accept():
        peer, _ = listener.accept()
        peer.settimeout(10)
        return peer

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        port = listener.getsockname()[1]
        yield SimpleNamespace(port=port, accept=accept, close=listener.close)


def connect(proxy):
    return socket.create_connection(("127.0.0.1", proxy.port), 10)


@pytest.fixture
def link(broker):
    """(proxy, client, peer): a connection whose CONNECT went through."""
    with Proxy(broker.port) as proxy, connect(proxy) as client, broker.accept() as peer:
        client.sendall(CONNECT)
        assert peer.recv(100) == CONNECT
        yield proxy, client, peer


def read_all(peer) -> bytes:
    # Until the connection ends, in whatever way.
    data = b""
    try:
        while piece := peer.recv(4096):
            data += piece
    except ConnectionError:
        pass
    return data


def test_proxy_forwards_both_ways_and_ends_with_either_side(link):
    proxy, client, peer = link
    peer.sendall(CONNACK)
    assert client.recv(100) == CONNACK
    client.shutdown(socket.SHUT_WR)
    assert read_all(peer) == b""
    assert (proxy.connections, proxy.cuts) == (1, 0)


@pytest.mark.parametrize("after", [0, 1, 17, 18, 19, 60])
def test_proxy_told_to_cut_in_packet_leaves_half_a_packet(broker, after):
    stream = CONNECT + publish(b"a/b", b"x" * 40) + publish(b"a/b", b"y" * 200)
    edges = {0, 18, 18 + 47}
    with Proxy(broker.port) as proxy, connect(proxy) as client, broker.accept() as peer:
        proxy.cut_in_packet(after, CLIENT)
        client.sendall(stream)
        got = read_all(peer)
        expected = after + 1 if after in edges else after
        assert got == stream[:expected]
        assert (proxy.cuts, proxy.cuts_in_packet) == (1, 1)


def test_proxy_told_to_cut_counts_connections_and_takes_new_ones(broker, link):
    proxy, client, peer = link
    assert proxy.cut() == 1
    assert read_all(peer) == b""
    assert read_all(client) == b""
    with connect(proxy) as client, broker.accept() as peer:
        client.sendall(CONNECT)
        assert peer.recv(100) == CONNECT
    assert (proxy.cuts, proxy.cuts_in_packet, proxy.connections) == (1, 0, 2)


def test_proxy_on_hold_forwards_only_after_release(link):
    proxy, client, peer = link
    proxy.hold()
    client.sendall(CONNACK)
    peer.settimeout(0.2)
    with pytest.raises(TimeoutError):
        peer.recv(100)
    proxy.release()
    peer.settimeout(10)
    assert peer.recv(100) == CONNACK


def test_proxy_without_broker_closes_the_connection(broker):
    broker.close()
    with Proxy(broker.port) as proxy, connect(proxy) as client:
        assert read_all(client) == b""


def tshark(path, *options):
    program = find("tshark")
    assert program, "tshark is missing: run `make setup`"
    done = subprocess.run(
        [program, "-r", str(path), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
         "-T", "json", *options],
        capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    return [frame["_source"]["layers"] for frame in json.loads(done.stdout)]


def test_capture_of_a_dialogue_is_decoded_by_tshark(tmp_path):
    capture = Capture(tmp_path / "node.pcap")
    tap = capture.connection()
    tap.data(CLIENT, CONNECT)
    tap.data(BROKER, CONNACK)
    # Larger than a segment, so that it is reassembled.
    tap.data(CLIENT, publish(b"a/b", b"z" * 4000))
    tap.end(CLIENT)
    torn = capture.connection()
    torn.data(CLIENT, CONNECT[:7])
    torn.cut()
    capture.close()
    frames = tshark(capture.path)
    assert len(frames) == capture.packets
    mqtt = [frame["mqtt"] for frame in frames if "mqtt" in frame]
    assert [one["mqtt.hdrflags_tree"]["mqtt.msgtype"] for one in mqtt] == ["1", "2", "3"]
    assert (mqtt[0]["mqtt.ver"], mqtt[0]["mqtt.clientid"]) == ("3", "n7")
    assert (mqtt[2]["mqtt.topic"], len(mqtt[2]["mqtt.msg"].replace(":", ""))) == ("a/b", 8000)
    wrong = "tcp.checksum.status != 1 or ip.checksum.status != 1"
    assert tshark(capture.path, "-Y", f"{wrong} or tcp.analysis.flags or _ws.malformed") == []
    assert len(tshark(capture.path, "-Y", "tcp.flags.reset == 1")) == 2


def test_capture_written_by_many_threads_keeps_every_packet(tmp_path):
    capture = Capture(tmp_path / "many.pcap")

    def talk():
        tap = capture.connection()
        for _ in range(50):
            tap.data(CLIENT, CONNECT)
            tap.data(BROKER, CONNACK)
        tap.end(BROKER)

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    capture.close()
    assert len(tshark(capture.path)) == capture.packets == 4 * (3 + 100 + 3)
