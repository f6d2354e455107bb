"""The demo says that a promise was broken when one was, and only then."""

import io
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest
from rich.console import Console

from host_tests.running import said_by
from tools.demo import audit
from tools.demo import cli as demo
from tools.demo.accounts import Account
from tools.demo.stage import Outcome
from tools.demo.verdict import is_kept
from tools.fleet import batch, outcome
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
    output = said_by(demo.cli, "--out", tmp_path, status=status)
    assert "node.pcap" in output
    assert ("Every promise held" in output) == (status == 0)
    assert ("a promise was broken" in output) == (status == 1)


def test_demo_without_micropython_says_what_to_do_in_one_line(monkeypatch, tmp_path):
    error = MicroPythonError("no MicroPython found: run `make setup`")
    monkeypatch.setattr(demo, "choose", Mock(side_effect=error))
    output = said_by(demo.cli, "--out", tmp_path, status=1)
    assert output == "Error: no MicroPython found: run `make setup`\n"


def test_demo_with_wrong_option_is_wrong_use():
    said_by(demo.cli, "--readings", 0, status=2)


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ({"lost messages": 0, "places where bytes are missing": 4}, 0),
        ({"lost messages": 1, "places where bytes are missing": 4}, 1),
        ({"violations": 2}, 1),
    ],
)
def test_demo_exit_status_follows_the_audit_of_the_capture(
    monkeypatch, tmp_path, findings, status
):
    result = outcome.Result({"packets": 9, "readings": 3}, findings)
    monkeypatch.setattr(batch, "audit", lambda *_, **__: result)
    monkeypatch.setattr(demo, "_play", lambda *_: [Outcome("An act", [GOOD], [])])
    assert "report.html" in said_by(demo.cli, "--out", tmp_path, status=status)


def test_demo_without_java_says_so_in_one_line_and_goes_on(monkeypatch, tmp_path):
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "node.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    console = Console(file=io.StringIO(), width=200)
    assert audit.play(console, tmp_path / "captures", tmp_path / "audit")
    said = console.file.getvalue().strip()
    assert said.startswith("Not audited: ") and "make setup" in said and "\n" not in said


def test_demo_without_the_packages_of_the_fleet_says_what_brings_them(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tools.fleet.batch", None)
    monkeypatch.delattr("tools.fleet.batch")
    console = Console(file=io.StringIO(), width=200)
    assert audit.play(console, tmp_path, tmp_path / "audit")
    assert "make setup LAYER=fleet" in console.file.getvalue()
