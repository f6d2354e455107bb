"""The node's logic under CPython: clock, client, network and files are fakes."""

from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest

from host_tests.firmware.conftest import FakeMessage
from host_tests.firmware.node_bench import CONFIG, FakeSensor, fake_updates
from node import topic_root
from umqtt31 import REFUSED_FILTER, MQTTError


def test_node_sets_a_will_connects_subscribes_to_commands_and_says_online(bench):
    assert bench.client.calls == [("will", b"sensors/node-7/status", b"offline", True, 1)]
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


def test_node_offline_goes_on_sampling_skips_qos_0_and_tells_why_once(bench):
    bench.client.can_connect = False
    bench.run_ms(5000)
    assert bench.readings(0) == []
    assert [reading["sequence"] for reading in bench.readings(1)] == [1, 2, 3, 4, 5]
    assert len(bench.told("broker:")) == 1


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
    words = [words[0] for words in bench.log if words[0] in ("connected", "broker:")]
    assert words == ["connected", "broker:", "connected"]
    assert len(bench.calls("subscribe")) == 1  # the client itself sends it again
    online = [msg for _, msg, retain, _ in bench.client.published if retain]
    assert online == [b"online", b"online"]


def test_node_without_link_does_not_try_the_broker_and_says_why_once(bench):
    bench.network.link, bench.network.why = False, "wrong password for home"
    bench.run_ms(3000)
    assert bench.log.count(("network:", "wrong password for home")) == 1
    assert bench.calls("reconnect") == []
    assert bench.network.asked > 3
    bench.network.link = True
    bench.run_ms(1000)
    assert bench.client.is_connected


def test_node_with_a_silent_sensor_publishes_the_rest(bench):
    bench.sensor.fails = True
    bench.run_ms(2000)
    assert bench.readings(2)[-1]["values"] == []
    assert bench.node.sensor_errors == 2


def test_node_that_fell_behind_does_not_make_up_for_missed_samples(bench):
    bench.run_ms(2000)
    before = bench.node.accepted[2]
    bench.clock.now_ms += 60_000
    bench.run_ms(2000)
    assert bench.node.accepted[2] <= before + 3


def test_node_whose_sensor_allocates_takes_the_same_sample_unlocked(bench):
    """The sample was lost, and each one after it: a node online published nothing more."""

    def measure(reading):
        reading.add(3, 101_325)
        if bench.node._is_locked:
            raise MemoryError("heap is locked")
        reading.add(1, 2150)

    bench.node._sensors.append(SimpleNamespace(measure=measure))
    bench.run_ms(10_000)
    assert len(bench.readings(2)) == 10
    assert bench.readings(2)[-1]["values"] == [(1, 2100), (3, 101_325), (1, 2150)]
    assert bench.node.unlocked_rounds == 9  # the first was before the connection
    assert bench.node.sensor_errors == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "FakeSensor: TypeError: "),
        (float("nan"), "FakeSensor: TypeError: "),
        ("21", "FakeSensor: TypeError: "),
        (1 << 31, "FakeSensor: ValueError: 2147483648 has more than 32 bits"),
    ],
)
def test_node_whose_sensor_is_wrong_goes_on_without_it_and_says_so_once(bench, value, text):
    """It reset every five seconds, for ever, and could not even be updated."""
    bench.node._sensors.insert(0, FakeSensor((3, 7), (1, value)))
    bench.run_ms(5000)
    assert len(bench.readings(2)) == 5
    assert bench.readings(2)[-1]["values"] == [(3, 7), (1, 2100)]
    (told,) = bench.told("sensor:")
    assert told[1].startswith(text)
    assert bench.node.sensor_errors == 5


def test_node_always_feeds_the_watchdog_within_two_seconds(bench):
    for broker_is_there in (True, False, True):
        bench.client.can_connect = broker_is_there
        bench.client.error = OSError("gone")
        for _ in range(100):
            fed, start = len(bench.fed), bench.clock.now_ms
            bench.node.step()
            assert len(bench.fed) > fed
            assert bench.clock.now_ms - start <= 2000


def test_node_feeds_the_watchdog_while_it_waits_for_a_slow_broker(make_bench, client, clock):
    """Three answers of 5 s each, and the shortest watchdog bites after 8.3: at each start."""
    bench = make_bench({"updates": fake_updates()}, time_topic="sensors/time")
    client.subscribe = Mock(side_effect=lambda *_: clock.sleep_ms(5000))
    bench.run_ms(30_000)
    assert client.subscribe.call_count == 3
    assert max(after - before for before, after in pairwise(bench.fed)) < 8300


