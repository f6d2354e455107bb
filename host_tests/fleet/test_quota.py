"""How much is under way at once; `traces/quota.txt` has what the audit says of it."""

import random

import numpy as np

from tools.fleet.audit.quota import at_once
from tools.fleet.audit.rows import FAR


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
