"""The node's memory over resets: written beside, then renamed."""

from unittest.mock import patch

import pytest

from state import State


def begin_in_vain(state):
    with patch("os.rename", side_effect=OSError(28)), pytest.raises(OSError, match="28"):
        state.begin_boot()


def test_state_over_resets_counts_boots_and_keeps_the_interval(tmp_path):
    path = str(tmp_path / "state.json")
    for boot, interval_ms in ((1, None), (2, 250), (3, 250)):
        state = State(path)
        state.begin_boot()
        assert (state.boot, state.interval_ms) == (boot, interval_ms)
        state.interval_ms = 250
        state.save()
    assert State(path).interval_ms == 250


def test_state_cut_while_writing_keeps_the_old_one(tmp_path):
    path = str(tmp_path / "state.json")
    State(path).begin_boot()
    begin_in_vain(State(path))
    assert State(path).boot == 1


@pytest.mark.parametrize("content", ["", '{"boot": ', "[1]"])
def test_state_file_that_is_no_state_begins_anew(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_text(content)
    assert State(str(path)).boot == 0


def test_state_that_cannot_be_written_gives_a_number_that_no_counter_reaches(tmp_path):
    path = str(tmp_path / "state.json")
    State(path).begin_boot()
    numbers = set()
    for _ in range(3):
        state = State(path)
        begin_in_vain(state)
        numbers.add(state.boot)
        state.change_interval(250)
        state.save()
    assert len(numbers) == 3
    assert 1 << 31 <= min(numbers) <= max(numbers) < 1 << 32
    state = State(path)
    state.begin_boot()
    assert state.boot == 2


def test_state_keeps_a_number_that_flash_did_not_take_over_a_sleep(tmp_path):
    """The node woke as the boot before, and gave the numbers of its readings to others."""
    path = str(tmp_path / "state.json")
    State(path).begin_boot()
    state = State(path)
    begin_in_vain(state)
    for _ in range(2):
        state.fall_asleep({"accepted": [7]})
        woken = State(path)
        assert (woken.boot, woken.asleep["accepted"]) == (state.boot, [7])
        state = woken
    state.begin_boot()
    assert State(path).boot == 2
