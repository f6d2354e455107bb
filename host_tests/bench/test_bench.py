"""`make bench PEERS=folder` measures what is there, names what is not, and hides no defeat."""

import dataclasses
import hashlib

import pytest

from host_tests.bench import BenchError, answerer, catalogue, cli, measures, page, situations
from host_tests.bench.catalogue import BARE, OURS
from host_tests.bench.page import Measured
from host_tests.bench.situations import Outcome
from host_tests.running import said_by
from host_tests.standin import packets

CLIENTS = {client.title: client for client in catalogue.CLIENTS}
SIMPLE = CLIENTS["umqtt.simple"]
KINDS = [f"{way} QoS {qos}" for way in ("publish", "receive") for qos in range(3)]
GOOD = Outcome("goes on", True)

# As few lines as a client can have that publishes at QoS 0.
SMALL_PEER = """\
import socket

class MQTTClient:
    wait_msg = None

    def __init__(self, client_id, server, port, user, password, keepalive):
        self.address = socket.getaddrinfo(server, port)[0][-1]

    def set_callback(self, f):
        self.cb = f

    def connect(self, clean, timeout):
        self.sock = socket.socket()
        self.sock.settimeout(timeout)
        self.sock.connect(self.address)
        self.sock.write(b"\\x10\\x11\\x00\\x04MQTT\\x04\\x02\\x00\\x3c\\x00\\x05bench")
        if self.sock.read(4) is None:
            raise OSError("no answer")
"""


@pytest.fixture
def peers(tmp_path):
    """A folder with one peer, which can do little."""
    (tmp_path / "umqtt").mkdir()
    (tmp_path / "umqtt" / "simple.py").write_text(SMALL_PEER)
    return tmp_path


@pytest.fixture
def written(monkeypatch, tmp_path):
    """What the page says, written into an empty place."""
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")

    def write(tables, outcomes=None, missing=None):
        clients = [OURS[0], SIMPLE]
        page.write_page(tables, outcomes or {}, clients, missing or {}, {"date": "now"})
        return page.PAGE.read_text()

    return write


def test_folder_without_peers_is_an_error_of_one_line(tmp_path):
    assert f"no peer in {tmp_path}" in said_by(cli.cli, "--peers", tmp_path, status=1)


def test_what_is_missing_is_named(peers):
    assert [one.title for one in catalogue.present(peers) if not one.is_ours] == ["umqtt.simple"]
    assert CLIENTS["upaho"].missing(peers) == "upaho"
    assert SIMPLE.missing(peers) is None


def test_peer_without_a_version_is_named_by_its_hash(peers):
    digits = hashlib.sha256(SMALL_PEER.encode()).hexdigest()
    assert SIMPLE.release(peers) == f"file {digits[:8]}"
    (peers / "versions.txt").write_text("umqtt.simple2 2\numqtt.simple 1.8.0\n")
    assert SIMPLE.release(peers) == "1.8.0"


def test_heap_of_ours_is_what_the_library_promises(tmp_path):
    rows = measures.measure(measures.heap, OURS[:1], tmp_path)
    assert set(rows) == set(KINDS)
    assert {found["umqtt31"] for found in rows.values()} == {0}


@pytest.mark.parametrize("client", OURS, ids=lambda client: client.title)
def test_ours_goes_there_and_back_through_its_adapter(client, tmp_path):
    assert measures.bytecode(client, tmp_path)["bytecode"] > 10_000


def test_every_client_of_ours_and_the_bare_socket_receive_all_that_is_given(monkeypatch, tmp_path):
    monkeypatch.setattr(measures, "_MOST_AT_ONCE", 200)  # more than one read holds
    rows = measures.measure(measures.receiving, [*OURS, BARE], tmp_path)
    titles = {client.title for client in (*OURS, BARE)}
    assert {row: set(found) for row, found in rows.items()} == dict.fromkeys(rows, titles)


def test_client_that_fails_is_named(peers):
    with pytest.raises(BenchError, match="umqtt.simple: AttributeError"):
        measures.heap(SIMPLE, peers)


