"""Which delivery is which published message, for one subscriber and one topic.

Theory of operation.  Payloads tell messages apart, but plain values (30, 31, 30 …) come
again and again.  So the deliveries are laid against the messages as one sequence against
another: a delivery comes after its message, and in the order of the messages.  Where a
message is followed by its delivery with nothing between them, and all others around it
are too, there is nothing to decide (an anchor).  What lies between two anchors is matched
by the longest chain in which both sides go forward; of several such chains the one with
the latest messages, as a delivery mostly follows soon.  What is left over after that is
matched whatever the order: late deliveries, and frames recorded a little before their
cause.  But not what later ones overtook long ago: one that was lost and another one that came
twice, days behind it, are two faults and not a slow delivery.
"""

import bisect

from .rows import FAR

# A delivery may be recorded that long before its message: two directions, two queues.
EARLY_US = 1_000_000
# As often as not, where two clocks or queues are compared: no reason to doubt anything.
SKEW_US = 50_000
# As late behind later messages a delivery may be.
LATE_US = 600_000_000
_NEAR = 16  # anchors to both sides of a wrong one that are doubted
_MOST = 64  # messages of equal payload that a delivery is compared with, newest and in rank


def align(sent_hash, sent_ts, got_hash, got_ts):
    """-> for each delivery the index of its message, -1 for none.

    Lists; messages in the order of `sent_ts`, deliveries in the order of their arrival.
    """
    found = [-1] * len(got_hash)
    for sent, got in _chunks(sent_hash, sent_ts, got_hash, got_ts, found):
        _chain(sent, got, sent_hash, sent_ts, got_hash, got_ts, found)
    _late(sent_hash, sent_ts, got_hash, got_ts, found)
    _uncross(got_hash, found)
    return found


def _chunks(sent_hash, sent_ts, got_hash, got_ts, found):
    # Anchors go into `found`; yields (messages, deliveries) that lie between them.
    merged = [(ts, 0, at) for at, ts in enumerate(sent_ts)]
    merged += [(ts + SKEW_US, 1, at) for at, ts in enumerate(got_ts)]
    merged.sort()
    anchors = _anchors(merged, sent_hash, got_hash)
    sent, got, place = [], [], 0
    while place < len(merged):
        _, kind, at = merged[place]
        if place in anchors:
            found[merged[place + 1][2]] = at
            if got:
                yield sent, got
            # What was sent before an anchor may still come behind it: see `_late`.
            sent, got = [], []
            place += 2
            continue
        (got if kind else sent).append(at)
        place += 1
    if got:
        yield sent, got


def _anchors(merged, sent_hash, got_hash):
    # Places of messages with a delivery before them, theirs behind them, and a message
    # behind that.  Where deliveries lag behind, that is chance; then others close by differ.
    kinds = [1, *(entry[1] for entry in merged), 0, 0]
    places, wrong = [], []
    for place, (_, kind, at) in enumerate(merged):
        if not kind and kinds[place] == 1 and kinds[place + 2] == 1 and not kinds[place + 3]:
            if sent_hash[at] != got_hash[merged[place + 1][2]]:
                wrong.append(len(places))
            places.append(place)
    doubted = {index for one in wrong for index in range(max(0, one - _NEAR), one + _NEAR + 1)}
    return {place for index, place in enumerate(places) if index not in doubted}


def _chain(sent, got, sent_hash, sent_ts, got_hash, got_ts, found):
    # Hunt and Szymanski's longest common subsequence, from the end to the beginning:
    # `ends[k]` is the latest message that a chain of k + 1 can begin with (negative).
    places: dict[int, list[int]] = {}
    for at in sent:
        places.setdefault(sent_hash[at], []).append(at)
    counts: dict[int, int] = {}
    for at in got:
        counts[got_hash[at]] = counts.get(got_hash[at], 0) + 1
    ends: list[int] = []
    nodes: list[tuple] = []
    for at in sorted(got, reverse=True):
        mine = places.get(got_hash[at], [])
        counts[got_hash[at]] -= 1
        for message in _choice(mine, sent_ts, got_ts[at], counts[got_hash[at]]):
            length = bisect.bisect_left(ends, -message)
            node = (at, message, nodes[length - 1] if length else None)
            if length == len(ends):
                ends.append(-message)
                nodes.append(node)
            elif -message < ends[length]:
                ends[length], nodes[length] = -message, node
    chain: tuple | None = nodes[-1] if nodes else None
    while chain:
        found[chain[0]] = chain[1]
        chain = chain[2]


def _choice(mine, sent_ts, ts, rank):
    # Messages that this delivery can be, in their order: not those sent after it.
    end = bisect.bisect_right(mine, ts + SKEW_US, key=sent_ts.__getitem__)
    if end <= _MOST:
        return mine[:end]
    newest = mine[end - _MOST // 2 : end]
    first = max(0, min(rank - _MOST // 8, end - _MOST))
    return mine[first : first + _MOST // 2] + newest


def _late(sent_hash, sent_ts, got_hash, got_ts, found):
    taken = set(found)
    overtaken = _overtaken(sent_ts, got_ts, found)
    left: dict[int, list[int]] = {}
    for at, value in enumerate(sent_hash):
        if at not in taken:
            left.setdefault(value, []).append(at)
    for early in (0, EARLY_US):
        for at, message in enumerate(found):
            mine = left.get(got_hash[at]) if message < 0 else None
            if not mine:
                continue
            end = bisect.bisect_right(mine, got_ts[at] + early, key=sent_ts.__getitem__)
            place = 0 if early else end - 1
            # The latest of them is the one that was overtaken last.
            if end and got_ts[at] < overtaken[mine[place]] + LATE_US:
                found[at] = mine.pop(place)


def _overtaken(sent_ts, got_ts, found):
    # For each message when the first one behind it was delivered.
    first = [FAR] * (len(sent_ts) + 1)
    for at, message in enumerate(found):
        if message >= 0:
            first[message] = min(first[message], got_ts[at])
    for message in range(len(sent_ts) - 1, -1, -1):
        first[message] = min(first[message], first[message + 1])
    return first[1:]


def _uncross(got_hash, found):
    # Of equal payloads the first delivery is the first message.
    groups: dict[int, list[int]] = {}
    for at, message in enumerate(found):
        if message >= 0:
            groups.setdefault(got_hash[at], []).append(at)
    for members in groups.values():
        for at, message in zip(members, sorted(found[at] for at in members), strict=True):
            found[at] = message
