"""What an audit's tables say, in the words of `host_tests.fleet.situations.Truth`."""

from host_tests.fleet.captures import rows
from host_tests.fleet.situations import SITUATIONS, Truth, derive

NAMES = [*SITUATIONS, *derive.DERIVED]


def truth_of(name):
    """What was to be found in this situation."""
    return SITUATIONS[name].truth if name in SITUATIONS else derive.DERIVED[name][1]


def told(tables):
    """`Truth` as the tables of one site tell it; `tables` has the names of `schemas`."""
    lost, lost_at_0, unexplained, missing = _losses(tables)
    violations = rows(tables["violations"], "requirement", "client_id", "sure")
    findings = rows(tables["findings"], "finding", "about", "sure")
    sums = {
        name: sum(tables["sequences"][name].to_pylist())
        for name in ("duplicates", "repeated", "overtaking")
    }
    return Truth(
        lost=lost,
        lost_at_0=lost_at_0,
        missing=missing,
        unexplained=unexplained,
        violations=sorted(row[:2] for row in violations if row[2] != "not_knowable"),
        findings=sorted(
            name for name, about, sure in findings if about != "capture" and sure != "not_knowable"
        ),
        told=sorted({name for name, about, _ in findings if about == "capture"}),
        **sums,
    )


def _losses(tables):
    # By the place of the lost message among the PUBLISHes of its topic.
    sent = {}
    packets = rows(tables["packets"], "direction", "packet_type", "topic", "ts")
    for direction, kind, topic, ts in sorted(packets, key=lambda row: row[3]):
        if (direction, kind) == ("c2s", "PUBLISH"):
            sent.setdefault(topic, []).append(ts)
    lost, lost_at_0, unexplained, missing = {}, {}, {}, {}
    columns = ("client_id", "topic", "ts", "qos", "sure", "kind")
    numbers = ("device", "first_sequence", "last_sequence")
    for client, topic, ts, qos, sure, kind, *more in rows(tables["losses"], *columns, *numbers):
        assert (kind == "unexplained") == (sure == "not_knowable") or kind == "never_seen"
        if kind == "never_seen":
            if sure != "not_knowable":
                missing.setdefault((more[0], topic), []).append(tuple(more[1:]))
            continue
        found = unexplained if kind == "unexplained" else lost if qos else lost_at_0
        found.setdefault((client, topic), []).append(sent[topic].index(ts))
    return lost, lost_at_0, unexplained, missing