def test_outcomes_tell_what_a_program_sees(peers, monkeypatch):
    names = ("stray", "burst", "connack", "wrap")
    kept = [one for one in situations.SITUATIONS if one.name in names]
    monkeypatch.setattr(situations, "SITUATIONS", kept)
    outcomes = situations.measure_outcomes([OURS[0], SIMPLE], peers)
    assert {title: (*found.values(),) for title, found in outcomes.items()} == {
        "a PUBACK comes that nobody awaits": (GOOD, Outcome("raises AttributeError", False)),
        "no CONNACK comes": (Outcome("raises MQTTError", True), Outcome("raises OSError", True)),
        "packet ids begin anew after 65,535": (GOOD, Outcome("raises AttributeError", False)),
        "50 messages at QoS 2 come at once": (GOOD, Outcome("no QoS 2", False)),
    }


def test_ids_of_ours_begin_anew_in_the_trial(monkeypatch, tmp_path):
    seen = []

    def answer(packet):
        if packet[0] >> 4 == 3:
            seen.append(packets.publish_fields(packet)[1])
        return answerer.usual_answer(packet)

    wrap = next(one for one in situations.SITUATIONS if one.name == "wrap")
    monkeypatch.setattr(situations, "SITUATIONS", [dataclasses.replace(wrap, answer=answer)])
    outcomes = situations.measure_outcomes(OURS[:1], tmp_path)
    assert outcomes[wrap.title]["umqtt31"].text == "goes on"
    assert 65535 in seen and seen[-1] < 100 and 0 not in seen


def section(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_page_says_first_where_a_peer_is_better(written):
    less = Measured("Size", "bytes", "", {"bytecode": {"umqtt31": 9000, "umqtt.simple": 3000}})
    rates = {"window 1": {"umqtt31": 45, "umqtt.simple": 44}}
    text = written([less, Measured("Rate", "messages/s", "", rates, True)])
    better = section(text, "Where a peer is better")
    assert "- size, bytecode: umqtt.simple 3,000, umqtt31 9,000 bytes (3.00 times)" in better
    assert "window" not in better
    assert text.index("Where a peer is better") < text.index("## Size")
    assert "| umqtt.simple | 3,000 (0.33×) |" in text
    assert "| umqtt.simple | 44 (0.98×) |" in text


def test_page_shows_ratios_to_the_bare_socket_where_that_is_the_limit(written):
    rows = {"QoS 0": {"umqtt31": 5000, "umqtt.simple": 2, "bare socket": 10_000}}
    text = written([Measured("Receive ratio", "messages/s", "", rows, True, beside=BARE.title)])
    table = section(text, "Receive ratio")
    assert "| umqtt31 | 5,000 (0.50×) |" in table
    assert "| umqtt.simple | 2 (0.0002×) |" in table
    assert "| bare socket | 10,000 |" in table


def test_page_names_no_defeat_where_there_is_none(written):
    rows = {"window 1": {"umqtt31": 45, "umqtt.simple": 44}, "window 10": {"umqtt31": 450}}
    text = written([Measured("Rate", "messages/s", "", rows, True)])
    assert "In none of the figures below." in text
    assert "| umqtt.simple | 44 (0.98×) | – |" in text


def test_page_marks_what_a_program_cannot_live_with_and_names_what_was_not_there(written):
    outcomes = {"no CONNACK": {"umqtt31": GOOD, "umqtt.simple": Outcome("hangs", False)}}
    text = written([], outcomes, {"upaho": "upaho"})
    assert "| no CONNACK | goes on | umqtt.simple (hangs) |" in text
    assert "upaho was not there: upaho." in text


def test_program_of_umqtt_simple_runs_on_the_front(monkeypatch, tmp_path):
    """With umqtt31.simple under the name of umqtt.simple."""
    front = dataclasses.replace(SIMPLE, is_ours=True)
    (tmp_path / "umqtt").mkdir()
    (tmp_path / "umqtt" / "simple.py").write_text("from umqtt31.simple import MQTTClient\n")
    compiled = measures.compiled(front, tmp_path, "there_and_back", 32)
    with compiled as program, answerer.Answerer() as far_end:
        assert program.run(far_end.port, 20) == "done\n"


def test_each_kind_of_work_is_counted(tmp_path):
    """By callgrind, which the program tells where a kind begins."""
    compiled = measures.compiled(OURS[0], tmp_path, "work")
    with compiled as program, answerer.Answerer(True) as far_end:
        text = program.run(far_end.port, 4, "count")
    assert [line.split("\t")[0] for line in text.splitlines()] == ["nothing", *KINDS]
