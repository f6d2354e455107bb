"""A node that sleeps between two samples."""

from unittest.mock import Mock

import pytest

from host_tests.firmware.conftest import FakeMessage
from host_tests.firmware.node_bench import NOW, fake_updates
from state import State
from timekeeper import Timekeeper

SLEEPER = {"interval_ms": 900_000, "sleep_above_ms": 60_000, "streams": [1]}


@pytest.fixture
def make_sleeper(make_bench, client):
    """make_sleeper(node options, is_woken, …) -> a node that sleeps, with settings of its own.

    The fake broker acknowledges what was queued, as soon as it is polled.
    """
    client.answers = True

    def deliver(timeout_ms):
        if client.answers:
            client.queued = 0

    client.on_poll = deliver
    return lambda *about, **config: make_bench(*about, **SLEEPER | config)


def test_sleeper_sends_one_reading_says_asleep_and_sleeps_to_the_next(make_sleeper, clock, client):
    bench = make_sleeper()
    sleep_ms = bench.node.run()
    assert 899_000 <= sleep_ms + clock.now_ms <= 900_000
    assert [one["sequence"] for one in bench.readings(0)] == [1]
    assert bench.said("status") == [b"asleep"]
    assert bench.client.calls[-1] == ("disconnect",)


def test_sleeper_goes_on_with_boot_numbers_and_uptime(make_sleeper):
    make_sleeper().node.run()
    for wake in (2, 3):
        bench = make_sleeper({"cause": 4}, is_woken=True)
        bench.node.run()
        last = bench.readings(0)[-1]
        assert (last["boot"], last["sequence"]) == (1, wake)
        assert abs(last["uptime_s"] - 900 * (wake - 1)) <= 1
    assert len(bench.health()) == 1
    again = make_sleeper()  # the power was gone
    again.node.run()
    assert again.readings(0)[-1]["boot"] == 2
    assert again.readings(0)[-1]["sequence"] == 1


@pytest.mark.parametrize("is_link", [True, False])
def test_sleeper_without_broker_or_link_sleeps_at_once(make_sleeper, clock, client, is_link):
    client.can_connect = False
    bench = make_sleeper()
    bench.network.link, bench.network.why = is_link, None if is_link else "no such network"
    assert bench.node.run() > 890_000
    assert clock.now_ms < 3000
    assert len(bench.readings(0)) == 1  # and waits in the journal
    assert client.queued == 1


def test_sleeper_that_gets_no_answer_sleeps_after_its_longest_time_awake(
    make_sleeper, clock, client
):
    bench, client.answers = make_sleeper(awake_ms=7000), False
    assert bench.node.run()
    assert 7000 <= clock.now_ms < 9000


@pytest.mark.parametrize(("takes_s", "awake_s"), [(5, 5), (100, 20)])
def test_sleeper_that_receives_an_update_stays_awake_for_it(
    make_sleeper, clock, client, takes_s, awake_s
):
    """It slept after 250 ms without a chunk: over a slow link four of them came a wake."""
    updates = fake_updates()
    bench = make_sleeper({"updates": updates}, awake_ms=20_000)
    deliver = client.on_poll

    def receive(timeout_ms):
        updates.is_receiving = clock.now_ms < takes_s * 1000
        deliver(timeout_ms)

    client.on_poll = receive
    assert bench.node.run()
    assert awake_s * 1000 <= clock.now_ms < awake_s * 1000 + 3000


def test_sleeper_with_all_said_listens_for_a_quarter_of_a_second(make_sleeper, client):
    """It was a whole one, with the radio on."""
    bench = make_sleeper()
    client.poll = Mock(side_effect=client.poll)
    assert bench.node.run()
    client.poll.assert_called_with(250)


@pytest.mark.parametrize("answers", [True, False])
def test_sleeper_told_to_sample_in_its_last_moment_awake_does(
    make_sleeper, clock, client, answers
):
    """The command was acknowledged, so it did not come again."""
    bench, client.answers = make_sleeper(awake_ms=7000), answers
    poll, told = client.poll, []

    def receive(timeout_ms):
        packets = poll(timeout_ms)
        if not told and (timeout_ms == 250 or clock.now_ms >= 7000):
            told.append(clock.now_ms)
            client.on_message(FakeMessage(b"sample"))
        return packets

    client.poll = receive
    assert bench.node.run()
    assert len(bench.readings(0)) == 2
    assert (told[0] >= 7000) == (not answers)
    assert clock.now_ms < 9000


@pytest.mark.parametrize("sleep_after", ["acknowledged", "stored"])
def test_sleeper_whose_firmware_is_on_trial_tries_the_broker_at_each_wake(
    make_sleeper, client, sleep_after
):
    """At the second it went back untried: asleep, `trial_s` was over, or the radio stayed off."""
    updates = fake_updates()
    updates.is_on_trial = True
    for wake in range(3):
        client.can_connect = wake == 2
        options = {"cause": 4, "updates": updates}
        bench = make_sleeper(options, wake > 0, sleep_after=sleep_after, trial_s=60)
        assert bench.node.run()
        assert bench.calls("reconnect")
        client.calls.clear()
    updates.takes_back.assert_not_called()
    updates.told_at_start.assert_called_once_with()


