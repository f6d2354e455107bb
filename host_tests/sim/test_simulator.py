"""The simulator itself: same seed, same run; faults strike where they say; users' programs."""

import random
import re

import pytest

import umqtt31
from host_tests.running import said_by
from host_tests.sim import Violation, World, campaign, explore, faults, network, parse, script
from host_tests.sim.cli import cli
from host_tests.sim.wrong_clients import WRONG, make_mistake
from tools.project import ROOT


def _trace(item, schedule):
    _, world = campaign.attempt(item, schedule, is_traced=True)
    return world.trace


@pytest.mark.parametrize("seed", [3, 12, 47, 101])
def test_schedule_when_run_twice_then_both_traces_are_equal(seed):
    first = _trace(*explore.random_schedule(seed))
    assert len(first) > 5
    random.seed(99)  # nothing may depend on what other code did to the generator
    assert _trace(*explore.random_schedule(seed)) == first


def test_schedule_when_written_as_text_then_read_back_equal():
    for seed in range(200):
        item, schedule = explore.random_schedule(seed)
        assert faults.parse(faults.text(schedule)) == schedule
        assert script.parse(str(item)) == item


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("close@here1", "no place 'here': use one of up, down"),
        ("burn@up1", "no fault 'burn' at 'up': use one of close"),
        ("close up 1", "not a fault: 'close'; write it like close@up37"),
    ],
)
def test_fault_when_misspelt_then_says_what_is_allowed(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        faults.parse(text)


def test_single_faults_when_enumerated_then_each_strikes():
    kinds = set()
    for text in ("up=21 down=2 window=1 store=journal", "up=2 down=1 level=5"):
        item = script.parse(text)
        for fault in explore.single_faults(script.run(item).places()):
            assert script.run(item, (fault,)).struck == [fault]
            kinds.add((fault.place, fault.kind))
    every = {(place, kind) for place, table in faults.PLACES.items() for kind in table}
    assert kinds == every


# Settings of a script, faults, what the trace shows, and behind "!" what it does not.
SHOWN = (
    ("connections are of these kinds in turn",
     "up=111 sessions=ckr pace=1 spread_ms=5", "close@up30 close@up55",
     r"(?s)CONNECT clean.*CONNECT keep session.*CONNECT keep session", "!opens connection 3"),
    ("a broker of level 4 says that it kept its session", "up=11 level=4", "close@up30",
     r"(?s)CONNACK 0\n.*CONNACK 0 session present"),
    ("and that it did not", "up=11 level=4", "forget@up30", "!session present"),
    ("the client hears of connections that fail", "up=1", "refuse@open0 busy@open1",
     "connection refused", "CONNACK 3"),
    ("nobody is there for ten days", "up=1", "away@open0:864000000",
     "no route to host", r"(?m)^864\d{6} ms  client > CONNECT"),
    ("flash that failed works again", "up=1212 store=journal", "fail@flash1:3",
     "FAULT fail@flash1:3", *(f"broker delivers b'{number}'" for number in range(4))),
)  # fmt: skip


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0])
def test_fault_when_it_strikes_then_the_trace_shows_it(row):
    _, settings, schedule, *patterns = row
    trace = "\n".join(_trace(script.parse(settings), parse(schedule)))
    for pattern in patterns:
        is_there = bool(re.search(pattern.removeprefix("!"), trace))
        assert is_there != pattern.startswith("!"), pattern


def test_narrow_when_set_then_every_write_takes_so_few_bytes(monkeypatch):
    writes = []
    depart = network.Link._depart

    def noted(link, item):
        writes.append(item)
        depart(link, item)

    monkeypatch.setattr(network.Link, "_depart", noted)
    script.run(script.parse("up=1 narrow=3"))
    assert max(len(item) for item in writes if isinstance(item, bytes)) == 3


def test_pressure_when_client_reads_nothing_then_broker_takes_so_many_bytes_and_no_more():
    world = World(pressure=50, serve=20)
    taken = []

    def program(device):
        client = device.client("node")
        client.connect(False)
        for number in range(20):
            world.send(b"d", b"message %d" % number, 0)
        link = world.link
        while len(taken) < 100 and (n := link.write(b"\xc0\x00", 0, 2)):
            taken.append(n)
            world.advance(1)
        client.poll()  # reads, so there is room again
        assert link.write(b"\xc0\x00", 0, 2) == 2

    world.run(program)
    assert 20 <= sum(taken) <= 54


def test_window_when_wider_than_the_messages_then_changes_nothing():
    # That is why the exhaustive campaign leaves such windows out.
    for up in ("1", "22", "111"):
        narrow = script.Script(up=up, window=len(up))
        wide = script.Script(up=up, window=4)
        assert _trace(narrow, ()) == _trace(wide, ())


def test_failure_when_shrunk_then_small_and_replayed_by_its_command(monkeypatch):
    make_mistake(monkeypatch, *WRONG["dup forgotten"][2:])
    schedule = parse("split@down3 tear@up70 stall@down12:7 jump@turn5")
    failure, _ = campaign.attempt(script.parse("up=121212 down=22 window=3 size=9"), schedule)
    assert failure and failure.rule == "31-2.1-DUP"
    small = campaign.shrink(failure)
    assert len(small.faults) == 1
    assert len(small.script.up + small.script.down) == 1
    assert small.script.window == 1
    assert campaign.shrink(small) == small
    words = re.findall(r'"([^"]*)"', small.command)
    output = said_by(cli, "replay", *words, status=1)
    assert f"broken: {small.message}" in output
    assert "FAULT" in output


def test_replay_when_all_is_well_then_prints_the_trace():
    output = said_by(cli, "replay", "up=2 window=1", "close@up27")
    assert re.search(r"client > PUBREL id \d+ DUP", output)
    assert "every promise held" in output


def test_replay_when_a_setting_is_wrong_then_one_line_and_exit_2():
    output = said_by(cli, "replay", "upp=2", status=2)
    assert "no setting 'upp' of a script: use one of up, down" in output


# --- programs of users -------------------------------------------------------------------


def test_program_that_reconnects_by_itself_when_links_break_then_all_arrives():
    """reconnect() opens its sockets in the simulated network, with back-off and jitter."""
    sent = []

    def program(device):
        client = device.client("node", keepalive=20)
        while len(sent) < 20 or client.inflight or client.queued:
            if not client.reconnect(5000):
                continue
            try:
                if len(sent) < 20:
                    sent.append(b"reading %d" % len(sent))
                    client.publish(b"readings", sent[-1], qos=2)
                client.poll(700)
            except umqtt31.MQTTError:
                pass

    world = World(seed=4, faults=parse("tear@up90 hang@up200 restart@down70 reset@read60"))
    world.run(program)
    assert len(world.struck) == 4
    assert {payload for _, payload in world.delivered} >= set(sent)


def test_program_that_forgets_to_poll_when_run_then_a_promise_breaks():
    def program(device):
        client = device.client("node", keepalive=10)
        device.connect(client)
        client.publish(b"readings", b"1", qos=1)
        device.sleep_ms(60_000)
        client.poll()

    with pytest.raises(Violation, match="31-2.2-KA"):
        World().run(program)


def test_documented_program_when_run_then_prints_what_the_page_says(capsys):
    """README.md: its example is run as it stands."""
    page = (ROOT / "host_tests" / "sim" / "README.md").read_text()
    source = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    printed = re.search(r"```text\n(.*?)```", page, re.S).group(1)
    exec(compile(source, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed
