"""Every wrong client is caught by a part of the default run.

Shows nothing about the client and all about the simulator's rules.  That the right client
passes all of the run is test_campaign.py's.
"""

import pytest

from host_tests.sim import campaign
from host_tests.sim.default import jobs
from host_tests.sim.wrong_clients import WRONG


@pytest.mark.parametrize("name", WRONG)
def test_wrong_client_is_caught_by_the_default_run(name, monkeypatch):
    wrong = WRONG[name]
    assert wrong.job in jobs()
    wrong.mistake.make(monkeypatch)
    failures = campaign.run_job(wrong.job, wrong.rules).failures
    assert {failure.rule for failure in failures} & set(wrong.rules), failures[:3]
