"""How much is under way at once; `traces/quota.txt` has what the audit says of it."""

import random

import numpy as np

from host_tests.fleet.captures import S2C, Capture
from tools.fleet.audit.quota import at_once
from tools.fleet.audit.rows import FAR


def test_publishes_at_times_that_are_there_twice_are_not_counted_together():
    """The clock of the capture was set back, as by a time server."""
    capture = Capture()
    said = {"session_expiry": 1000, "receive_maximum": 1}, {}
    talk = capture.connection(level=5, said=said)
    for number in range(1, 10):
        talk.exchange(S2C, b"t", b"%d" % number, number, answer_ms=400)
        if number == 5:
            capture.now -= 2_000_000
    assert not capture.audit()["violations"].num_rows


def test_at_once_counts_what_has_begun_and_not_ended():
    rng = random.Random(3)
    for _ in range(50):
        count = rng.randint(0, 30)
        who = np.array([rng.randrange(3) for _ in range(count)], np.int64)
        begin = np.array([rng.randrange(20) for _ in range(count)], np.int64)
        lasting = np.array([rng.choice([1, 5, FAR]) for _ in range(count)], np.int64)
        end = np.where(lasting == FAR, FAR, begin + lasting)
        found = at_once(who, begin, end)
        for one in range(count):
            same = who == who[one]
            under_way = same & (begin <= begin[one]) & (end > begin[one])
            earlier = same & (begin < begin[one]) & (end > begin[one])
            assert earlier.sum() < found[one] <= under_way.sum()
