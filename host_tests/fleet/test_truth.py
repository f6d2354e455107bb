"""The audit finds what the simulator did, all of it and nothing else.

Shows for captures, by the names of the faults that the simulator puts in:
31-2.1-DUP 31-2.1-QOS3 31-2.2-KA 31-2.4-ID 31-3.3-WILD 31-3.6-PUBREL MQTT-4.3.1-1
MQTT-4.3.2-1 MQTT-4.3.2-2 MQTT-4.3.2-4 MQTT-4.3.3-1 MQTT-4.3.3-2 MQTT-4.3.3-6
MQTT-4.3.3-10 MQTT-4.6.0-1 MQTT-4.6.0-2 MQTT-4.6.0-3 MQTT-4.6.0-4 MQTT-4.6.0-5 RT-SEQ
"""

import itertools
import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host_tests.fleet.captures import audit, decode, records, rows, simulated, types
from host_tests.fleet.simulate.kinds import KINDS, PLAIN_KINDS
from host_tests.fleet.simulate.run import Plan

_TRUTHS = (
    *("violations", "not_delivered", "never_sent", "duplicated", "redelivered", "overtaken"),
    *("repeated", "plain_lost", "findings"),
)
_LEVELS = {"levels": (3, 4, 5), "subscriber_levels": (4, 5)}
_READING = ("device", "boot", "stream")


def _numbers(losses, kind):
    found = Counter()
    columns = (*_READING, "first_sequence", "last_sequence", "kind")
    for device, boot, stream, first, last, one in rows(losses, *columns):
        if one == kind and device is not None:
            found.update((device, boot, stream, n) for n in range(first, last + 1))
    return found


def _plain(losses):
    found = Counter()
    for device, client, topic, ts, qos in rows(
        losses, "device", "client_id", "topic", "ts", "qos"
    ):
        if device is None and qos:
            found[client, topic, int(ts.timestamp() * 1_000_000 + 0.5)] += 1
    return found


def _readings(table, keep):
    columns = (*_READING, "sequence", "times_delivered", "redelivered")
    return Counter(row[:4] for row in rows(table, *columns) if keep(*row[4:]))


def found_in(tables):
    """What an audit found, in the words of `Truth`."""
    routes = rows(tables["routes"], "client_id", "topic", "overtaking", "repeated")
    findings = rows(tables["findings"], "finding", "client_id", "about", "sure")
    return {
        "violations": Counter(rows(tables["violations"], "requirement", "client_id")),
        "not_delivered": _numbers(tables["losses"], "not_delivered"),
        "never_sent": _numbers(tables["losses"], "never_seen"),
        "duplicated": _readings(tables["readings"], lambda times, _: times > 1),
        "redelivered": _readings(tables["readings"], lambda _, again: again),
        "overtaken": _counted((c, t, n) for c, t, n, _ in routes),
        "repeated": _counted((c, t, n) for c, t, _, n in routes),
        "plain_lost": _plain(tables["losses"]),
        "findings": Counter(
            row[:2] for row in findings if row[2] != "capture" and row[3] != "not_knowable"
        ),
        "incomplete": sum(tables["sequences"]["incomplete"].to_pylist()),
        "readings": tables["readings"].num_rows,
    }


def _counted(routes):
    found = Counter()
    for client, topic, number in routes:
        if number:
            found[client, topic] += number
    return found


def expected(truth):
    """The same from the simulator's truth."""
    wanted = {name: Counter(map(tuple, getattr(truth, name))) for name in _TRUTHS}
    return wanted | {"incomplete": len(truth.incomplete), "readings": truth.readings}


def _check(plan, path):
    data, truth = simulated(plan)
    path.write_bytes(data)
    events, tally = decode(path)
    assert not tally.errors
    assert types(events) == {name: n for name, n in truth.packets.items() if n}
    gaps = [kind for kind in events["packet_type"].to_pylist() if kind == "GAP"]
    assert len(gaps) == truth.gaps
    found = found_in(audit(events))
    for name, wanted in expected(truth).items():
        assert found[name] == wanted, (plan, name)


@pytest.mark.parametrize("group", range(4))
def test_truth_of_mixed_faults_over_many_seeds_is_recovered_exactly(group, tmp_path):
    """60 fleets each: all kinds of faults at once, segments split, swapped, repeated."""
    for seed in range(group * 60, group * 60 + 60):
        more = {"fault_rate": 0.2, "wire_rate": 0.2, "foreign": 0.3}
        more["plain"] = 0.4 if seed % 2 else 0
        plan = Plan(devices=8, readings=160, seed=seed, **_LEVELS, **more)
        _check(plan, tmp_path / "fleet.pcap")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_truth_of_one_kind_of_fault_is_recovered_exactly(kind, tmp_path):
    for seed in range(4):
        # All devices send readings, or (where what happened can be known) plain values.
        more = {"fault_rate": 0.3, "kinds": (kind,)}
        more["plain"] = float(seed % 2 and kind in PLAIN_KINDS)
        plan = Plan(devices=16, readings=400, seed=seed, **_LEVELS, **more)
        _, truth = simulated(plan)
        assert truth.faults[kind] > 2
        _check(plan, tmp_path / "fleet.pcap")


