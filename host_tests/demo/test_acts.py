"""The demo's acts, shortened: they hold with the real node, and notice when it loses."""

import io

import pytest
from rich.console import Console

from tools.demo import acts
from tools.demo.stage import Stage
from tools.demo.verdict import holds, show
from tools.micropython import choose


@pytest.fixture
def stage(tmp_path):
    with Stage(tmp_path / "demo", choose(), Console(file=io.StringIO())) as stage:
        yield stage


def said(outcome) -> str:
    text = io.StringIO()
    show(Console(file=text, width=100), outcome)
    return text.getvalue()


def test_links_act_with_every_fault_loses_nothing(stage):
    outcome = acts.break_links(stage, 3)
    assert holds(outcome), said(outcome)
    assert stage.capture_path.stat().st_size > 10_000


def test_plug_act_with_journal_loses_nothing(stage):
    outcome = acts.pull_plugs(stage, 5, seed=7)
    assert holds(outcome), said(outcome)


def test_plug_act_without_journal_is_caught_losing(stage, monkeypatch):
    make = stage.node
    monkeypatch.setattr(stage, "node", lambda name, **keys: make(name, **keys | {"store": "ram"}))
    # Shorter lives than the random pause before most connections: what they accepted
    # is still in RAM when they end.
    monkeypatch.setattr(acts, "_LIFE_S", (0.3, 0.4))
    outcome = acts.pull_plugs(stage, 8, seed=7)
    assert not holds(outcome)
    assert min(account.lost for account in outcome.accounts) > 0, said(outcome)
