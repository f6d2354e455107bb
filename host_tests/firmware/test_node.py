"""The node's logic under CPython: clock, client, network and files are fakes."""

import json
from types import SimpleNamespace

import pytest

from host_tests.firmware.conftest import FakeMessage
from host_tests.firmware.decoding import decode
from node import Node, topic_root
from settings import complete
from state import State
from timekeeper import Timekeeper

CONFIG = complete(
    {"client_id": "node-7", "server": "b", "interval_ms": 1000, "streams": [0, 1, 2]}
)


class FakeNetwork:
    why = None

    def __init__(self):
        self.link = True
        self.asked = 0

    def rssi(self):
        return -61

    def is_up(self):
        self.asked += 1
        return self.link


class FakeLed:
    def __init__(self):
        self.shown = []

    def show(self, is_online):
        self.shown.append(is_online)


class FakeSensor:
    def __init__(self, *values):
        self.values = values
        self.fails = False

    def measure(self, reading):
        if self.fails:
            raise OSError("silent")
        for value in self.values:
            reading.add(*value)


class FakeWatchdog:
    fed = 0

    def feed(self):
        self.fed += 1


class Bench:
    """A node with all its fakes."""

    def __init__(self, clock, client, path, node=None, is_woken=False, **config):
        self.clock, self.client, self.path = clock, client, path
        self.network, self.led, self.watchdog = FakeNetwork(), FakeLed(), FakeWatchdog()
        self.sensor = FakeSensor((1, 2100))
        self.log = []
        state = State(str(path))
        if not is_woken:
            state.begin_boot()
        self.node = Node(
            CONFIG | config, state, client, [self.sensor], self.network, self.led,
            self.watchdog, clock, lambda *words: self.log.append(words), **node or {},
        )  # fmt: skip

    def run_ms(self, ms):
        end = self.clock.now_ms + ms
        while self.clock.now_ms < end:
            self.node.step()

    def readings(self, stream):
        topic = b"sensors/node-7/reading/%d" % stream
        return [decode(msg) for name, msg, *_ in self.client.published if name == topic]

    def calls(self, name):
        return [call for call in self.client.calls if call[0] == name]


@pytest.fixture
def bench(clock, client, tmp_path):
    return Bench(clock, client, tmp_path / "state.json")


def test_node_before_connecting_sets_a_retained_will(bench):
    assert bench.client.calls == [("will", b"sensors/node-7/status", b"offline", True, 1)]


def test_node_when_connected_subscribes_to_commands_and_says_online(bench):
    bench.run_ms(500)
    assert bench.calls("subscribe") == [("subscribe", b"sensors/node-7/command", 2)]
    assert (b"sensors/node-7/status", b"online", True, 1) in bench.client.published


def test_node_online_samples_on_schedule_on_every_stream(bench):
    bench.run_ms(10_000)
    for stream in (1, 2):
        numbers = [reading["sequence"] for reading in bench.readings(stream)]
        assert numbers == list(range(1, 11))
    # The first sample came before the connection, and QoS 0 does not wait for one.
    assert [reading["sequence"] for reading in bench.readings(0)] == list(range(1, 10))
    last = bench.readings(2)[-1]
    assert (last["boot"], last["uptime_s"], last["values"]) == (1, 9, [(1, 2100)])
    assert bench.node.refused == 1


def test_node_offline_goes_on_sampling_and_skips_qos_0(bench):
    bench.client.can_connect = False
    bench.run_ms(5000)
    assert bench.readings(0) == []
    assert [reading["sequence"] for reading in bench.readings(1)] == [1, 2, 3, 4, 5]


def test_node_with_full_queue_uses_up_no_sequence_number(bench):
    bench.client.can_connect = False
    bench.client.room = 3  # for streams 1 and 2 together
    bench.run_ms(4000)
    assert bench.node.accepted == [0, 2, 1]
    bench.client.queued = 0
    bench.client.room = 100
    bench.run_ms(2000)
    assert [reading["sequence"] for reading in bench.readings(1)] == [1, 2, 3, 4]
    assert [reading["sequence"] for reading in bench.readings(2)] == [1, 2, 3]