def test_truth_when_the_capture_missed_packets_raises_no_false_alarm(tmp_path):
    gaps = 0
    for seed in range(60):
        plan = Plan(devices=8, readings=160, seed=seed, gap_rate=0.03, levels=(3, 4, 5))
        data, truth = simulated(plan)
        found = found_in(_audited(data, tmp_path / "fleet.pcap"))
        gaps += truth.gaps
        for name in ("violations", "not_delivered", "never_sent", "overtaken", "incomplete"):
            assert not found[name], name
    assert gaps > 200


def _by_requirement(violations):
    # The client is not known where its CONNECT was not captured.
    found = Counter()
    for (requirement, _), number in violations.items():
        found[requirement] += number
    return found


def _false_alarms(found, truth):
    # What was found and did not happen.
    wanted = expected(truth)
    # What was lost behind missing bytes was never seen.
    wanted["never_sent"] += wanted["not_delivered"]
    names = ("not_delivered", "never_sent", "duplicated", "redelivered")
    extra = {name: found[name] - wanted[name] for name in names}
    violations = _by_requirement(found["violations"]) - _by_requirement(wanted["violations"])
    extra["violations"] = violations - _by_requirement(Counter(truth.excused))
    return {name: count for name, count in extra.items() if count}


@pytest.mark.parametrize("group", range(2))
def test_truth_when_the_capture_missed_packets_of_a_faulty_fleet_is_not_added_to(group, tmp_path):
    """What was delivered and sent again may have been sent first in the missing bytes."""
    path = tmp_path / "fleet.pcap"
    for seed in range(group * 40, group * 40 + 40):
        more = {"fault_rate": 0.4, "gap_rate": 0.1, "qos": 1 + seed % 2}
        plan = Plan(devices=1 + seed % 12, readings=200, seed=seed, **_LEVELS, **more)
        data, truth = simulated(plan)
        assert not _false_alarms(found_in(_audited(data, path)), truth), plan


def _audited(data, path):
    """The tables of a capture with these bytes, None without a packet."""
    path.write_bytes(data)
    events, _ = decode(path)
    return None if events is None else audit(events)


def _proved(table):
    return table.filter(pc.equal(table["sure"].cast(pa.string()), "proved"))


def test_truth_when_frames_are_missing_anywhere_nothing_else_is_proved(tmp_path):
    """A computer that captures and cannot keep up drops frames of all kinds."""
    rng = random.Random(3)
    path = tmp_path / "holes.pcap"
    for seed in range(120):
        more = {"fault_rate": 0.4, "qos": (None, 0, 1, 2)[seed % 4]}
        plan = Plan(devices=1 + seed % 12, readings=200, seed=seed, **_LEVELS, **more)
        data, truth = simulated(plan)
        starts = [*records(data), len(data)]
        rate = rng.choice((0.003, 0.02, 0.2))
        kept = [data[a:b] for a, b in itertools.pairwise(starts) if rng.random() >= rate]
        tables = _audited(data[:24] + b"".join(kept), path)
        for name in ("violations", "losses"):
            tables[name] = _proved(tables[name])
        assert not _false_alarms(found_in(tables), truth), plan


@pytest.mark.parametrize("group", range(2))
def test_truth_when_the_capture_is_a_piece_of_the_traffic_raises_no_false_alarm(group, tmp_path):
    """A piece begins and ends anywhere, in the middle of connections and messages."""
    rng = random.Random(group)
    path = tmp_path / "piece.pcap"
    for seed in range(group * 40, group * 40 + 40):
        more = {"fault_rate": 0.4, "wire_rate": 0.2, "subscriber_levels": (4, 5)}
        more["levels"] = (3, 4, 5) if seed % 2 else (3,)
        plan = Plan(devices=8, readings=160, seed=seed, **more)
        data, truth = simulated(plan)
        begin, end = sorted(rng.sample(records(data), 2))
        tables = _audited(data[:24] + data[begin : rng.choice((end, len(data)))], path)
        if tables is not None:
            assert not _false_alarms(found_in(tables), truth), plan


def test_truth_of_a_fleet_without_faults_has_no_findings(tmp_path):
    _check(Plan(devices=40, readings=2000, seed=7), tmp_path / "fleet.pcap")
