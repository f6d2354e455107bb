"""Of many filters with wildcards only those are looked at that can match."""

import random

import pyarrow as pa

from tools.fleet.audit.spans import matched, that_match
from tools.fleet.mqtt import matches


def _worlds():
    # Filters with and without wildcards, and topics, of few names; in some worlds many topics.
    rng = random.Random(1)
    names = ["a", "b", "", "c", "a.*\n"]
    for world in range(300):
        many = 4 if world % 10 else 100
        topics = ["/".join(rng.choices(names, k=rng.randint(1, 4))) for _ in range(many)]
        levels = [rng.choices([*names, "+"], k=rng.randint(0, 3)) for _ in range(8)]
        yield ["/".join([*some, rng.choice(["#", "+", "+/a"])]) for some in levels], topics


def test_subscriptions_are_kept_whose_filters_match():
    for patterns, topics in _worlds():
        patterns = [*patterns, "$share/g/" + patterns[0], topics[0], "a$share/b"]
        kept = that_match(pa.table({"filter": patterns}), sorted(set(topics)))[
            "filter"
        ].to_pylist()
        plain = [one.removeprefix("$share/g/") for one in patterns]
        found = [any(matches(one, topic) for topic in topics) for one in plain]
        assert kept == [one for one, is_kept in zip(patterns, found, strict=True) if is_kept]


def test_filters_are_told_all_topics_that_they_match():
    for patterns, topics in _worlds():
        topics = sorted(set(topics))
        found = matched({*patterns, *topics}, topics)
        for pattern in (*patterns, *topics):
            wanted = [place for place, name in enumerate(topics) if matches(pattern, name)]
            assert sorted(found[pattern]) == wanted, (pattern, topics)