def test_node_that_loses_only_the_broker_asks_the_link_and_reconnects(bench):
    bench.run_ms(3000)
    bench.client.error = OSError("broker gone")
    bench.run_ms(3000)
    assert [words[0] for words in bench.log if words[0] in ("connected", "broker:")] == [
        "connected",
        "broker:",
        "connected",
    ]
    assert len(bench.calls("subscribe")) == 1  # the client itself sends it again
    online = [msg for _, msg, retain, _ in bench.client.published if retain]
    assert online == [b"online", b"online"]


def test_node_without_link_does_not_try_the_broker(bench):
    bench.network.link = False
    bench.run_ms(3000)
    assert bench.calls("reconnect") == []
    assert bench.network.asked > 3
    bench.network.link = True
    bench.run_ms(1000)
    assert bench.client.is_connected


def test_node_that_cannot_connect_tells_each_reason_once(bench):
    bench.client.can_connect = False
    bench.run_ms(20_000)
    assert [words[0] for words in bench.log].count("broker:") == 1


def test_node_with_a_silent_sensor_publishes_the_rest(bench):
    bench.sensor.fails = True
    bench.run_ms(2000)
    assert bench.readings(2)[-1]["values"] == []
    assert bench.node.sensor_errors == 2


def test_node_on_command_changes_the_interval_at_once_and_over_resets(bench, clock, client):
    bench.run_ms(2500)
    client.to_deliver.append(b"interval 200")
    bench.run_ms(2000)
    # At 0, 1000, 2000, 3000; then the command, and one every 200 ms up to 5000.
    assert len(bench.readings(2)) == 4 + 9
    assert json.loads(bench.path.read_text()) == {"boot": 1, "interval_ms": 200}
    again = Bench(clock, client, bench.path)
    assert (again.node.interval_ms, again.node.report()["boot"]) == (200, 2)


@pytest.mark.parametrize(
    "text",
    [b"", b"interval 5", b"interval 99999999", b"sleep", b"x" * 300, b"interval " + b"9" * 30],
)
def test_node_on_a_wrong_command_changes_nothing_and_acknowledges(bench, text):
    bench.run_ms(1500)
    bench.client.to_deliver.append(text)
    bench.run_ms(1000)
    assert [words[0] for words in bench.log].count("command refused:") == 1
    assert bench.node.interval_ms == 1000
    assert bench.client.is_connected


def test_node_on_command_takes_one_extra_sample(bench):
    bench.run_ms(2000)
    before, start = bench.node.accepted[2], bench.clock.now_ms
    bench.client.to_deliver.append(b"sample")
    while bench.clock.now_ms < start + 999:
        bench.node.step()
    assert bench.node.accepted[2] == before + 2  # the one due at the start, and one more


def test_node_that_fell_behind_does_not_make_up_for_missed_samples(bench):
    bench.run_ms(2000)
    before = bench.node.accepted[2]
    bench.clock.now_ms += 60_000
    bench.run_ms(2000)
    assert bench.node.accepted[2] <= before + 3


def test_node_on_reset_drains_says_offline_and_disconnects(bench):
    bench.run_ms(1500)
    bench.client.inflight = 1
    bench.client.to_deliver.append(b"reset")

    def acknowledge(timeout_ms, poll=bench.client.poll):
        if (b"sensors/node-7/status", b"offline", True, 1) in bench.client.published:
            bench.client.inflight = 0
        return poll(timeout_ms)

    bench.client.poll = acknowledge
    bench.node.run()
    assert bench.client.published[-1] == (b"sensors/node-7/status", b"offline", True, 1)
    assert bench.client.calls[-1] == ("disconnect",)


