"""The audit as a command: what passes, what fails, and what is wrong use."""

import json

import pytest
from click.testing import CliRunner

from tools.fleet import batch, cli, outcome
from tools.fleet.report import metrics


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ((), {}),
        (["lost messages=3"], {"lost messages": 3}),
        (["lost=3", "Viol = 0"], {"lost messages": 3, "violations": 0}),
    ],
)
def test_allow_names_findings_by_how_they_begin(texts, wanted):
    assert batch.read_limits(texts) == wanted


@pytest.mark.parametrize("text", ["lost", "=3", "lost=many", "nothing=3", "lost=-1"])
def test_allow_that_is_not_understood_says_which_names_there_are(text):
    with pytest.raises(batch.BadInput, match="lost messages"):
        batch.read_limits([text])


def test_findings_fail_when_there_are_more_than_allowed():
    findings = {"violations": 1, "lost messages": 3, "overtaking messages": 0}
    assert batch.too_many(findings, {"lost messages": 3}) == {"violations": 1}
    assert batch.too_many(findings, {"lost messages": 2, "violations": 1}) == {"lost messages": 3}


def test_alert_gets_one_line_for_each_finding(tmp_path, capfd):
    over = {"violations": 1, "lost messages": 3}
    batch.tell("cat; exit 3", over, {"lost messages": 2}, tmp_path)
    told = capfd.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    found = [(row["finding"], row["number"], row["allowed"]) for row in rows]
    assert found == [("violations", 1, 0), ("lost messages", 3, 2)]
    assert told.err.count("failed: 3") == 2


def test_since_that_is_no_audit_is_wrong_use(tmp_path):
    with pytest.raises(batch.BadInput, match="no folder devices"):
        batch.run(tmp_path, tmp_path / "out", {}, since=tmp_path)


def test_out_inside_the_captures_is_wrong_use(tmp_path):
    with pytest.raises(batch.BadInput, match="--out"):
        batch.audit(tmp_path, tmp_path / "captures" / "out", {})


def test_metrics_have_one_line_for_each_number():
    result = outcome.Result({"packets": 7}, {"lost messages": 2})
    lines = [line for line in metrics.text(result).splitlines() if not line.startswith("#")]
    assert lines == [
        'mqtt_fleet_findings{what="lost messages"} 2',
        'mqtt_fleet_rows{table="packets"} 7',
    ]


def test_simulate_makes_the_folder_that_it_writes_to(tmp_path):
    path = tmp_path / "not" / "there" / "one.pcap"
    arguments = ["simulate", str(path), "--devices", "1", "--readings", "1"]
    done = CliRunner().invoke(cli.cli, arguments)
    assert done.exit_code == 0, done.output
    assert sorted(one.name for one in path.parent.iterdir()) == [
        path.name,
        path.name + ".truth.json",
    ]
