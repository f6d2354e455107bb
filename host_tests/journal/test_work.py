"""How much flash work a message is: the budgets, counted and computed."""

import pytest

from host_tests.journal.work import (
    PACKET,
    erases_per_message,
    journal_work,
    life_years,
    littlefs_work,
)


@pytest.mark.parametrize(
    ("qos", "together", "programs", "erases"),
    [(1, 1, 1.3, 0.09), (1, 4, 0.5, 0.04), (2, 1, 2.6, 0.18), (2, 4, 1.0, 0.08)],
)
def test_message_costs_no_more_than_its_budget_and_wears_alike(qos, together, programs, erases):
    work = journal_work(qos, together)
    assert work.programs <= programs
    assert work.erases <= erases
    assert work.wear_difference <= 2


def test_journal_erases_a_tenth_of_an_append_to_littlefs_at_most():
    assert littlefs_work().erases >= 10 * journal_work(1).erases


@pytest.mark.parametrize("qos", [1, 2])
def test_computed_erases_are_those_counted(qos):
    computed = erases_per_message(len(PACKET), qos)
    assert computed == pytest.approx(journal_work(qos).erases, rel=0.07)


def test_64_kb_last_more_than_ten_years_at_a_message_in_ten_seconds():
    assert life_years(65536, erases_per_message(len(PACKET))) > 10
