"""Of many filters with wildcards only those are looked at that can match."""

import random

import pyarrow as pa
import pytest

from tools.fleet.audit.spans import beginnings, candidates, matched, prefixes
from tools.fleet.mqtt import matches


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a/b", None),
        ("#", ""),
        ("+/b", ""),
        ("a/#", "a/"),
        ("a/b/+/c/#", "a/b/"),
        ("$share/group/a/+", "a/"),
        ("$share/group/a/b", "a/b"),
        ("$share/group/#", ""),
        ("$share/a", "a"),
        ("a$share/b", None),
        ("a\n/+/b\n#", "a\n/"),
    ],
)
def test_prefix_is_what_stands_before_the_first_wildcard(pattern, wanted):
    assert prefixes(pa.array([pattern])).to_pylist() == [wanted]


def _kept(patterns, topics):
    rows = {"filter": patterns, "prefix": prefixes(pa.array(patterns))}
    return candidates(pa.table(rows), beginnings(pa.array(topics)))["filter"].to_pylist()


def test_filter_that_begins_like_no_topic_is_left_out():
    topics = ["fleet/dev-1/cmd", "fleet/dev-2"]
    patterns = ["fleet/dev-%d/#" % number for number in range(1, 9)]
    assert _kept([*patterns, "+/x", "fleet/dev-1/cmd/#"], topics) == [
        *("fleet/dev-1/#", "fleet/dev-2/#", "+/x", "fleet/dev-1/cmd/#"),
    ]


def _worlds():
    # Filters with and without wildcards, and topics, of few names; in some worlds many topics.
    rng = random.Random(1)
    names = ["a", "b", "", "c", "a.*\n"]
    for world in range(300):
        many = 4 if world % 10 else 100
        topics = ["/".join(rng.choices(names, k=rng.randint(1, 4))) for _ in range(many)]
        levels = [rng.choices([*names, "+"], k=rng.randint(0, 3)) for _ in range(8)]
        yield ["/".join([*some, rng.choice(["#", "+", "+/a"])]) for some in levels], topics


def test_filter_that_matches_is_never_left_out():
    for patterns, topics in _worlds():
        kept = _kept(patterns, topics)
        for pattern in patterns:
            if any(matches(pattern, topic) for topic in topics):
                assert pattern in kept, (pattern, topics)


def test_filters_are_told_all_topics_that_they_match():
    for patterns, topics in _worlds():
        topics = sorted(set(topics))
        found = matched({*patterns, *topics}, topics)
        for pattern in (*patterns, *topics):
            wanted = [place for place, name in enumerate(topics) if matches(pattern, name)]
            assert sorted(found[pattern]) == wanted, (pattern, topics)
