"""Command messages: how they are read, what the node does, and what it answers."""

import json
from unittest.mock import Mock

import pytest

import commands
from host_tests.firmware import decoding
from host_tests.firmware.conftest import FakeMessage
from host_tests.firmware.decoding import proof
from state import State
from umqtt31 import TOO_LARGE, MQTTError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"sample", ("", "sample", "")),
        (b"interval 250", ("", "interval", "250")),
        (b"#17 reset", ("17", "reset", "")),
        (b" #a-b  interval  9\n", ("a-b", "interval", "9")),
        (b"#1234567890123456 sample", ("1234567890123456", "sample", "")),
        (b"#12345678901234567 sample", ("", "", "")),
        (b"# sample", ("", "", "")),
        (b"#9", ("9", "", "")),
        (b"#9 interval 5 6", ("9", "", "")),
        (b"", ("", "", "")),
        (b"\xff\x00", ("", "", "")),
    ],
)
def test_parse_takes_a_command_apart(text, found):
    assert commands.parse(text) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [("250", 250), ("0", 0), ("", None), ("-5", None), ("1.5", None), ("9" * 10, None),
     ("²", None), ("1_0", None)],
)  # fmt: skip
def test_number_is_digits_only(text, value):
    assert commands.number(text) == value


@pytest.fixture
def bench(bench):
    """A node that is connected."""
    bench.run_ms(1500)
    return bench


def test_node_on_command_changes_the_interval_at_once_and_over_resets(bench, make_bench):
    bench.run_ms(1000)
    bench.take(b"interval 200", ms=2000)
    # At 0, 1000, 2000, 3000; then the command, and one every 200 ms up to 5000.
    assert len(bench.readings(2)) == 4 + 9
    assert json.loads(bench.path.read_text()) == {"boot": 1, "interval_ms": 200}
    again = make_bench()
    assert (again.node.interval_ms, again.node.report()["boot"]) == (200, 2)


@pytest.mark.parametrize(
    "text",
    [b"", b"interval 5", b"interval 99999999", b"sleep", b"x" * 300, b"interval " + b"9" * 30],
)
def test_node_on_a_wrong_command_changes_nothing_and_acknowledges(bench, text):
    bench.take(text)
    assert len(bench.told("command refused:")) == 1
    assert bench.node.interval_ms == 1000
    assert bench.client.is_connected


def test_node_on_command_takes_one_extra_sample(bench):
    bench.run_ms(500)
    before, start = bench.node.accepted[2], bench.clock.now_ms
    bench.client.to_deliver.append(b"sample")
    while bench.clock.now_ms < start + 999:
        bench.node.step()
    assert bench.node.accepted[2] == before + 2  # the one due at the start, and one more


def test_node_on_reset_answers_drains_says_offline_and_disconnects(bench):
    bench.client.inflight = 1
    bench.client.to_deliver.append(b"#r reset")

    def acknowledge(timeout_ms):
        if (b"sensors/node-7/status", b"offline", True, 1) in bench.client.published:
            bench.client.inflight = 0

    bench.client.on_poll = acknowledge
    assert bench.node.run() == 0
    assert [one[1:] for one in bench.client.published[-2:]] == [
        (b"offline", True, 1), (b"r done", False, 1)
    ]  # fmt: skip
    assert bench.client.calls[-1] == ("disconnect",)


def test_node_on_reset_without_broker_gives_up_draining_in_time(bench):
    bench.client.to_deliver.append(b"reset")
    bench.client.error = OSError("broker gone")
    bench.client.can_connect = False
    bench.client.queued = 1
    bench.run_ms(500)
    bench.node._wants_reset = True
    start = bench.clock.now_ms
    bench.node.run()
    assert bench.clock.now_ms - start <= 31_000


def test_node_whose_flash_is_full_obeys_and_tries_again(bench, monkeypatch):
    """The error came out of the handler, so the broker brought the command again, for ever."""
    save, tries = State.save, []

    def fail(state):
        tries.append(bench.clock.now_ms)
        raise OSError(28, "ENOSPC")

    monkeypatch.setattr(State, "save", fail)
    bench.take(b"#1 interval 2000", ms=100_000)
    assert bench.said("answer") == [b"1 done"]
    assert len(tries) == 2
    assert bench.log.count(("flash:", "ENOSPC")) == 2
    monkeypatch.setattr(State, "save", save)
    bench.node.shut_down()
    assert State(str(bench.path)).interval_ms == 2000


