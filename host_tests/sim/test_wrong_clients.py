"""Every wrong client is caught by a part of the default run.

Shows nothing about the client and all about the simulator's rules.  That the right client
passes all of the run is test_campaign.py's.
"""

import pytest

from host_tests.sim import campaign, script
from host_tests.sim.wrong_clients import WRONG, make_mistake


@pytest.mark.parametrize("name", WRONG)
def test_wrong_client_is_caught_by_the_default_run(name, monkeypatch):
    settings, rules, *mistake = WRONG[name]
    (job,) = (
        one
        for one in campaign.default_jobs()
        if one[:2] == ("single", str(script.parse(settings)))
    )
    make_mistake(monkeypatch, *mistake)
    failures = campaign.run_job(job, rules.split()).failures
    assert {failure.rule for failure in failures} & set(rules.split()), failures[:3]