def test_node_on_reset_without_broker_gives_up_draining_in_time(bench):
    bench.run_ms(1500)
    bench.client.to_deliver.append(b"reset")
    bench.client.error = OSError("broker gone")
    bench.client.can_connect = False
    bench.client.queued = 1
    bench.run_ms(500)
    bench.node._wants_reset = True
    start = bench.clock.now_ms
    bench.node.run()
    assert bench.clock.now_ms - start <= 31_000


class FloatingSensor:
    """Allocates: with the heap locked that is a MemoryError."""

    def __init__(self, bench):
        self.bench = bench

    def measure(self, reading):
        reading.add(3, 101_325)
        if self.bench.node._is_locked:
            raise MemoryError("heap is locked")
        reading.add(1, 2150)


def test_node_whose_sensor_allocates_takes_the_same_sample_unlocked(bench):
    """The sample was lost, and each one after it: a node online published nothing more."""
    bench.node._sensors.append(FloatingSensor(bench))
    bench.run_ms(10_000)
    assert len(bench.readings(2)) == 10
    assert bench.readings(2)[-1]["values"] == [(1, 2100), (3, 101_325), (1, 2150)]
    assert bench.node.unlocked_rounds == 9  # the first was before the connection
    assert bench.node.sensor_errors == 0


class WrongSensor:
    def __init__(self, value):
        self.value = value

    def measure(self, reading):
        reading.add(3, 7)
        reading.add(1, self.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "WrongSensor: TypeError: "),
        (float("nan"), "WrongSensor: TypeError: "),
        ("21", "WrongSensor: TypeError: "),
        (1 << 31, "WrongSensor: ValueError: 2147483648 has more than 32 bits"),
    ],
)
def test_node_whose_sensor_is_wrong_goes_on_without_it_and_says_so_once(bench, value, text):
    """It reset every five seconds, for ever, and could not even be updated."""
    bench.node._sensors.insert(0, WrongSensor(value))
    bench.run_ms(5000)
    assert len(bench.readings(2)) == 5
    assert bench.readings(2)[-1]["values"] == [(3, 7), (1, 2100)]
    told = [words for words in bench.log if words[0] == "sensor:"]
    assert len(told) == 1
    assert told[0][1].startswith(text)
    assert bench.node.sensor_errors == 5


def test_node_whose_flash_is_full_obeys_and_tries_again(bench, monkeypatch):
    """The error came out of the handler, so the broker brought the command again, for ever."""
    bench.run_ms(1500)
    save, tries = State.save, []

    def fail(state):
        tries.append(bench.clock.now_ms)
        raise OSError(28, "ENOSPC")

    monkeypatch.setattr(State, "save", fail)
    bench.client.to_deliver.append(b"#1 interval 2000")
    bench.run_ms(100_000)
    assert answers(bench) == [b"1 done"]
    assert len(tries) == 2
    assert bench.log.count(("flash:", "ENOSPC")) == 2
    monkeypatch.setattr(State, "save", save)
    bench.node.shut_down()
    assert State(str(bench.path)).interval_ms == 2000


def test_node_always_feeds_the_watchdog_within_two_seconds(bench):
    for broker_is_there in (True, False, True):
        bench.client.can_connect = broker_is_there
        bench.client.error = OSError("gone")
        for _ in range(100):
            fed, start = bench.watchdog.fed, bench.clock.now_ms
            bench.node.step()
            assert bench.watchdog.fed == fed + 1
            assert bench.clock.now_ms - start <= 2000


def test_node_shows_the_connection_on_its_led(bench):
    bench.client.can_connect = False
    bench.run_ms(1000)
    assert not any(bench.led.shown)
    bench.client.can_connect = True
    bench.run_ms(3000)
    assert bench.led.shown[-1]


