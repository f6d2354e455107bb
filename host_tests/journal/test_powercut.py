"""Every flash operation of every scenario cut in every way, and cut again in recovery.

`python -m host_tests powercut` does the same with longer scenarios and all pairs of cuts.
"""

import pytest

from host_tests.powercut.checker import Checker
from host_tests.powercut.life import Life
from host_tests.powercut.scenarios import of_any_sizes, scenarios

SCALE = 2
TORN = 4
# All but the one with the sizes of a board, which takes as long as the others.
SMALL = [one for one in scenarios() if one.setting.block_bytes < 4096]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_journal_cut_early_recovers_the_state_before_or_after(scenario):
    """A few seconds of the power cuts: notices most mistakes at once; for `proof mutants`."""
    checker = Checker(torn=1)
    checker.run(scenario)
    assert checker.count["once"] and checker.count["carried on"]


@pytest.mark.parametrize("scenario", [*scenarios(SCALE)], ids=lambda scenario: scenario.name)
def test_journal_cut_at_any_operation_recovers_the_state_before_or_after(scenario, capsys):
    checker = Checker(torn=TORN)
    checker.run(scenario)
    with capsys.disabled():
        print(f"\n{checker.count.total():,} power cuts: {scenario.name}")


@pytest.mark.parametrize("seed", range(100))
def test_journal_of_any_sizes_when_cut_recovers_the_state_before_or_after(seed):
    Checker(torn=1).run(of_any_sizes(seed))


@pytest.mark.parametrize("scenario", [*scenarios()], ids=lambda scenario: scenario.name)
def test_journal_wears_all_blocks_alike(scenario):
    flash = scenario.setting.flash()
    life = Life(scenario.setting, flash)
    for call in scenario.calls:
        life.do(call)
    assert max(flash.wear) - min(flash.wear) <= 2
