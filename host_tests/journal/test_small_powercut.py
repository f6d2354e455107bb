"""A few seconds of the power cuts: notices most mistakes at once; for `make mutants`."""

import pytest

from tools.powercut.checker import Checker
from tools.powercut.scenarios import scenarios


@pytest.mark.parametrize("scenario", [*scenarios()], ids=lambda scenario: scenario.name)
def test_journal_cut_early_recovers_the_state_before_or_after(scenario):
    checker = Checker(torn=1)
    checker.run(scenario)
    assert checker.count.once and checker.count.carried_on
