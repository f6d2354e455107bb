"""The node's memory over resets: written beside, then renamed."""

import os

import pytest

from state import State


def test_state_without_file_begins_with_boot_1(tmp_path):
    state = State(str(tmp_path / "state.json"))
    state.begin_boot()
    assert state.boot == 1
    assert state.interval_ms is None


def test_state_over_resets_counts_boots_and_keeps_the_interval(tmp_path):
    path = str(tmp_path / "state.json")
    for boot in (1, 2, 3):
        state = State(path)
        state.begin_boot()
        assert state.boot == boot
        state.interval_ms = 250
        state.save()
    assert State(path).interval_ms == 250


def test_state_cut_while_writing_keeps_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    State(str(path)).begin_boot()

    def cut(*_):
        raise OSError("power lost")

    monkeypatch.setattr(os, "rename", cut)
    with pytest.raises(OSError, match="power lost"):
        State(str(path)).begin_boot()
    monkeypatch.undo()
    assert State(str(path)).boot == 1


@pytest.mark.parametrize("content", ["", '{"boot": ', "[1]"])
def test_state_file_that_is_no_state_begins_anew(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_text(content)
    assert State(str(path)).boot == 0
