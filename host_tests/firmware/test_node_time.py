"""The time in a node's readings: from NTP, from the broker's side, and what waits for it."""

from unittest.mock import Mock

import pytest

from host_tests.firmware.conftest import FakeMessage
from host_tests.firmware.node_bench import NOW
from timekeeper import Timekeeper


def test_node_that_knows_the_time_writes_when_it_was_measured(clock, make_bench):
    bench = make_bench({"times": Timekeeper(clock, now_s=NOW)})
    bench.run_ms(70_000_000)  # more than 16 bits of seconds
    for one in bench.readings(2)[::1000]:
        assert one["time"] == NOW + one["uptime_s"]


@pytest.mark.parametrize("uptime_s", [0, 1, 0xFFFF, 0x10000, 0x10001, 5 * 86400, 1 << 29])
@pytest.mark.parametrize("seconds", [1_800_000_000, 0x6B49FFFF, 0x6B4A0000, 0x90000000])
def test_time_in_two_halves_counts_on_with_the_uptime(clock, seconds, uptime_s):
    times = Timekeeper(clock, now_s=seconds)
    times.count()
    assert (times.high, times.low) == (0, 0)
    times.begin({"uptime_s": 100})
    times.uptime_s = uptime_s
    times.count()
    assert times.high << 16 | times.low == seconds - 100 + uptime_s


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


def test_node_learns_the_time_in_the_background_and_sets_the_clock(clock, make_bench):
    heard = []
    times = Timekeeper(clock, FakeNTP(None, None, None, NOW), 0, heard.append)
    bench = make_bench({"times": times})
    bench.run_ms(5000)
    readings = bench.readings(2)
    assert readings[0]["time"] == 0
    starts = {one["time"] - one["uptime_s"] for one in readings if one["time"]}
    assert len(starts) == 1
    assert NOW - 4 <= starts.pop() <= NOW
    assert heard == [NOW]


def said(seconds, retain=False):
    text = seconds if isinstance(seconds, bytes) else b"%d" % seconds
    return FakeMessage(text, retain, b"sensors/time")


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
        # What is later than a reading can tell was one of 2014 in it.
        ([said(1 << 32, retain=True), said(9_999_999_999), said(NOW)], [NOW]),
        ([said(b""), said(b"now"), said(1_600_000_000), said(b"9" * 11), said(b"1.8e9")], []),
    ],
)
def test_node_takes_the_time_from_the_broker_s_side(clock, make_bench, messages, starts):
    heard = []
    times = Timekeeper(clock, None, 0, heard.append)
    bench = make_bench({"times": times}, time_topic="sensors/time")
    for message in messages:
        bench.run_ms(2000)
        bench.take(message, ms=2000)
    assert bench.calls("subscribe")[-1] == ("subscribe", b"sensors/time", 0)
    assert heard == starts
    last = bench.readings(2)[-1]
    assert bool(last["time"]) == bool(starts)
    if starts:
        assert 0 <= last["time"] - starts[-1] < 2 + 2 * len(messages)


def test_node_whose_clock_ends_before_the_time_has_it_in_its_readings(clock, make_bench):
    """A port of 32 bits knows none after 2038, and a retained one ended the node at each start."""
    times = Timekeeper(clock, None, 0, Mock(side_effect=OverflowError))
    bench = make_bench({"times": times}, time_topic="sensors/time")
    bench.run_ms(2000)
    bench.take(said(1 << 31, retain=True), ms=2000)
    last = bench.readings(2)[-1]
    assert last["time"] - last["uptime_s"] == (1 << 31) - 2


def test_node_that_ntp_answered_hears_nobody_else(clock, make_bench):
    heard = []
    times = Timekeeper(clock, FakeNTP(NOW), 0, heard.append)
    bench = make_bench({"times": times}, time_topic="sensors/time")
    bench.run_ms(2000)
    bench.take(said(NOW + 1000), ms=2000)
    assert heard == [NOW]


def test_node_with_tls_waits_for_the_time_and_says_why(clock, make_bench):
    ntp = FakeNTP("no time from pool: no answer", None, None)
    options = {"times": Timekeeper(clock, ntp)}
    bench = make_bench(options, tls="ca.pem")
    bench.run_ms(3000)
    assert bench.calls("reconnect") == []
    told = [words for words in bench.log if words[0].startswith("tls")]
    assert told == [("tls: waits for the time:", "no time from pool: no answer")]
    ntp.answers.append(NOW)
    bench.run_ms(1000)
    assert bench.client.is_connected
