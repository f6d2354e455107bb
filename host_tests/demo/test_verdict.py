"""The demo says that a promise was broken when one was, and only then."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from tools.demo import cli as demo
from tools.demo.accounts import Account
from tools.demo.stage import Outcome
from tools.demo.verdict import is_kept
from tools.micropython import MicroPythonError

GOOD = Account(
    stream=1, qos=2, accepted=9, received=9, lost=0, duplicated=0, disordered=0
)  # fmt: skip


@pytest.mark.parametrize(
    ("qos", "changes", "kept"),
    [
        (0, {}, True),
        (0, {"lost": 9, "received": 0}, False),
        (0, {"lost": 3}, True),
        (1, {}, True),
        (1, {"duplicated": 2, "disordered": 1}, True),
        (1, {"lost": 1}, False),
        (2, {}, True),
        (2, {"lost": 1}, False),
        (2, {"duplicated": 1}, False),
        (2, {"disordered": 1}, False),
        (2, {"accepted": 0, "received": 0}, False),
    ],
)
def test_verdict_on_a_stream_follows_the_promise_of_its_qos(qos, changes, kept):
    assert is_kept(replace(GOOD, qos=qos, **changes)) is kept


@pytest.mark.parametrize(
    ("accounts", "checks", "status"),
    [
        ([GOOD], [("it was broken", True)], 0),
        ([GOOD], [("it was broken", False)], 1),
        ([GOOD, replace(GOOD, lost=1)], [], 1),
    ],
)
def test_demo_exit_status_says_whether_every_promise_held(
    monkeypatch, tmp_path, accounts, checks, status
):
    outcome = Outcome("An act", accounts, checks)
    monkeypatch.setattr(demo, "_play", lambda *_: [outcome])
    done = CliRunner().invoke(demo.cli, ["--out", str(tmp_path)])
    assert done.exit_code == status
    assert "node.pcap" in done.output
    assert ("Every promise held" in done.output) == (status == 0)
    assert ("a promise was broken" in done.output) == (status == 1)


def test_demo_without_micropython_says_what_to_do_in_one_line(monkeypatch, tmp_path):
    def choose(**_):
        raise MicroPythonError("no MicroPython found: run `make setup`")

    monkeypatch.setattr(demo, "choose", choose)
    done = CliRunner().invoke(demo.cli, ["--out", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output == "Error: no MicroPython found: run `make setup`\n"


def test_demo_with_wrong_option_is_wrong_use():
    assert CliRunner().invoke(demo.cli, ["--readings", "0"]).exit_code == 2