def test_node_ignores_retained_commands_and_says_so(bench):
    """A retained `reset` came again with every connection, so the node reset for ever."""
    bench.take(FakeMessage(b"#1 reset", retain=True), b"#2 sample")
    assert ("command ignored: it is retained",) in bench.log
    assert ("command", "sample", "") in bench.log
    assert bench.calls("disconnect") == []
    assert bench.said("answer") == [b"2 done"]


@pytest.mark.parametrize(
    "topic", [b"sensors/time", b"sensors/north/node-7/command", b"sensors/node-7/update"]
)
def test_node_obeys_nothing_that_comes_to_filters_of_earlier_settings(bench, topic):
    """The broker's session keeps them, and the node obeyed what came to any topic."""
    bench.take(FakeMessage(b"#1 interval 60000", topic=topic), b"#2 sample")
    assert bench.node.interval_ms == 1000
    assert bench.said("answer") == [b"2 done"]


def test_node_writes_a_commanded_interval_once_and_at_most_once_a_minute(bench, monkeypatch):
    saved = []
    monkeypatch.setattr(State, "save", lambda state: saved.append(state.interval_ms))
    for interval_ms in (200, 200, 300, 400, 300):
        bench.take(b"interval %d" % interval_ms)
    assert saved == [200]
    assert bench.node.interval_ms == 300
    bench.run_ms(60_000)
    assert saved == [200, 300]
    bench.take(b"interval 500")
    bench.client.to_deliver.append(b"interval 600")  # before it has said `offline`
    bench.node.shut_down()
    assert saved == [200, 300, 600]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (b"#a1 interval 5", b"a1 refused: interval: a whole number from 10 to 86400000"),
        (b"#a1 interval", b"a1 refused: interval: a whole number from 10 to 86400000"),
        (b"#a1 dance", b"a1 refused: known: interval MILLISECONDS, sample, health, reset"),
        (b"#a1 sample" + b" " * 100, b"a1 refused: longer than 64 bytes"),
        (b"#a1 interval 500", b"a1 done"),
        (b"#a1 sample", b"a1 done"),
        (b"interval 5", None),
    ],
)
def test_node_answers_every_command_that_has_an_id(bench, text, answer):
    bench.take(text, ms=1500)
    assert bench.said("answer") == ([answer] if answer else [])


def test_node_without_memory_for_a_message_acknowledges_it_and_says_so(bench):
    """Twenty that were not acknowledged, and the broker sent nothing any more."""

    class Large(FakeMessage):
        payload = property(Mock(side_effect=MemoryError("no room")), Mock())

    rounds = bench.node.unlocked_rounds
    bench.take(Large(b""), FakeMessage(b"#1 sample"))
    assert [str(words[1]) for words in bench.log if words[0] == "message lost:"] == ["no room"]
    assert bench.node.unlocked_rounds == rounds
    assert bench.said("answer") == [b"1 done"]


def test_node_whose_queue_is_full_obeys_no_command_that_it_could_not_answer(bench):
    """Each was obeyed, and from the ninth on nobody heard of it."""
    full = [True]

    def refuse(topic, msg):
        if full and topic.endswith(b"/answer"):
            raise OSError("full")

    bench.client.on_publish = refuse
    bench.take(*[b"#%d interval %d" % (i, 100_000 + i) for i in range(70)], ms=3000)
    assert bench.node.interval_ms == 100_007
    full.clear()
    bench.run_ms(1000)
    assert bench.said("answer") == [b"%d done" % i for i in range(8)] + [
        b"%d refused: too many at once" % i for i in range(8, 64)
    ]
    bench.take(b"#70 interval 100070")
    assert bench.said("answer")[-1] == b"70 done"


@pytest.mark.parametrize("code", [TOO_LARGE, 0x95])  # for the client's buffer, for the broker
def test_node_gives_up_an_answer_that_is_too_large_and_no_other(bench, code):
    """It waited for room for ever, and all later answers behind it."""

    def refuse(topic, msg):
        if len(msg) > 20:
            raise MQTTError(code)

    bench.client.on_publish = refuse
    bench.take(b"#1 sample", b"#2 dance", b"#3 sample")
    assert bench.said("answer") == [b"1 done", b"3 done"]