def test_node_in_which_something_allocates_repeats_the_round_unlocked(bench):
    bench.run_ms(1500)
    bench.client.error = MemoryError("heap is locked")
    bench.client.is_connected = True
    bench.node.step()
    assert bench.node.unlocked_rounds == 1
    bench.run_ms(3000)
    assert bench.node.unlocked_rounds == 1
    assert bench.client.is_connected


@pytest.mark.parametrize(("stored", "accepted"), [(0, 0), (1, 1)])
def test_node_with_error_under_locked_heap_counts_what_was_stored(bench, stored, accepted):
    bench.run_ms(500)
    before = bench.node.accepted[2]

    def publish(*_):
        bench.client.inflight += stored
        raise MemoryError("heap is locked")

    bench.client.publish = publish
    bench.node._publish(2)
    assert bench.node.accepted[2] == before + accepted


@pytest.mark.parametrize(
    ("extra", "root"),
    [({}, b"sensors/node-7"), ({"site": "oslo", "prefix": "acme/eu"}, b"acme/eu/oslo/node-7")],
)
def test_topic_root_holds_prefix_site_and_device(extra, root):
    assert topic_root(CONFIG | extra) == root


def test_node_ignores_retained_commands_and_says_so(bench):
    """A retained `reset` came again with every connection, so the node reset for ever."""
    bench.run_ms(1500)
    bench.client.to_deliver += [FakeMessage(b"#1 reset", retain=True), b"#2 sample"]
    bench.run_ms(1000)
    assert ("command ignored: it is retained",) in bench.log
    assert ("command", "sample", "") in bench.log
    assert bench.calls("disconnect") == []
    assert answers(bench) == [b"2 done"]


def fake_updates():
    """An ota.Updates to which nothing happens."""
    return SimpleNamespace(
        attach=lambda *_: None,
        is_complete=False,
        is_receiving=False,
        is_on_trial=False,
        told_at_start=lambda: None,
        takes_back=lambda: False,
    )


def test_node_tells_its_updates_what_is_retained(clock, client, tmp_path):
    taken, updates = [], fake_updates()
    updates.take = lambda *words: taken.append(words)
    bench = Bench(clock, client, tmp_path / "state.json", {"updates": updates})
    bench.run_ms(1500)
    topic = b"sensors/node-7/update"
    client.to_deliver += [FakeMessage(b"O", True, topic), FakeMessage(b"C", False, topic)]
    bench.run_ms(1000)
    assert taken == [(b"O", True), (b"C", False)]


def answers(bench):
    return [msg for name, msg, *_ in bench.client.published if name == b"sensors/node-7/answer"]


def test_node_writes_a_commanded_interval_once_and_at_most_once_a_minute(bench, monkeypatch):
    saved = []
    monkeypatch.setattr(State, "save", lambda state: saved.append(state.interval_ms))
    bench.run_ms(1500)
    for interval_ms in (200, 200, 300, 400, 300):
        bench.client.to_deliver.append(b"interval %d" % interval_ms)
        bench.run_ms(1000)
    assert saved == [200]
    assert bench.node.interval_ms == 300
    bench.run_ms(60_000)
    assert saved == [200, 300]
    bench.client.to_deliver.append(b"interval 500")
    bench.run_ms(1000)
    bench.node.shut_down()
    assert saved == [200, 300, 500]


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
    bench.run_ms(1500)
    bench.client.to_deliver.append(text)
    bench.run_ms(1500)
    assert answers(bench) == ([answer] if answer else [])


def test_node_answers_a_reset_before_it_goes(bench):
    bench.run_ms(1500)
    bench.client.to_deliver.append(b"#r reset")
    assert bench.node.run() == 0
    assert answers(bench) == [b"r done"]
    assert bench.client.calls[-1] == ("disconnect",)


