"""Every delivery with the published message that it is, for all subscribers at once.

Deliveries and messages of one subscriber and topic with equal payloads form a group, and so
does each QoS of these where deliveries come at the QoS that was to be expected.
Where a group has one message, or as many deliveries as messages, nothing is left to
decide; where all groups of a subscriber and topic are like that they are matched here,
in a few sorts.  The others are laid against each other by `alignment`, each QoS by itself.
"""

from functools import partial

import numpy as np

from ..columns import begins, by_value, in_runs, marked, over, ranked, runs
from .alignment import EARLY_US, SKEW_US, Messages, align
from .rows import FAR, alike, grouped
from .subscriptions import PAUSE_US


class Matches:
    """Of each delivery: `entry` (in `expected`, -1 for none), `group`, and whether it
    `is_extra` (its payload was published, and delivered before) or `is_unknown` (nobody in
    the capture published it, nor just before).

    `is_got`: of each entry of `expected`, was it delivered; `when`, if above QoS 0 (else FAR);
    `groups`: its group; `is_told`: do payload, QoS and order say which delivery it is?
    `equal`: messages of each group; `is_blurred`: some of them at QoS 0, and nobody knows
    which.  `has_…`: of each pair.
    """

    def __init__(self, expected, delivered, pairs):
        count = len(delivered.pair)
        both, is_mixed = _groups(expected, delivered, pairs.count)
        self.group, self.groups = both[:count], both[count:]
        groups = self.groups
        number = int(both.max(initial=-1)) + 1
        self.equal = np.bincount(groups, minlength=number)
        self.is_blurred = marked(number, groups[is_mixed[expected.pair] & (expected.qos == 0)])
        self.is_blurred &= self.equal > 1
        self.is_told = (self.equal[groups] == 1) | ~is_mixed[expected.pair]
        self.entry = np.full(count, -1)
        # The first delivery of a group belongs to its first message, and so on.
        (_, mine), (order, _) = _ranked(self.group), _ranked(groups)
        first = np.concatenate(([0], np.cumsum(self.equal)))
        has_message = mine < self.equal[self.group]
        place = np.where(has_message, first[self.group] + mine, 0)
        if len(groups):
            self.entry = np.where(has_message, order[place], -1)
        is_slow = self._undecided(expected, delivered, number, pairs.count)
        if is_slow.any():
            self._align(expected, delivered, is_slow, is_mixed)
        self._match_earlier(expected, groups)
        self._sum(expected, delivered, groups, number, pairs.count)

    def _undecided(self, expected, delivered, number, pairs):
        # -> the pairs with a group in which it is not clear what belongs together.
        got = np.bincount(self.group, minlength=number)
        is_open = (got > 0) & (self.equal > 1) & (got != self.equal)
        hit = np.flatnonzero(self.entry >= 0)
        early = delivered.ts[hit] + SKEW_US < expected.ts[self.entry[hit]]
        is_open[self.group[hit[early]]] = True
        # Groups with a delivery that would come behind those of later messages: perhaps one was
        # lost and another one came twice.
        hit = hit[self.equal[self.group[hit]] > 1]
        if len(hit):
            # Entries are sorted by pair and message.
            hit = hit[np.argsort(self.entry[hit], kind="stable")][::-1]
            ts, floor = delivered.ts[hit], np.cumsum(begins(delivered.pair[hit]))
            # The earliest so far within each pair, as each pair gets smaller values than the last.
            low = ts - ts.min() - floor * np.int64(ts.max() - ts.min() + 1)
            is_open[self.group[hit[low > np.minimum.accumulate(low)]]] = True
        return marked(pairs, delivered.pair[is_open[self.group]])

    def _align(self, expected, delivered, is_slow, is_mixed):
        # Each QoS has its own order, unless QoS tells nothing here: QoS 2 waits for PUBREL.
        both = ((one.pair, one.qos) for one in (delivered, expected))
        mine, theirs = (pair * 4 + np.where(is_mixed[pair], 0, qos) for pair, qos in both)
        here = np.flatnonzero(is_slow[delivered.pair])
        here = here[np.argsort(mine[here], kind="stable")]
        there = np.flatnonzero(is_slow[expected.pair])
        there = there[np.argsort(theirs[there], kind="stable")]
        for begin, last in zip(*runs(mine[here]), strict=True):
            got = here[begin : last + 1]
            lane = mine[got[0]]
            low, high = np.searchsorted(theirs[there], [lane, lane + 1])
            sent = there[low:high]
            best = self._aligned(sent, expected, expected.ts, got, delivered)
            # Some brokers pass a QoS 2 message on at once, others when it is released.
            order = np.argsort(expected.released[sent], kind="stable")
            if (np.diff(order) < 0).any():
                other = self._aligned(sent[order], expected, expected.released, got, delivered)
                best = min(best, other, key=partial(_missing, expected, sent))
            self.entry[got] = best

    def _aligned(self, sent, expected, times, got, delivered):
        # -> the message of each of these deliveries, -1 for none.
        ts = delivered.ts[got]
        columns = (self.groups, times, expected.gone, expected.is_spare, expected.is_repeated)
        values, when, gone, *flags = (one[sent].tolist() for one in columns)
        # Until when each may have waited in the broker, because its subscriber did not answer
        # others; 0: it had to come, -1: it need not.
        until = np.minimum(expected.until[sent], expected.gone[sent])
        waits = np.where(expected.is_stuck[sent], until, 0)
        waits[~expected.is_due[sent]] = -1

        def laid():
            messages = Messages(values, when, gone, waits.tolist(), *flags)
            return np.array(align(messages, self.group[got].tolist(), ts.tolist()), np.int64)

        match = laid()
        slow = expected.is_busy[sent] & (waits == 0)
        slow &= _is_lagging(times[sent], match, ts)
        if slow.any():
            waits[slow] = expected.until[sent][slow]
            match = laid()
        return np.where(match < 0, -1, sent[match] if len(sent) else -1)

    def _match_earlier(self, expected, groups):
        # A message that was also sent in a time without a capture may have been delivered then.
        some = np.flatnonzero(expected.is_sent_before)
        if not len(some):
            return
        waiting = by_value(groups, np.setdiff1d(some, self.entry).tolist())
        left = np.flatnonzero(self.entry < 0)
        for at in left[np.isin(self.group[left], list(waiting))].tolist():
            if waiting[int(self.group[at])]:
                self.entry[at] = waiting[int(self.group[at])].pop(0)

    def _sum(self, expected, delivered, groups, number, pairs):
        self.is_got = marked(len(expected.pair), self.entry[self.entry >= 0])
        hit = np.flatnonzero((self.entry >= 0) & (delivered.qos > 0))
        self.when = over(np.minimum, len(expected.pair), self.entry[hit], delivered.ts[hit], FAR)
        first = over(np.minimum, number, groups, expected.ts, FAR)
        rest = (self.entry < 0) & ~delivered.retain
        sent_before = first[self.group] < delivered.ts + EARLY_US
        self.is_extra = rest & sent_before
        self.is_unknown = rest & ~sent_before & ~delivered.is_early
        self.has_messages = marked(pairs, expected.pair)
        self.has_extra = marked(pairs, delivered.pair[self.is_extra])
        self.has_unknown = marked(pairs, delivered.pair[self.is_unknown])
        self.has_missing = marked(pairs, expected.pair[expected.is_inside & ~self.is_got])


