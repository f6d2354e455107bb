"""Which delivery is which published message, for one subscriber and one topic.

Theory of operation.  Payloads tell messages apart, but plain values (30, 31, 30 …) come
again and again.  So the deliveries are laid against the messages as one sequence against
another: a delivery comes after its message, and in the order of the messages.  Where a
message is followed by its delivery with nothing between them, and all others around it
are too, there is nothing to decide (an anchor).  What lies between two anchors is matched
by the longest chain in which both sides go forward; of several such chains the one with
the latest messages, as a delivery mostly follows soon.  Only where a queue was not emptied
is it the other way about: what came of it is its beginning, so the chain with the earliest
messages counts when it leaves fewer out that must have come.  What is left over after that is
matched whatever the order: late deliveries, and frames recorded a little before their
cause.  But not what later ones overtook long ago: one that was lost and another one that came
twice, days behind it, are two faults and not a slow delivery.  A message that was too old, or
only close to a subscription, is what a delivery may be when nothing else is left.
"""

import bisect

from ..columns import by_value
from .rows import FAR

# A delivery may be recorded so long before its message, as each direction has its own queue.
EARLY_US = 1_000_000
# Two clocks or queues may differ by so much, which is no reason for doubt.
SKEW_US = 50_000
# A delivery may come so late behind those of later messages.
LATE_US = 600_000_000
_BURST_US = 1_000_000
_NEAR = 16  # so many anchors on both sides of a wrong one are doubted
_MOST = 64  # a delivery is compared with so many messages of equal payload


class Messages:
    """What was published, in the order of `ts`, and how much of it had to come: lists.

    `gone`: from when on each is too old to be delivered.  `waits`: until when a queue may have
    held it, 0 where it must have come, -1 where it need not.  `is_spare`: it is what is
    delivered only if no other message can be.  `is_repeated`: its publisher sent it again, so
    the broker may have passed it on twice.
    """

    def __init__(self, value, ts, gone=None, waits=None, is_spare=None, is_repeated=None):
        self.value, self.ts = value, ts
        self.gone = gone if gone and min(gone) < FAR else None
        self.waits = waits or [-1] * len(ts)
        self.is_spare = is_spare or [False] * len(ts)
        self.is_repeated = is_repeated or [False] * len(ts)

    def missing(self, some, when, behind=FAR):
        """How many of these messages must have come and are not in `when` (when each came)?
        `behind`: when what follows them came."""
        count = 0
        for at in reversed(some):
            if at in when:
                behind = min(behind, when[at])
            elif self.waits[at] >= 0 and (behind <= self.waits[at] or not self.waits[at]):
                count += 1
        return count


def align(sent, got_hash, got_ts):
    """-> for each delivery the index of its message in `sent` (`Messages`), -1 for none.

    Deliveries are two lists, in the order of their arrival.
    """
    found = [-1] * len(got_hash)
    for some, got, behind in _chunks(sent, got_hash, got_ts, found):
        chain = _chain(some, got, sent, got_hash, got_ts, is_latest=True)
        if any(sent.waits[at] > 0 for at in some):
            other = _chain(some, got, sent, got_hash, got_ts, is_latest=False)
            both = [{m: got_ts[at] for at, m in one.items()} for one in (chain, other)]
            missing, less = (sent.missing(some, when, behind) for when in both)
            chain = other if less < missing else chain
        for at, message in chain.items():
            found[at] = message
    _prefer(sent, found)
    _late(sent, got_hash, got_ts, found)
    # Where payloads are equal, the first delivery belongs to the first message.
    matched = (at for at, message in enumerate(found) if message >= 0)
    for members in by_value(got_hash, matched).values():
        for at, message in zip(members, sorted(found[at] for at in members), strict=True):
            found[at] = message
    return found


def _prefer(sent, found):
    # In a burst of equal messages prefer those that must have come: move matches to them.
    taken = set(found)
    if all(waits < 0 or at in taken for at, waits in enumerate(sent.waits)):
        return
    equal = by_value(sent.value, range(len(sent.value)))
    matched = [(at, message) for at, message in enumerate(found) if message >= 0]
    matched.sort(key=lambda one: one[1])
    before, run = -1, []
    for at, message in matched:
        if sent.waits[message] < 0:
            run.append((at, message))
            continue
        _go_back(sent, equal, before, run, found)
        before, run = message, []
    _go_back(sent, equal, before, run, found)


def _go_back(sent, equal, before, run, found):
    # `run`: (delivery, message) of messages that need not have come, behind the message `before`.
    # A path has one message for each of them, in order, and the number that must have come.
    paths: list[tuple] = [(before, 0, None)]
    begin = before + 1
    for at, last in run:
        begin = bisect.bisect_left(sent.ts, sent.ts[last] - _BURST_US, begin, last)
        longer: list[tuple] = []
        best: tuple | None = None
        place = 0
        mine = equal[sent.value[last]]
        end = bisect.bisect_right(mine, last)
        for message in mine[max(bisect.bisect_left(mine, begin), end - _MOST) : end]:
            while place < len(paths) and paths[place][0] < message:
                best = paths[place] if best is None else max(best, paths[place], key=_weight)
                place += 1
            if best:
                count = best[1] + (sent.waits[message] >= 0)
                longer.append((message, count, (at, message, best[2])))
        paths = longer
    _, count, node = max(paths, key=_weight)
    while node and count:
        found[node[0]] = node[1]
        node = node[2]


def _weight(path):
    return path[1], path[0]


