"""Recorded situations with known truth: the whole job says what is true, no more, no less.

`host_tests/fleet/situations` tells how each was recorded.  All go through Spark in one run,
each as a site of its own.
"""

import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from host_tests.fleet.captures import audit, decode_all, rows
from host_tests.fleet.situations import SITUATIONS, Truth, derive
from host_tests.fleet.situations.__main__ import record
from host_tests.fleet.test_pipeline import _run

_FOLDER = Path(__file__).parent / "situations"
_PORTS = (1883, 1884)
_NAMES = [*SITUATIONS, *derive.DERIVED]
_TABLES = ("packets", "losses", "causes", "violations", "findings", "sequences")


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """{table: all rows} of one audit of all situations."""
    folder = tmp_path_factory.mktemp("situations")
    shutil.copytree(_FOLDER, folder, dirs_exist_ok=True)
    for name in derive.DERIVED:
        derive.write(name, folder)
    out = tmp_path_factory.mktemp("tables")
    _run(spark, folder, out, buckets=3, ports="1883,1884")
    return {name: pq.read_table(out / name) for name in _TABLES}


def _at(tables, site):
    return {name: one.filter(pc.equal(one["site"], site)) for name, one in tables.items()}


@pytest.mark.parametrize("name", _NAMES)
def test_situation_is_judged_as_it_was(tables, name):
    assert _truth(_at(tables, name)) == _truth_of(name)


def test_every_verdict_says_how_sure_it_is_and_why(tables):
    for name in ("losses", "violations", "findings"):
        found = tables[name]
        assert found.num_rows
        assert set(found["sure"].to_pylist()) <= {"proved", "likely", "not_knowable"}
        assert all(found["why"].to_pylist()), name
    assert all(tables["losses"]["evidence"].to_pylist())


def test_loss_is_only_likely_where_level_3_may_have_forgotten_the_session(tables):
    """The session was over, and nobody could say so."""
    losses = _at(tables, "session_forgotten_level_3")["losses"]
    assert losses["sure"].to_pylist() == ["likely", "likely"]


def test_why_says_that_the_receive_maximum_was_reached(tables):
    whys = [
        set(_at(tables, name)["losses"]["evidence"].to_pylist())
        for name in ("subscriber_is_stuck", "receive_maximum_reached")
    ]
    assert [["has to wait" in one for one in why] for why in whys] == [[False], [True]]


@pytest.mark.parametrize(
    ("name", "cause", "messages", "closed"),
    [
        ("broker_that_restarts", "broker_restarted", 2, 5),
        ("queue_that_is_too_small", "queue_full", 6, None),
        ("bridge_that_loses_two", "bridge_left_out", 2, None),
        ("one_of_plain_values_lost", "broker_lost_it", 1, None),
        ("json_counter_that_leaves_out_two", "never_sent", 2, None),
        ("subscriber_is_stuck", "not_acknowledged", 0, None),
    ],
)
def test_losses_have_one_cause_with_what_to_do(tables, name, cause, messages, closed):
    (row,) = _at(tables, name)["causes"].to_pylist()
    assert (row["cause"], row["messages"], row["closed"]) == (cause, messages, closed)
    assert row["advice"] and set(_at(tables, name)["losses"]["why"].to_pylist()) == {row["why"]}


def _judged(path, name):
    events, _ = decode_all([path], ports=_PORTS, site=name)
    return None if events is None else _told(events)


def _told(events):
    found = audit(events)
    return _truth(found | {"packets": events, "sequences": found["routes"]})


@pytest.mark.parametrize("name", SITUATIONS)
def test_situation_with_frames_out_of_order_is_judged_the_same(name, tmp_path):
    header, frames = derive.read(_FOLDER / name / "traffic.pcap")
    rng = random.Random(name)
    for most_us in (1_000, 20_000):
        shuffled = sorted(frames, key=lambda one: one[0] + rng.randrange(most_us))
        derive.write_frames(tmp_path / "one.pcap", header, shuffled)
        assert _judged(tmp_path / "one.pcap", name) == _truth_of(name)


