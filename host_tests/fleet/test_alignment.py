"""Deliveries laid against messages: payloads that come again, losses, queues, strangers."""

import random

import pytest

from tools.fleet.audit.alignment import FAR, SKEW_US, Messages, align

_SECOND = 1_000_000


def _live(rng, count, values, latency_us=2_000):
    """-> (hashes, times) of messages a second or so apart, and of their deliveries."""
    hashes, sent, ts = [], [], 0
    for _ in range(count):
        ts += rng.randrange(_SECOND, 3 * _SECOND)
        hashes.append(rng.randrange(values))
        sent.append(ts)
    got = [ts + rng.randrange(500, latency_us) for ts in sent]
    return hashes, sent, got


def _without(items, gone):
    return [item for place, item in enumerate(items) if place not in gone]


@pytest.mark.parametrize("values", [1, 2, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_lost_ones_of_equal_payloads_are_found_at_their_place(values, seed):
    rng = random.Random(seed)
    hashes, sent, got = _live(rng, 300, values)
    gone = set(rng.sample(range(300), 20))
    found = align(Messages(hashes, sent), _without(hashes, gone), _without(got, gone))
    assert found == _without(range(300), gone)


@pytest.mark.parametrize("seed", range(20))
def test_lost_one_of_a_queue_is_found_by_the_order_of_the_others(seed):
    rng = random.Random(seed)
    hashes, sent, _ = _live(rng, 60, 4)
    # A run of equal values is one place: which of them is missing nobody can tell.
    lost = rng.choice([n for n in range(1, 60) if hashes[n] != hashes[n - 1]])
    got = [sent[-1] + 10 * _SECOND + 100 * place for place in range(59)]
    found = align(Messages(hashes, sent), _without(hashes, {lost}), got)
    assert found == _without(range(60), {lost})


def test_messages_of_a_stranger_leave_the_others_in_their_places():
    hashes, sent, got = _live(random.Random(1), 50, 3)
    strange = [(ts + _SECOND // 2, 99) for ts in sent[::5]]
    merged = sorted([*zip(got, hashes, strict=True), *strange])
    found = align(Messages(hashes, sent), [one[1] for one in merged], [one[0] for one in merged])
    assert [place for place in found if place >= 0] == list(range(50))
    assert found.count(-1) == len(strange)


def test_delivery_recorded_a_little_before_its_message_is_that_message():
    hashes, sent, _ = _live(random.Random(2), 100, 2)
    got = [ts - SKEW_US // 2 if place % 3 else ts + 100 for place, ts in enumerate(sent)]
    assert align(Messages(hashes, sent), hashes, got) == list(range(100))


def test_overtaken_message_is_found_behind_the_later_one():
    assert align(Messages([1, 2, 3], [0, 10, 20]), [1, 3, 2], [5, 25, 30]) == [0, 2, 1]


def test_delivery_before_its_message_by_far_is_of_nobody_known():
    assert align(Messages([1], [10 * _SECOND]), [1], [0]) == [-1]


def test_burst_of_many_equal_payloads_with_one_lost_is_laid_out_in_order():
    """No pause in which anything would be plain: the longest chain over all of it."""
    rng = random.Random(3)
    hashes = [rng.randrange(2) for _ in range(3_000)]
    sent = [100 * place for place in range(3_000)]
    lost = next(n for n in range(1_500, 3_000) if hashes[n - 1 : n + 2] == [0, 1, 0])
    got = [ts + 5_000 for ts in _without(sent, {lost})]
    found = align(Messages(hashes, sent), _without(hashes, {lost}), got)
    assert -1 not in found
    assert found == sorted(set(found))


@pytest.mark.parametrize("seed", range(10))
def test_deliveries_that_lag_behind_later_messages_stay_in_order(seed):
    """What follows a message closely is the delivery of another one, equal by chance."""
    rng = random.Random(seed)
    hashes = [rng.randrange(3) for _ in range(200)]
    sent = [_SECOND * place for place in range(200)]
    lost = next(n for n in range(60, 200) if len(set(hashes[n - 1 : n + 2])) == 3)
    got = [ts + 3 * _SECOND // 2 for ts in _without(sent, {lost})]
    found = align(Messages(hashes, sent), _without(hashes, {lost}), got)
    assert found == _without(range(200), {lost})


@pytest.mark.parametrize("values", [1, 2, 3])
def test_lost_one_and_one_that_came_twice_long_after_are_two_places(values):
    """As many deliveries as messages, and yet not first to first."""
    rng = random.Random(values)
    hashes, sent, got = _live(rng, 2_000, values)
    lost, twice = 300, 1_800
    seen = list(zip(got, hashes, strict=True))
    seen.insert(twice + 1, (got[twice] + 5_000, hashes[twice]))
    del seen[lost]
    found = align(Messages(hashes, sent), [value for _, value in seen], [ts for ts, _ in seen])
    assert found.count(-1) == 1
    assert set(range(2_000)) - set(found) == {lost}


@pytest.mark.parametrize("late_s", [1, 300, 3_600])
def test_delivery_that_later_ones_overtook_long_ago_is_another_one(late_s):
    got = [5, 25, 35, 25 + late_s * _SECOND]
    found = align(Messages([1, 2, 3, 4], [0, 10, 20, 30]), [1, 3, 4, 2], got)
    assert found == [0, 2, 3, 1 if late_s < 600 else -1]


@pytest.mark.parametrize(("pause", "wanted"), [(100, [0, 1]), (2 * _SECOND, [2, 3])])
def test_of_a_burst_those_that_must_have_come_came(pause, wanted):
    """The broker had taken on the second of four; with pauses between them times would tell."""
    sent = [place * pause for place in range(4)]
    messages = Messages([7, 8, 7, 8], sent, waits=[-1, 0, -1, -1])
    got = [sent[3] + 500, sent[3] + 900]
    assert align(messages, [7, 8], got) == wanted


def test_of_one_message_that_may_have_two_deliveries_the_first_one_is_its():
    """The second one is of an equal message that overtook others; a stranger's comes before."""
    sent = [second * _SECOND for second in (0, 10, 20, 30, 40)]
    got = [second * _SECOND for second in (1, 11, 50, 60, 70)]
    assert align(Messages([6, 7, 8, 9, 7], sent), [99, 7, 7, 8, 9], got) == [-1, 1, 4, 2, 3]


class Counted(list):
    """Counts how often one of its entries is looked at."""

    looks = 0

    def __getitem__(self, index):
        self.looks += 1
        return super().__getitem__(index)


def _looks(messages, got_value, got_ts):
    """How often times and needs of the messages are looked at, for each of them."""
    lists = messages.ts, messages.waits, messages.gone = [
        Counted(one) for one in (messages.ts, messages.waits, messages.gone or [FAR])
    ]
    if messages.gone == [FAR]:
        messages.gone = None
    found = align(messages, got_value, got_ts)
    return found, sum(one.looks for one in lists) / len(messages.ts)


def test_of_very_many_equal_values_that_were_too_old_a_delivery_is_compared_with_few():
    count = 4_000
    sent = [1_000 * place for place in range(count)]
    messages = Messages([7] * count, sent, gone=[ts + _SECOND for ts in sent])
    got = [3_600 * _SECOND + ts for ts in sent]
    found, looks = _looks(messages, [7] * count, got)
    assert looks < 300
    assert -1 not in found


def test_in_a_burst_of_very_many_equal_values_a_delivery_is_compared_with_few():
    count = 4_000
    sent = [100 * place for place in range(count)]
    lost = set(range(0, count, 10))
    messages = Messages([7] * count, sent, waits=[-1 + (n in lost) for n in range(count)])
    got = _without([ts + 50 for ts in sent], lost)
    found, looks = _looks(messages, [7] * len(got), got)
    assert looks < 300
    assert found == sorted(set(found))