def test_sleeper_counts_over_its_sleeps_what_it_refused_and_its_client_gave_up(
    make_sleeper, client
):
    """Its health report said that it lost nothing, when the journal had been full for days."""
    client.can_connect, client.room = False, 1
    for wake in range(4):
        bench = make_sleeper({"cause": 4}, is_woken=wake > 0)
        client.stats.dropped = 7 if wake == 3 else 0  # each start has a new client
        assert bench.node.run()
    assert bench.node.refused == 3
    client.can_connect, client.room, client.stats.dropped = True, 100, 0
    client.to_deliver.append(b"health")
    bench = make_sleeper({"cause": 4}, is_woken=True)
    assert bench.node.run()
    assert dict(bench.health()[-1]["values"])[19] == 3 + 7


@pytest.mark.parametrize(
    ("inflight", "waiting", "streams", "room", "asked"),
    [
        pytest.param(2, 4, [1], 4, [0, 0, 1, 0, 0, 1], id="half is full"),
        pytest.param(9, 3, [1], 3, [0, 1, 0, 1, 0, 1], id="less than half may wait"),
        pytest.param(9, 2, [1, 2], 2, [1, 1, 1, 1, 1, 1], id="one sample may wait"),
        pytest.param(2, 99, [1], 2, [0, 0, 1, 0, 0, 1], id="no more fit into the journal"),
    ],
)
def test_sleeper_that_only_stores_leaves_the_radio_off_until_there_is_little_room(
    make_sleeper, client, inflight, waiting, streams, room, asked
):
    """With less room than half of what may be on its way, it never sent again."""
    config = {"max_inflight": inflight, "max_mqueue_len": waiting, "streams": streams}
    client.room = room
    found = []
    for wake in range(7):
        bench = make_sleeper({"cause": 4}, wake > 0, sleep_after="stored", **config)
        bench.node.run()
        found.append(bench.network.asked)
    assert [one > 0 for one in found[1:]] == asked
    assert [one["sequence"] for one in bench.readings(0)] == [1, 2, 3, 4, 5, 6, 7]
    assert bench.node.refused == 0


@pytest.mark.parametrize(("sleep_after", "sent"), [("acknowledged", 4), ("stored", 2)])
def test_sleeper_sends_its_readings_of_qos_0_when_it_is_connected(make_sleeper, sleep_after, sent):
    """It sampled before it connected, and so refused each of them."""
    more = {"streams": [0, 1], "sleep_after": sleep_after, "max_mqueue_len": 5, "max_inflight": 1}
    for wake in range(4):
        bench = make_sleeper({"cause": 4}, is_woken=wake > 0, **more)
        assert bench.node.run()
    assert [one["sequence"] for one in bench.readings(0)] == list(range(1, sent + 1))
    assert [one["sequence"] for one in bench.readings(1)] == [1, 2, 3, 4]
    assert bench.node.refused == 4 - sent


def test_sleeper_whose_clock_stops_in_a_sleep_goes_on_with_its_time(make_sleeper, clock):
    """RP2 loses its clock with each wake; a node that only stores asks nobody for days."""
    for wake in range(1, 4):
        times = Timekeeper(clock, None, NOW if wake == 1 else 0)
        bench = make_sleeper({"cause": 4, "times": times}, is_woken=wake > 1)
        bench.node.run()
        last = bench.readings(0)[-1]
        assert last["time"] == NOW + last["uptime_s"]
        assert abs(last["time"] - NOW - 900 * (wake - 1)) <= 1


def test_sleeper_told_a_shorter_interval_stays_awake(make_sleeper, client):
    bench = make_sleeper()
    client.to_deliver += [b"interval 1000", b"sample"]

    def stop(*words):
        bench.log.append(words)
        if len(bench.readings(0)) > 3:
            bench.node._wants_reset = True

    bench.node._log = stop
    assert bench.node.run() == 0
    assert bench.said("status")[-2:] == [b"online", b"offline"]


def test_sleeper_that_cannot_keep_its_numbers_stays_awake(
    make_sleeper, clock, client, monkeypatch
):
    """It reset, sampled and reset again every few seconds, or would have used numbers twice."""
    bench = make_sleeper()

    def stop(*words):
        bench.log.append(words)
        if bench.readings(0)[-1]["sequence"] == 3:
            bench.node._wants_reset = True

    monkeypatch.setattr(State, "save", Mock(side_effect=OSError(28)))
    bench.node._log = stop
    assert bench.node.run() == 0
    assert 1_800_000 <= clock.now_ms < 1_802_000
    assert ("flash:", 28) in bench.log
    assert bench.said("status") == [b"asleep", b"online", b"offline"]
