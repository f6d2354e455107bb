"""A node that sleeps between two samples."""

import pytest

from host_tests.firmware.node_bench import NOW, Bench, fake_updates
from state import State
from timekeeper import Timekeeper

SLEEPER = {"interval_ms": 900_000, "sleep_above_ms": 60_000, "streams": [1]}


def delivers(client):
    """Let the fake broker acknowledge what was queued, as soon as it is polled."""

    def poll(timeout_ms, poll=client.poll):
        client.queued = 0
        return poll(timeout_ms)

    client.poll = poll


def test_sleeper_sends_one_reading_says_asleep_and_sleeps_to_the_next(clock, client, tmp_path):
    delivers(client)
    bench = Bench(clock, client, tmp_path / "state.json", **SLEEPER)
    sleep_ms = bench.node.run()
    assert 899_000 <= sleep_ms + clock.now_ms <= 900_000
    assert [one["sequence"] for one in bench.readings(0)] == [1]
    statuses = [msg for name, msg, *_ in client.published if name == b"sensors/node-7/status"]
    assert statuses == [b"asleep"]
    assert bench.client.calls[-1] == ("disconnect",)


def test_sleeper_goes_on_with_boot_numbers_and_uptime(clock, client, tmp_path):
    delivers(client)
    path = tmp_path / "state.json"
    Bench(clock, client, path, **SLEEPER).node.run()
    for wake in (2, 3):
        client.is_connected = False
        bench = Bench(clock, client, path, {"cause": 4}, is_woken=True, **SLEEPER)
        bench.node.run()
        last = bench.readings(0)[-1]
        assert (last["boot"], last["sequence"]) == (1, wake)
        assert abs(last["uptime_s"] - 900 * (wake - 1)) <= 1
    assert len(bench.health()) == 1
    again = Bench(clock, client, path, **SLEEPER)  # the power was gone
    again.node.run()
    assert again.readings(0)[-1]["boot"] == 2
    assert again.readings(0)[-1]["sequence"] == 1


@pytest.mark.parametrize("is_link", [True, False])
def test_sleeper_without_broker_or_link_sleeps_at_once(clock, client, tmp_path, is_link):
    client.can_connect = False
    bench = Bench(clock, client, tmp_path / "state.json", **SLEEPER)
    bench.network.link, bench.network.why = is_link, None if is_link else "no such network"
    assert bench.node.run() > 890_000
    assert clock.now_ms < 3000
    assert len(bench.readings(0)) == 1  # and waits in the journal
    assert client.queued == 1


def test_sleeper_that_gets_no_answer_sleeps_after_its_longest_time_awake(clock, client, tmp_path):
    bench = Bench(clock, client, tmp_path / "state.json", awake_ms=7000, **SLEEPER)
    assert bench.node.run()
    assert 7000 <= clock.now_ms < 9000


@pytest.mark.parametrize(("takes_s", "awake_s"), [(5, 5), (100, 20)])
def test_sleeper_that_receives_an_update_stays_awake_for_it(
    clock, client, tmp_path, takes_s, awake_s
):
    """It slept after 250 ms without a chunk: over a slow link four of them came a wake."""
    delivers(client)
    updates = fake_updates()
    node = {"updates": updates}
    bench = Bench(clock, client, tmp_path / "state.json", node, awake_ms=20_000, **SLEEPER)
    poll = client.poll

    def receive(timeout_ms):
        updates.is_receiving = clock.now_ms < takes_s * 1000
        return poll(timeout_ms)

    client.poll = receive
    assert bench.node.run()
    assert awake_s * 1000 <= clock.now_ms < awake_s * 1000 + 3000


def test_sleeper_with_all_said_listens_for_a_quarter_of_a_second(clock, client, tmp_path):
    """It was a whole one, with the radio on."""
    delivers(client)
    bench = Bench(clock, client, tmp_path / "state.json", **SLEEPER)
    polls, poll = [], client.poll

    def noted(timeout_ms):
        polls.append(timeout_ms)
        return poll(timeout_ms)

    client.poll = noted
    assert bench.node.run()
    assert polls[-1] == 250


