"""A few seconds of the default campaign in this process: notices most mistakes at once.

For work on the session and for `proof mutants`, which runs it thousands of times.
Shows the statements that test_campaign.py names, under fewer schedules.
"""

import pytest

from host_tests.sim import campaign

SCRIPTS = (
    "up=0201 window=2",
    "up=111 window=2",
    "up=222 window=3",
    "up=21 window=2 start=offline deferred=1",
    "up=111 ordered=1 start=offline",
    "up=1112 window=1 queue=1 overflow=drop_oldest",
    "up=2212 window=1 queue=1 overflow=latest start=offline",
    "up=1020 window=1 start=offline keep_qos0=1",
    "down=222 serve=2",
    "down=2222 serve=3 held=1 await_rel=300",
    "up=12 down=2 store=journal",
    "up=222 window=3 level=5 receive=1",
    "down=222 held=2 serve=3 level=5",
    "up=11111 window=4 pace=1 level=5 aliases=1 expiry=20",
)
# Of the first faults of one script, of which one is tried; 40 where nothing is said.
PARTS = {"down=2222 serve=3 held=1 await_rel=300": 150, "up=12 down=2 store=journal": 150}
BATCHES = 6
SEEDS = 25


def run_all(job):
    result = campaign.run_job(job)
    for failure in result.failures:
        pytest.fail(f"{failure.message}\n{failure.command}", pytrace=False)
    return result


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_when_two_faults_strike_then_no_promise_breaks(script):
    """The first at some places, the second at each, the kinds of faults taking turns."""
    result = run_all(campaign.Job("pair", script, kinds=1, parts=PARTS.get(script, 40)))
    assert len(result.schedules) > 20


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_schedules_break_no_promise(batch):
    result = run_all(campaign.Job("random", seed=1_000_000 + batch * SEEDS, seeds=SEEDS))
    assert len(result.schedules) > SEEDS // 2