def test_node_whose_queue_is_full_obeys_no_command_that_it_could_not_answer(bench):
    """Each was obeyed, and from the ninth on nobody heard of it."""
    bench.run_ms(1500)
    publish, full = bench.client.publish, [True]

    def publish_or_not(topic, *rest):
        if full and topic.endswith(b"/answer"):
            raise OSError("full")
        publish(topic, *rest)

    bench.client.publish = publish_or_not
    bench.client.to_deliver += [b"#%d interval %d" % (i, 100_000 + i) for i in range(70)]
    bench.run_ms(3000)
    assert bench.node.interval_ms == 100_007
    full.clear()
    bench.run_ms(1000)
    assert answers(bench) == [b"%d done" % i for i in range(8)] + [
        b"%d refused: too many at once" % i for i in range(8, 64)
    ]
    bench.client.to_deliver.append(b"#70 interval 100070")
    bench.run_ms(1000)
    assert answers(bench)[-1] == b"70 done"


def health(bench):
    topic = b"sensors/node-7/health"
    return [decode(msg) for name, msg, *_ in bench.client.published if name == topic]


def test_node_reports_its_health_at_the_start_daily_and_when_asked(clock, client, tmp_path):
    bench = Bench(clock, client, tmp_path / "state.json", {"cause": 3}, interval_ms=3_600_000)
    client.stats.dropped, client.stats.reconnects = 2, 5
    bench.run_ms(2000)
    (first,) = health(bench)
    values = dict(first["values"])
    assert (first["stream"], first["sequence"], first["boot"]) == (255, 1, 1)
    # One reading of QoS 0 was refused before the connection.
    assert (values[16], values[18], values[19], values[21], values[5]) == (3, 5, 3, 0, -61)
    assert values[20] == 10000 * 2 // 20  # the first readings of QoS 1 and 2, of 4 + 16
    bench.run_ms(86_300_000)
    assert len(health(bench)) == 1
    bench.run_ms(200_000)
    assert len(health(bench)) == 2
    client.to_deliver.append(b"health")
    bench.run_ms(2000)
    assert [one["sequence"] for one in health(bench)] == [1, 2, 3]


def test_node_that_knows_the_time_writes_when_it_was_measured(clock, client, tmp_path):
    bench = Bench(
        clock, client, tmp_path / "state.json", {"times": Timekeeper(clock, now_s=1_800_000_000)}
    )
    bench.run_ms(70_000_000)  # more than 16 bits of seconds
    for one in bench.readings(2)[::1000]:
        assert one["time"] == 1_800_000_000 + one["uptime_s"]


class FakeNTP:
    error = None

    def __init__(self, *answers):
        self.answers = list(answers)
        self.is_asking = False

    def work(self, has_network):
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, str):
            self.error = answer
            return None
        return answer


def test_node_learns_the_time_in_the_background_and_sets_the_clock(clock, client, tmp_path):
    heard = []
    times = Timekeeper(clock, FakeNTP(None, None, None, 1_800_000_000), 0, heard.append)
    bench = Bench(clock, client, tmp_path / "state.json", {"times": times})
    bench.run_ms(5000)
    readings = bench.readings(2)
    assert readings[0]["time"] == 0
    starts = {one["time"] - one["uptime_s"] for one in readings if one["time"]}
    assert len(starts) == 1
    assert 1_800_000_000 - 4 <= starts.pop() <= 1_800_000_000
    assert heard == [1_800_000_000]


def said(seconds, retain=False):
    text = seconds if isinstance(seconds, bytes) else b"%d" % seconds
    return FakeMessage(text, retain, b"sensors/time")


NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("messages", "starts"),
    [
        ([said(NOW, retain=True)], [NOW]),
        ([said(NOW)], [NOW]),
        # A retained one is as old as it may be; one that comes as it is published, is right.
        ([said(NOW), said(NOW - 60, retain=True)], [NOW]),
        ([said(NOW, retain=True), said(NOW + 40, retain=True)], [NOW, NOW + 40]),
        ([said(NOW, retain=True), said(NOW + 40)], [NOW, NOW + 40]),
        ([said(NOW + 500), said(NOW)], [NOW + 500, NOW]),
        ([said(b""), said(b"now"), said(1_600_000_000), said(b"9" * 11), said(b"1.8e9")], []),
    ],
)
def test_node_takes_the_time_from_the_broker_s_side(clock, client, tmp_path, messages, starts):
    heard = []
    times = Timekeeper(clock, None, 0, heard.append)
    bench = Bench(
        clock, client, tmp_path / "state.json", {"times": times}, time_topic="sensors/time"
    )
    for message in messages:
        bench.run_ms(2000)
        client.to_deliver.append(message)
    bench.run_ms(2000)
    assert bench.calls("subscribe")[-1] == ("subscribe", b"sensors/time", 0)
    assert heard == starts
    last = bench.readings(2)[-1]
    assert bool(last["time"]) == bool(starts)
    if starts:
        assert 0 <= last["time"] - starts[-1] < 2 + 2 * len(messages)


def test_node_that_ntp_answered_hears_nobody_else(clock, client, tmp_path):
    heard = []
    times = Timekeeper(clock, FakeNTP(NOW), 0, heard.append)
    bench = Bench(
        clock, client, tmp_path / "state.json", {"times": times}, time_topic="sensors/time"
    )
    bench.run_ms(2000)
    client.to_deliver.append(said(NOW + 1000))
    bench.run_ms(2000)
    assert heard == [NOW]


def test_node_with_tls_waits_for_the_time_and_says_why(clock, client, tmp_path):
    ntp = FakeNTP("no time from pool: no answer", None, None)
    options = {"times": Timekeeper(clock, ntp)}
    bench = Bench(clock, client, tmp_path / "state.json", options, tls="ca.pem")
    bench.run_ms(3000)
    assert bench.calls("reconnect") == []
    told = [words for words in bench.log if words[0].startswith("tls")]
    assert told == [("tls: waits for the time:", "no time from pool: no answer")]
    ntp.answers.append(1_800_000_000)
    bench.run_ms(1000)
    assert client.is_connected


def test_node_whose_tls_refuses_the_certificate_says_so_and_goes_on(bench):
    """MicroPython raises ValueError for it, which ended the program without a word."""

    def refuse(timeout_ms):
        bench.clock.sleep_ms(timeout_ms)
        raise ValueError("The certificate is not correctly signed by the trusted CA")

    bench.client.reconnect, works = refuse, bench.client.reconnect
    bench.run_ms(5000)
    told = [words for words in bench.log if words[0] == "broker:"]
    assert told == [("broker:", "The certificate is not correctly signed by the trusted CA")]
    assert len(bench.readings(2)) == 5
    bench.client.reconnect = works
    bench.run_ms(1000)
    assert bench.client.is_connected


class FakeNames:
    is_ready = False
    error = "no address of b: no answer"

    def __init__(self):
        self.asked = []

    def work(self, has_network):
        self.asked.append(has_network)


def test_node_connects_by_name_when_the_name_server_has_answered(clock, client, tmp_path):
    """The port's look-up took longer than the watchdog of an RP2040: it reset for ever."""
    names = FakeNames()
    bench = Bench(clock, client, tmp_path / "state.json", {"names": names})
    bench.run_ms(3000)
    assert bench.calls("reconnect") == []
    assert bench.log.count(("broker:", "no address of b: no answer")) == 1
    assert len(bench.readings(1)) == 3
    assert all(names.asked)
    names.is_ready = True
    bench.run_ms(1000)
    assert client.is_connected
    names.asked.clear()
    bench.run_ms(3000)
    assert not any(names.asked)  # connected: nobody asks


def test_node_without_link_says_why_once(bench):
    bench.network.link, bench.network.why = False, "wrong password for home"
    bench.run_ms(3000)
    assert bench.log.count(("network:", "wrong password for home")) == 1


# --- deep sleep -----------------------------------------------------------------

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
    assert len(health(bench)) == 1
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
    assert dict(health(bench)[-1]["values"])[19] == 3


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