@pytest.mark.parametrize("name", SITUATIONS)
def test_situation_whose_frames_have_wrong_times_accuses_nobody_else(name, tmp_path):
    """Each its own, or that of the frame in whose place it was written."""
    header, frames = derive.read(_FOLDER / name / "traffic.pcap")
    (own,) = derive.wrong_times(frames)
    rng = random.Random(name)
    order = sorted(frames, key=lambda one: one[0] + rng.randrange(5_000))
    given = [(one[0], *other[1:]) for one, other in zip(frames, order, strict=True)]
    for some in (own, given):
        derive.write_frames(tmp_path / "one.pcap", header, some)
        _assert_accuses_nobody_else(_judged(tmp_path / "one.pcap", name), _truth_of(name))


@pytest.mark.parametrize("name", SITUATIONS)
def test_piece_of_a_situation_accuses_nobody_whom_the_whole_does_not(name, tmp_path):
    """Cut anywhere, with frames missing: less is known, and nothing is made up."""
    header, frames = derive.read(_FOLDER / name / "traffic.pcap")
    rng = random.Random(name)
    whole = _truth_of(name)
    for number in range(8):
        begin, end = sorted(rng.sample(range(len(frames) + 1), 2))
        piece = frames[begin if number % 2 else 0 : end if number % 3 else len(frames)]
        piece = [one for one in piece if number < 4 or rng.random() > 0.05]
        derive.write_frames(tmp_path / "piece.pcap", header, piece)
        _assert_accuses_nobody_else(_judged(tmp_path / "piece.pcap", name), whole)


def _assert_accuses_nobody_else(found, whole):
    found = found or Truth()
    assert not _requirements(found) - _requirements(whole)
    assert not Counter(found.findings) - Counter(whole.findings)
    for one in ("duplicates", "overtaking"):
        assert getattr(found, one) <= getattr(whole, one)
    assert sum(map(len, found.lost.values())) <= sum(map(len, whole.lost.values()))


def _requirements(truth):
    # The client is not known where its CONNECT was not captured.
    return Counter(requirement for requirement, _ in truth.violations)


@pytest.mark.broker
@pytest.mark.parametrize("name", _NAMES)
def test_situation_recorded_anew_is_judged_the_same(name, tmp_path):
    """Without Spark: the script still brings about what the captures show."""
    record(tmp_path, [derive.source_of(name), name] if name in derive.DERIVED else [name])
    events, tally = decode_all(sorted((tmp_path / name).glob("*.pcap")), ports=_PORTS, site=name)
    assert not tally.errors
    assert _told(events) == _truth_of(name)


def _truth_of(name):
    """What was to be found in this situation."""
    return SITUATIONS[name].truth if name in SITUATIONS else derive.DERIVED[name][1]


def _truth(tables):
    """`Truth` as the tables of one site tell it; `tables` has the names of `schemas`."""
    violations = rows(tables["violations"], "requirement", "client_id", "sure")
    findings = rows(tables["findings"], "finding", "about", "sure")
    sums = {
        name: sum(tables["sequences"][name].to_pylist())
        for name in ("duplicates", "repeated", "overtaking")
    }
    truth = Truth(
        violations=sorted(row[:2] for row in violations if row[2] != "not_knowable"),
        findings=sorted(
            name for name, about, sure in findings if about != "capture" and sure != "not_knowable"
        ),
        told=sorted({name for name, about, _ in findings if about == "capture"}),
        **sums,
    )
    _add_losses(truth, tables)
    return truth


def _add_losses(truth, tables):
    # By the place of the lost message among the PUBLISHes of its topic.
    sent = {}
    packets = rows(tables["packets"], "direction", "packet_type", "topic", "ts")
    for direction, kind, topic, ts in sorted(packets, key=lambda row: row[3]):
        if (direction, kind) == ("c2s", "PUBLISH"):
            sent.setdefault(topic, []).append(ts)
    columns = ("client_id", "topic", "ts", "qos", "sure", "kind")
    numbers = ("device", "first_sequence", "last_sequence")
    for client, topic, ts, qos, sure, kind, *more in rows(tables["losses"], *columns, *numbers):
        assert (kind == "unexplained") == (sure == "not_knowable") or kind == "never_seen"
        if kind == "never_seen":
            if sure != "not_knowable":
                truth.missing.setdefault((more[0], topic), []).append(tuple(more[1:]))
            continue
        name = kind if kind == "unexplained" else "lost" if qos else "lost_at_0"
        found = getattr(truth, name).setdefault((client, topic), [])
        found.append(sent[topic].index(ts))