def _groups(expected, delivered, pairs):
    # -> a number for each delivery and then each message; those with one number may be the same.
    names = ("pair", "hash", "qos")
    columns = [np.append(getattr(delivered, n), getattr(expected, n)) for n in names]
    both = alike(*columns[:2])
    count = len(delivered.pair)
    # Equal values at several QoS.  If one comes at a QoS at which none is expected, or too many
    # come at one QoS and too few at another, the client's subscription is not known, or the
    # broker changes the QoS.
    equal = np.bincount(both[count:], minlength=int(both.max(initial=-1)) + 1)
    if not (equal > 1).any():
        return both, np.zeros(pairs, bool)
    fine = grouped(both, columns[2])
    got, there = (np.bincount(some, minlength=len(both)) for some in np.split(fine, [count]))
    lacks = marked(len(both), both[(got < there)[fine]])
    none = (there[fine[:count]] == 0) & (equal[both[:count]] > 0)
    strange = none | ((got > there)[fine[:count]] & lacks[both[:count]])
    is_mixed = marked(pairs, delivered.pair[strange])
    is_mixed[expected.pair[expected.is_overlapped]] = True
    return grouped(both, np.where(is_mixed[columns[0]], 0, columns[2])), is_mixed


def _missing(expected, sent, entry):
    # -> how many of these messages had to come and did not, if these deliveries are theirs.
    return int(expected.is_due[np.setdiff1d(sent, entry)].sum())


def _is_lagging(sent_ts, match, got_ts):
    # -> for each message that did not come: did the next one that came wait in the broker?
    wait = np.zeros(len(sent_ts), np.int64)
    is_got = match >= 0
    wait[match[is_got]] = got_ts[is_got] - sent_ts[match[is_got]]
    came = marked(len(sent_ts), match[is_got])
    place = np.where(came, np.arange(len(came)), len(came))
    behind = np.minimum.accumulate(place[::-1])[::-1]
    return ~came & (np.append(wait, 0)[behind] >= PAUSE_US)


def _ranked(group):
    # Sorted by group, and the place of each among its own.
    order = np.argsort(group, kind="stable")
    return order, in_runs(group[order])[ranked(order)]
