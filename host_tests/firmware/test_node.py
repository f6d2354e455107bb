"""The node's logic under CPython: clock, client, network and files are fakes."""

import json

import pytest

from host_tests.firmware.decoding import decode
from node import Node, topic_root
from settings import complete
from state import State

CONFIG = complete(
    {"client_id": "node-7", "server": "b", "interval_ms": 1000, "streams": [0, 1, 2]}
)


class FakeNetwork:
    def __init__(self):
        self.link = True
        self.asked = 0

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

    def __init__(self, clock, client, path, **config):
        self.clock, self.client, self.path = clock, client, path
        self.network, self.led, self.watchdog = FakeNetwork(), FakeLed(), FakeWatchdog()
        self.sensor = FakeSensor((1, 2100))
        self.log = []
        state = State(str(path))
        state.begin_boot()
        self.node = Node(
            CONFIG | config, state, client, [self.sensor], self.network, self.led,
            self.watchdog, clock, lambda *words: self.log.append(words),
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
    assert ("command not understood",) in bench.log
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
