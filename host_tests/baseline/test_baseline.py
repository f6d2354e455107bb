"""The library has not grown beyond its baseline, and growth would be noticed."""

import json
import shutil

import pytest
from click.testing import CliRunner

from host_tests.baseline import cli, figures, instructions
from tools.boards.places import LIBRARY


def check(title, before, now):
    rows = figures.compare(before, now)
    assert rows
    if not all(row.is_accepted for row in rows):
        pytest.fail(figures.shown(title, rows), pytrace=False)


def test_sizes_have_not_grown():
    check(figures.SIZES, figures.recorded()[figures.SIZES], figures.measure_sizes(LIBRARY))


@pytest.mark.parametrize("interpreter", instructions.countable(), ids=lambda one: one.id)
def test_instructions_have_not_grown(interpreter):
    title = figures.title_of(interpreter)
    now = instructions.count(interpreter, LIBRARY)
    check(title, figures.recorded().get(title, now), now)


def test_baseline_has_the_oldest_interpreter_that_counts_here():
    titles = [figures.title_of(one) for one in instructions.countable()[:1]]
    assert set(titles) <= set(figures.recorded())


SLOWER = """
_poll = MQTTClient.poll


def _slower(self, timeout_ms=0):
    for _ in range(9):
        pass
    return _poll(self, timeout_ms)


MQTTClient.poll = _slower
"""


def test_work_more_in_the_library_is_counted(tmp_path):
    """The same where it lies and in a copy; more where something was added."""
    if not instructions.can_count():
        assert instructions.countable() == []
        return
    interpreter = instructions.countable()[-1]
    copy = tmp_path / "a folder with a longer name" / "umqtt31"
    shutil.copytree(LIBRARY, copy)
    rows = instructions.count_once(interpreter, LIBRARY)
    assert instructions.count_once(interpreter, copy) == rows
    with (copy / "client.py").open("a") as source:
        source.write(SLOWER)
    slower = instructions.count_once(interpreter, copy)
    grown = {row.title for row in figures.compare(rows, slower) if not row.is_accepted}
    assert {"idle poll", "publish QoS 1", "publish QoS 2"} <= grown
    # New names alone shift a single count by up to 5 %: what was added is more than that.
    added = {title: slower[title] - rows[title] for title in rows}
    assert added["publish QoS 0"] < added["idle poll"] / 2


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """A baseline of its own, and tables in the place of what is measured."""
    tables = {figures.SIZES: {"client": 1030, "all": 5000}}
    monkeypatch.setattr(figures, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(figures, "measured_tables", lambda: iter(tables.items()))
    figures.RECORDED.write_text(json.dumps({figures.SIZES: {"client": 1000, "all": 5000}}))
    return tables[figures.SIZES]


def run(*args):
    result = CliRunner().invoke(cli.cli, args)
    return result.exit_code, result.output


def test_three_percent_more_pass_and_a_byte_more_fails_with_the_table(measured):
    assert run()[0] == 0
    measured["client"] += 1
    status, output = run()
    assert status == 1
    assert "client                       1,000     1,031    +3.1%  <--" in output
    assert figures.ACCEPT in output


def test_new_rows_and_rows_gone_have_to_be_accepted(measured):
    measured["queue"] = measured.pop("client")
    status, output = run()
    assert status == 1
    assert [line.split()[0] for line in output.splitlines() if "<--" in line] == [
        "queue",
        "client",
    ]


def test_ratio_of_level_5_to_level_4_is_shown_where_both_were_counted(measured):
    assert "level 5" not in run()[1]
    for title, count in (("level 4: idle", 200), ("level 5: idle", 211), ("level 4: x", 1)):
        measured[title] = count
    assert "  level 5 to level 4: idle 1.055\n" in run()[1]


def test_what_is_accepted_is_the_baseline(measured):
    measured["client"] *= 2
    measured["queue"] = 7
    assert run("--accept")[0] == 0
    assert run()[0] == 0
    assert figures.recorded()[figures.SIZES]["client"] == 2060


def test_counts_stay_where_none_can_be_taken(measured, monkeypatch):
    counts = {"instructions, MicroPython 1.25.0": {"idle poll": 9}}
    figures.RECORDED.write_text(json.dumps({**figures.recorded(), **counts}))
    monkeypatch.setattr(figures, "can_count", lambda: False)
    assert run("--accept")[0] == 0
    assert counts.items() <= figures.recorded().items()
    monkeypatch.setattr(figures, "can_count", lambda: True)
    assert run("--accept")[0] == 0
    assert set(figures.recorded()) == {figures.SIZES}


def test_smaller_is_accepted(measured):
    measured["client"] = 1
    assert run()[0] == 0
