"""A few seconds of the power cuts: notices most mistakes at once; for `proof mutants`."""

import pytest

from host_tests.powercut.checker import Checker
from host_tests.powercut.scenarios import scenarios

# All but the one with the sizes of a board, which takes as long as the others.
SMALL = [one for one in scenarios() if one.setting.block_bytes < 4096]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_journal_cut_early_recovers_the_state_before_or_after(scenario):
    checker = Checker(torn=1)
    checker.run(scenario)
    assert checker.count["once"] and checker.count["carried on"]