@pytest.mark.parametrize("sleep_after", ["acknowledged", "stored"])
def test_sleeper_whose_firmware_is_on_trial_tries_the_broker_at_each_wake(
    clock, client, tmp_path, sleep_after
):
    """At the second it went back untried: asleep, `trial_s` was over, or the radio stayed off."""
    delivers(client)
    taken_back, told, path = [], [], tmp_path / "state.json"
    client.can_connect = False
    for wake in range(3):
        updates = fake_updates()
        updates.is_on_trial = True
        updates.takes_back = lambda: taken_back.append(1)
        updates.told_at_start = lambda: told.append(1)
        client.can_connect = wake == 2
        options = {"cause": 4, "updates": updates}
        config = SLEEPER | {"sleep_after": sleep_after, "trial_s": 60}
        bench = Bench(clock, client, path, options, is_woken=wake > 0, **config)
        assert bench.node.run()
        assert bench.calls("reconnect")
        client.calls.clear()
    assert (taken_back, told) == ([], [1])


def test_sleeper_counts_what_it_refused_over_its_sleeps(clock, client, tmp_path):
    """Its health report said that it lost nothing, when the journal had been full for days."""
    client.can_connect, client.room = False, 1
    path = tmp_path / "state.json"
    for wake in range(4):
        bench = Bench(clock, client, path, {"cause": 4}, is_woken=wake > 0, **SLEEPER)
        assert bench.node.run()
    assert bench.node.refused == 3
    client.can_connect, client.room = True, 100
    delivers(client)
    client.to_deliver.append(b"health")
    bench = Bench(clock, client, path, {"cause": 4}, is_woken=True, **SLEEPER)
    assert bench.node.run()
    assert dict(bench.health()[-1]["values"])[19] == 3


def test_sleeper_that_only_stores_leaves_the_radio_off_until_half_is_full(clock, client, tmp_path):
    delivers(client)
    path = tmp_path / "state.json"
    config = SLEEPER | {"sleep_after": "stored", "max_inflight": 2, "max_mqueue_len": 4}
    Bench(clock, client, path, **config).node.run()
    asked = []
    for _ in range(6):
        client.is_connected = False
        bench = Bench(clock, client, path, {"cause": 4}, is_woken=True, **config)
        bench.node.run()
        asked.append(bench.network.asked > 0)
    assert asked == [False, False, True, False, False, True]


def test_sleeper_whose_clock_stops_in_a_sleep_goes_on_with_its_time(clock, client, tmp_path):
    """RP2 loses its clock with each wake; a node that only stores asks nobody for days."""
    delivers(client)
    path = tmp_path / "state.json"
    for wake in range(1, 4):
        times = Timekeeper(clock, None, NOW if wake == 1 else 0)
        options = {"cause": 4, "times": times}
        client.is_connected = False
        bench = Bench(clock, client, path, options, is_woken=wake > 1, **SLEEPER)
        bench.node.run()
        last = bench.readings(0)[-1]
        assert last["time"] == NOW + last["uptime_s"]
        assert abs(last["time"] - NOW - 900 * (wake - 1)) <= 1


def test_sleeper_told_a_shorter_interval_stays_awake(clock, client, tmp_path):
    delivers(client)
    bench = Bench(clock, client, tmp_path / "state.json", **SLEEPER)
    client.to_deliver += [b"interval 1000", b"sample"]

    def stop(*words):
        bench.log.append(words)
        if len(bench.readings(0)) > 3:
            bench.node._wants_reset = True

    bench.node._log = stop
    assert bench.node.run() == 0
    assert bench.client.published[-1][1] == b"offline"
    assert b"online" in [msg for _, msg, *_ in bench.client.published]


def test_sleeper_that_cannot_keep_its_numbers_stays_awake(clock, client, tmp_path, monkeypatch):
    """It reset, sampled and reset again every few seconds, or would have used numbers twice."""
    delivers(client)
    bench = Bench(clock, client, tmp_path / "state.json", **SLEEPER)

    def fail(state):
        raise OSError(28)

    def stop(*words):
        bench.log.append(words)
        if bench.readings(0)[-1]["sequence"] == 3:
            bench.node._wants_reset = True

    monkeypatch.setattr(State, "save", fail)
    bench.node._log = stop
    assert bench.node.run() == 0
    assert 1_800_000 <= clock.now_ms < 1_802_000
    assert ("flash:", 28) in bench.log
    statuses = [msg for name, msg, *_ in client.published if name == b"sensors/node-7/status"]
    assert statuses == [b"asleep", b"online", b"offline"]
