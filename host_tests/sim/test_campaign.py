"""Campaigns: the default run of all schedules, a few seconds of it for work on the session and
for `proof mutants`, and wrong clients that it has to catch.

Shows, under every schedule of faults: 31-4.1-Q1, 31-4.1-Q2, 31-4.2-RECONNECT,
31-4.3-STAGE, 31-4.3-WINDOW, 31-2.1-DUP, 31-2.4-ID, 31-2.2-KA, 31-RT-INFLIGHT,
MQTT-4.3.2-1 to MQTT-4.3.2-4, MQTT-4.3.3-1 to MQTT-4.3.3-6, MQTT-4.3.3-10 to
MQTT-4.3.3-12, MQTT-4.6.0-1 to MQTT-4.6.0-4, MQTT-4.6-RM1, RT-INFLIGHT, RT-MQUEUE.
"""

import pytest

from host_tests.sim import campaign, script
from host_tests.sim.wrong_clients import WRONG, make_mistake

# Scripts, and of how many first faults of each one is tried.
SMALL = {
    "up=0201 window=2": 40,
    "up=111 window=2": 40,
    "up=222 window=3": 40,
    "up=21 window=2 start=offline deferred=1": 40,
    "up=111 ordered=1 start=offline": 40,
    "up=1112 window=1 queue=1 overflow=drop_oldest": 40,
    "up=2212 window=1 queue=1 overflow=latest start=offline": 40,
    "up=1020 window=1 start=offline keep_qos0=1": 40,
    "down=222 serve=2": 40,
    "down=2222 serve=3 held=1 await_rel=300": 150,
    "up=12 down=2 store=journal": 150,
    "up=222 window=3 level=5 receive=1": 40,
    "down=222 held=2 serve=3 level=5": 40,
    "up=11111 window=4 pace=1 level=5 aliases=1 expiry=20": 40,
}
SEEDS = 25


def run_all(jobs):
    """-> what the jobs found; it must not be a failure."""
    total = campaign.Result()
    for result in jobs:
        total.add(result)
    if total.failures:
        failure = campaign.shrink(total.failures[0])
        pytest.fail(f"{failure.message}\n{failure.command}", pytrace=False)
    return total


@pytest.mark.xdist_group("simulator")
def test_default_run_of_all_schedules_breaks_no_promise(record_property):
    total = run_all(campaign.run_jobs(campaign.default_jobs()))
    record_property("figure", f"{len(total.schedules):,} distinct fault schedules simulated")
    assert len(total.schedules) >= 400_000


@pytest.mark.parametrize("script", SMALL)
def test_script_when_two_faults_strike_then_no_promise_breaks(script):
    """The first at some places, the second at each, the kinds of faults taking turns."""
    job = campaign.Job("pair", script, kinds=1, parts=SMALL[script])
    assert len(run_all([campaign.run_job(job)]).schedules) > 20


@pytest.mark.parametrize("batch", range(6))
def test_random_schedules_break_no_promise(batch):
    job = campaign.Job("random", seed=1_000_000 + batch * SEEDS, seeds=SEEDS)
    assert len(run_all([campaign.run_job(job)]).schedules) > SEEDS // 2


@pytest.mark.parametrize("name", WRONG)
def test_wrong_client_is_caught_by_the_default_run(name, monkeypatch):
    """Shows nothing about the client and all about the simulator's rules."""
    settings, rules, *mistake = WRONG[name]
    (job,) = (
        one
        for one in campaign.default_jobs()
        if one[:2] == ("single", str(script.parse(settings)))
    )
    make_mistake(monkeypatch, *mistake)
    failures = campaign.run_job(job, rules.split()).failures
    assert {failure.rule for failure in failures} & set(rules.split()), failures[:3]