KEY = bytes(range(32))
SIGNED = {"commands": "signed", "update_key": KEY.hex()}


def signed(text, number, topic=b"sensors/node-7/command", key=KEY):
    said = b"%s %s" % (str(number).encode() if isinstance(number, int) else number, text)
    return proof(key, b"u31c\x01", topic, said) + b" " + said


@pytest.fixture
def signed_bench(make_bench):
    """A node that asks for signatures, connected."""
    bench = make_bench(**SIGNED)
    bench.run_ms(1500)
    return bench


def proven(answer):
    return decoding.proven(KEY, b"sensors/node-7/answer", answer)


def test_node_obeys_a_signed_command_and_proves_its_answer(signed_bench):
    signed_bench.take(signed(b"#a interval 500", 1_800_000_000_000))
    assert signed_bench.node.interval_ms == 500
    assert signed_bench.said("answer") == [proven(b"a done")]
    assert signed_bench.node.report()["commands_refused"] == 0


NOT_SIGNED = [
    b"#a interval 500",
    b"",
    b"\xff" * 60,
    signed(b"#a interval 500", 5, key=bytes(32)),
    signed(b"#a interval 500", 5, topic=b"sensors/node-8/command"),
    signed(b"#a interval 500", 5)[:-1],
    signed(b"#a interval 500", 5).replace(b" 5 ", b" 6 "),
    signed(b"#a interval 500", 5).upper(),
    proof(KEY, b"u31a\x01", b"sensors/node-7/command", b"5 reset") + b" 5 reset",  # an answer's
]


@pytest.mark.parametrize("text", NOT_SIGNED)
def test_node_refuses_and_counts_what_is_not_signed(signed_bench, text):
    """Anybody at a broker without rules changed intervals and reset nodes."""
    signed_bench.take(text, b"reset")
    assert signed_bench.node.interval_ms == 1000
    assert signed_bench.node.report()["commands_refused"] == 2
    assert signed_bench.calls("disconnect") == []
    why = b"a refused: not signed with this fleet's key"
    assert signed_bench.said("answer") in ([], [proven(why)])


@pytest.mark.parametrize("number", [b"x", b"", b"-7", b"1.5", b"7", b"6", b"0"])
def test_node_refuses_a_number_that_is_none_or_not_above_the_last(signed_bench, number):
    signed_bench.take(signed(b"#a interval 500", 7), signed(b"#b interval 700", number))
    assert signed_bench.node.interval_ms == 500
    assert signed_bench.said("answer")[0] == proven(b"a done")
    assert signed_bench.node.report()["commands_refused"] == 1


def test_node_refuses_a_repetition_after_a_reset_too(signed_bench, make_bench):
    command = signed(b"#a interval 500", 1_800_000_000_000)
    signed_bench.take(command)
    again = make_bench(**SIGNED)
    again.run_ms(1000)
    again.client.published.clear()
    again.take(command, signed(b"#b interval 600", 1_800_000_000_001))
    assert again.node.interval_ms == 600
    why = b"a refused: its number is not above the last one"
    assert again.said("answer") == [proven(why), proven(b"b done")]
    assert again.node.report()["commands_refused"] == 1


def test_node_that_cannot_keep_the_number_does_not_obey(signed_bench, monkeypatch):
    monkeypatch.setattr(State, "save", Mock(side_effect=OSError(28, "ENOSPC")))
    signed_bench.take(signed(b"#a interval 500", 9))
    assert signed_bench.node.interval_ms == 1000
    assert signed_bench.said("answer")[0].startswith(b"a refused: flash: ")


def test_node_tells_forged_commands_in_its_health(signed_bench):
    signed_bench.take(b"sample", b"sample", signed(b"health", 3), ms=2000)
    first, second = (dict(one["values"]) for one in signed_bench.health())
    assert 24 not in first
    assert (second[24], second[5]) == (2, -61)


def test_node_that_slept_goes_on_counting_forged_commands(make_bench, client):
    sleeps = SIGNED | {"sleep_above_ms": 1000, "interval_ms": 60_000, "store": "journal"}
    bench = make_bench(**sleeps)
    client.to_deliver.append(b"sample")
    assert bench.node.run() > 0
    woken = make_bench(is_woken=True, **sleeps)
    assert woken.node.report()["commands_refused"] == 1