def _chunks(sent, got_hash, got_ts, found):
    # Writes anchors to `found`.  Yields (messages, deliveries, time of the next anchor) of what
    # lies between two of them.
    merged = [(ts, 0, at) for at, ts in enumerate(sent.ts)]
    merged += [(ts + SKEW_US, 1, at) for at, ts in enumerate(got_ts)]
    merged.sort()
    anchors = _anchors(merged, sent.value, got_hash)
    some, got, place = [], [], 0
    while place < len(merged):
        _, kind, at = merged[place]
        if place in anchors:
            anchor = merged[place + 1][2]
            found[anchor] = at
            if got:
                yield some, got, got_ts[anchor]
            # A message from before an anchor may still come behind it: see `_late`.
            some, got = [], []
            place += 2
            continue
        (got if kind else some).append(at)
        place += 1
    if got:
        yield some, got, FAR


def _anchors(merged, sent_hash, got_hash):
    # Places where a delivery, a message, a delivery and a message follow each other: the message
    # and what follows belong together.  If deliveries are late this is chance, and payloads of
    # others nearby differ.
    kinds = [1, *(entry[1] for entry in merged), 0, 0]
    places, wrong = [], []
    for place, (_, kind, at) in enumerate(merged):
        if not kind and kinds[place] == 1 and kinds[place + 2] == 1 and not kinds[place + 3]:
            if sent_hash[at] != got_hash[merged[place + 1][2]]:
                wrong.append(len(places))
            places.append(place)
    doubted = {index for one in wrong for index in range(max(0, one - _NEAR), one + _NEAR + 1)}
    return {place for index, place in enumerate(places) if index not in doubted}


def _chain(some, got, sent, got_hash, got_ts, is_latest):
    # -> {delivery: message}.  Hunt and Szymanski's longest common subsequence, from the end to
    # the beginning if `is_latest`, else forward.  `ends[k]` is the latest message that a chain of
    # k + 1 can begin with, negative; or the earliest that it can end with.
    places = by_value(sent.value, (at for at in some if not sent.is_spare[at]))
    ranks, counts = [], {}
    for at in got:
        ranks.append(counts.get(got_hash[at], 0))
        counts[got_hash[at]] = ranks[-1] + 1
    step = -1 if is_latest else 1
    ends: list[int] = []
    nodes: list[tuple | None] = []
    for at, rank in list(zip(got, ranks, strict=True))[::step]:
        mine = _choice(places.get(got_hash[at], []), sent, got_ts[at], rank)
        for message in mine[::-step]:
            length = bisect.bisect_left(ends, step * message)
            entry = (at, message, nodes[length - 1] if length else None)
            if length == len(ends):
                ends.append(step * message)
                nodes.append(entry)
            elif step * message - is_latest < ends[length]:  # the first of a message
                ends[length], nodes[length] = step * message, entry
    node = nodes[-1] if nodes else None
    chain = {}
    while node:
        chain[node[0]] = node[1]
        node = node[2]
    return chain


def _choice(mine, sent, ts, rank):
    # -> the messages that this delivery can belong to, in order; none was sent after it.
    end = bisect.bisect_right(mine, ts + SKEW_US, key=sent.ts.__getitem__)
    if end > _MOST:
        newest = mine[end - _MOST // 2 : end]
        first = max(0, min(rank - _MOST // 8, end - _MOST))
        mine, end = mine[first : first + _MOST // 2] + newest, _MOST
    return [at for at in mine[:end] if ts < sent.gone[at]] if sent.gone else mine[:end]


def _late(sent, got_hash, got_ts, found):
    # Each message that was sent again may have been delivered twice.
    repeated = (at for at, one in enumerate(found) if one >= 0 and sent.is_repeated[one])
    again, copies = by_value(got_hash, repeated), set()
    overtaken = _overtaken(sent.ts, got_ts, found)
    rest = sorted(set(range(len(sent.ts))) - set(found))
    left = [
        by_value(sent.value, (at for at in rest if sent.is_spare[at] == is_spare))
        for is_spare in (False, True)
    ]
    passes = [(0, 0, sent.gone), (1, 0, None), (0, EARLY_US, sent.gone), (0, 0, None)]
    for is_spare, early, gone in passes if sent.gone else passes[:3]:
        for at, message in enumerate(found):
            mine = left[is_spare].get(got_hash[at]) if message < 0 else None
            if not mine or at in copies:
                continue
            place = _free(mine, sent, got_ts[at], early, gone)
            if place is None or got_ts[at] >= overtaken[mine[place]] + LATE_US:
                continue
            # It is out of order, and may be the copy of a message that came before.
            first = again.get(got_hash[at]) if got_ts[at] > overtaken[mine[place]] else None
            if first and first[0] < at and not sent.is_repeated[mine[place]]:
                copies.add(at)
                first.pop(0)
            else:
                found[at] = mine.pop(place)


def _free(mine, sent, ts, early, gone):
    # -> the place among these messages of one that was delivered at `ts`, or None.
    end = bisect.bisect_right(mine, ts + early, key=sent.ts.__getitem__)
    # The latest one was overtaken last.
    places = range(end) if early else range(end)[::-1]
    return next((one for one in places[:_MOST] if gone is None or ts < gone[mine[one]]), None)


def _overtaken(sent_ts, got_ts, found):
    # -> for each message, when the first of the later ones was delivered.
    first = [FAR] * (len(sent_ts) + 1)
    for at, message in enumerate(found):
        if message >= 0:
            first[message] = min(first[message], got_ts[at])
    for message in range(len(sent_ts) - 1, -1, -1):
        first[message] = min(first[message], first[message + 1])
    return first[1:]