def test_node_shows_the_connection_on_its_led(bench):
    bench.client.can_connect = False
    bench.run_ms(1000)
    assert not any(bench.shown)
    bench.client.can_connect = True
    bench.run_ms(3000)
    assert bench.shown[-1]


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


def test_node_tells_its_updates_what_is_retained(make_bench):
    updates = fake_updates()
    bench = make_bench({"updates": updates})
    bench.run_ms(1500)
    topic = b"sensors/node-7/update"
    bench.take(FakeMessage(b"O", True, topic), FakeMessage(b"C", False, topic))
    assert updates.take.mock_calls == [call(b"O", True), call(b"C", False)]


@pytest.mark.parametrize(("is_on_trial", "count"), [(True, 3), (False, 1)])
def test_node_whose_flash_fails_at_the_greeting_tries_to_confirm_again(
    make_bench, is_on_trial, count
):
    """One failed write took a good update back; that it went back is said once."""
    tries, updates = [], fake_updates()
    updates.is_on_trial = is_on_trial

    def told_at_start():
        tries.append(bench.clock.now_ms)
        if len(tries) < 3:
            raise OSError(5, "EIO")
        updates.is_on_trial = False

    updates.told_at_start = told_at_start
    bench = make_bench({"updates": updates})
    bench.run_ms(60_000)
    assert len(tries) == count
    assert len(bench.calls("reconnect")) == 1


def test_node_reports_its_health_at_the_start_daily_and_when_asked(make_bench, client):
    bench = make_bench({"cause": 3}, interval_ms=3_600_000)
    client.stats.dropped, client.stats.reconnects = 2, 5
    bench.run_ms(2000)
    (first,) = bench.health()
    values = dict(first["values"])
    assert (first["stream"], first["sequence"], first["boot"]) == (255, 1, 1)
    # One reading of QoS 0 was refused before the connection.
    assert (values[16], values[18], values[19], values[21], values[5]) == (3, 5, 3, 0, -61)
    assert values[20] == 10000 * 2 // 20  # the first readings of QoS 1 and 2, of 4 + 16
    bench.run_ms(86_300_000)
    assert len(bench.health()) == 1
    bench.run_ms(200_000)
    assert len(bench.health()) == 2
    bench.take(b"health", ms=2000)
    assert [one["sequence"] for one in bench.health()] == [1, 2, 3]


def test_node_whose_tls_refuses_the_certificate_says_so_and_goes_on(bench):
    """MicroPython raises ValueError for it, which ended the program without a word."""

    def refuse(timeout_ms):
        bench.clock.sleep_ms(timeout_ms)
        raise ValueError("The certificate is not correctly signed by the trusted CA")

    bench.client.reconnect, works = refuse, bench.client.reconnect
    bench.run_ms(5000)
    assert bench.told("broker:") == [
        ("broker:", "The certificate is not correctly signed by the trusted CA")
    ]
    assert len(bench.readings(2)) == 5
    bench.client.reconnect = works
    bench.run_ms(1000)
    assert bench.client.is_connected


def test_node_whose_commands_the_broker_refuses_says_so_once_and_goes_on(bench):
    """It asked again at once, without an end, and never said `online`."""

    def refuse(topic, qos):
        bench.clock.sleep_ms(1)
        raise MQTTError(REFUSED_FILTER)

    bench.client.subscribe = refuse
    bench.run_ms(3000)
    assert [str(words[1])[:6] for words in bench.log if words[0] == "broker:"] == ["broker"]
    assert (b"sensors/node-7/status", b"online", True, 1) in bench.client.published


def test_node_connects_by_name_when_the_name_server_has_answered(make_bench):
    """The port's look-up took longer than the watchdog of an RP2040: it reset for ever."""
    asked = []
    about = {"is_ready": False, "error": "no address of b: no answer"}
    names = SimpleNamespace(work=asked.append, **about)
    bench = make_bench({"names": names})
    bench.run_ms(3000)
    assert bench.calls("reconnect") == []
    assert bench.log.count(("broker:", "no address of b: no answer")) == 1
    assert len(bench.readings(1)) == 3
    assert all(asked)
    names.is_ready = True
    bench.run_ms(1000)
    assert bench.client.is_connected
    asked.clear()
    bench.run_ms(3000)
    assert not any(asked)  # connected: nobody asks
