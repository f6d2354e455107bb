"""What is said of messages and deliveries, and how sure it is (docs/reference/fleet-verdicts.md).

For `routes`; works on numbers alone.
"""

import numpy as np

from ..columns import marked, over
from ..mqtt import matches
from .alignment import LATE_US, SKEW_US
from .messages import GRACE_US
from .rows import FAR, grouped, running_max, running_max_breaks
from .rules import LOSSES
from .subscriptions import PAUSE_US

# A short payload may be published again and again, so it does not identify a delivery.
_DISTINCT_BYTES = 8


class Lost:
    """Entries of `expected` that were not delivered although they were due: `at`, and how
    sure that is.

    `strange` are deliveries of unknown origin: of equal ones each may be the message, late;
    `again` (groups, times) are those of messages that their publisher had sent again.
    """

    def __init__(self, facts, published, expected, found, strange=(), again=(), is_group=False):
        missing = ~found.is_got & expected.is_due
        producer = published.client[expected.message]
        route = grouped(expected.pair, producer)
        missing &= ~_is_sent_anew(facts, published, expected, found, producer)
        missing &= ~expected.is_implied | self._is_regular(expected, found, route, missing)
        self.at = np.flatnonzero(missing)
        some, is_before, is_behind = _around(route, found.is_got, self.at)
        same = grouped(route, expected.qos)
        # QoS 0 overtakes what waits, and may be another message of equal value.  What another
        # session got does not tell what waited in this one.
        # If the capture lacks the broker's answer, it got the message when that was sent, and at
        # the latest when it delivered it.
        accepted = published.accepted[expected.message]
        taken = np.minimum(np.where(accepted < FAR, accepted, expected.ts), found.when)
        # A message that overtook others in the broker does not tell what waited behind those.
        is_inline = (found.when < FAR) & ~_overtakes(expected, found, taken, self.at)
        earlier, _ = _neighbours(same, taken, found.when < FAR, self.at)
        _, later = _neighbours(same, taken, is_inline, self.at)
        until = expected.until[self.at]
        before, behind = earlier >= 0, (later >= 0) & (found.when[later] <= until)
        any_producer, _, _ = _around(expected.pair, found.is_got, self.at)
        stuck = expected.is_stuck[self.at] & ~behind
        full = stuck & expected.is_full[self.at]
        assumed = expected.is_assumed[self.at]
        away = some & before & behind & (found.when[later] > expected.attached_until[self.at])
        elsewhere = expected.is_elsewhere[self.at]
        has_strange = marked(len(found.equal), found.group[np.asarray(strange, np.int64)])
        behind &= ~has_strange[found.groups[self.at]]
        waits = some & self._may_wait(published, expected, found, is_inline)
        # Where payloads are equal, it is not known which message waits.
        value = found.groups[self.at]
        has_waiting = np.bincount(value, waits, len(found.equal)) > 0
        waits |= some & has_waiting[value] & expected.is_busy[self.at] & ~behind
        self.reason = np.select(
            [waits, before & behind & ~assumed & ~away, full, stuck, some & assumed, away, some]
            + [elsewhere, any_producer],
            [_WAITS, _BETWEEN, _FULL, _STUCK, _ASSUMED, _AWAY, _SOME, _ELSEWHERE, _OTHERS],
            _NONE,
        )
        implied = expected.is_implied[self.at]
        self.reason[implied & ~waits] = _IMPLIED
        self.reason[found.is_blurred[found.groups[self.at]]] = _BLURRED
        if is_group:
            # A member that was not captured would have got its share, or at least half of it.
            got = np.bincount(expected.pair, found.is_got)[expected.pair[self.at]]
            lacks = np.bincount(expected.pair[self.at])[expected.pair[self.at]]
            shares = expected.more_copies[self.at] + 2
            is_all = (2 * lacks * shares <= got + lacks) & is_before & is_behind
            self.reason = np.where(is_all, _MEMBERS, _GROUP)
        between = np.flatnonzero(self.reason == _BETWEEN)
        value, behind = found.groups[self.at[between]], found.when[later[between]]
        # An equal message that came in its place may be this one.
        low = np.maximum(found.when[earlier[between]], expected.ts[self.at[between]] - SKEW_US)
        came = _of_groups(found.groups, self.at[between])
        came = came[found.when[came] < FAR]
        is_equal = _is_any(found.groups[came], found.when[came], value, low, behind)
        self.reason[between[is_equal]] = _EQUAL
        if again:
            copies, times = again
            is_late = _is_any(copies, times, value, behind, behind + LATE_US)
            self.reason[between[is_late]] = _TWICE
        # A loss at QoS 0 is reported only if no other message has this payload.
        is_told = is_before & is_behind & (found.equal[found.groups[self.at]] == 1) & ~elsewhere
        at_0 = expected.qos[self.at] == 0
        self.reason[at_0] = _BETWEEN
        keep = ~at_0 | (is_told & ~has_strange[found.groups[self.at]] & (not is_group))
        self.at, self.reason = self.at[keep], self.reason[keep]
        known = np.array([one.sure != "not_knowable" for one in LOSSES.values()])
        self.is_explained = known[self.reason]

    def _may_wait(self, published, expected, found, is_inline):
        # No later message came in time, and those around it had waited in the broker, until the
        # session ended or the message expired.
        at, message = self.at, expected.message
        accepted = published.accepted[message]
        # For others it is not known when the broker accepted them.
        is_got = is_inline & (expected.qos > 0) & found.is_told & (accepted < FAR)
        waited = is_got & (found.when - np.minimum(accepted, found.when) >= PAUSE_US)
        earlier, later = _neighbours(expected.pair, accepted, is_got, at)
        before, behind = (earlier >= 0) & waited[earlier], (later >= 0) & waited[later]
        expires = published.expires[message][at]
        is_over = expires < FAR
        deadline = np.minimum(expires, expected.until[at])
        # A message that came at once behind one that waited did not overtake this one.
        _, slow = _neighbours(expected.pair, accepted, waited, at)
        passing = np.where(before, slow, later)
        is_passed = (passing >= 0) & (found.when[passing] <= deadline)
        is_near = before & (accepted[at] < found.when[earlier] + GRACE_US)
        is_near |= behind & (accepted[later] < deadline + GRACE_US)
        is_slow = (before | behind) & expected.is_busy[at]
        return ~is_passed & (is_slow | (is_near & is_over))

    @staticmethod
    def _is_regular(expected, found, route, missing):
        # The subscription was not captured, but the client gets nearly all that this producer
        # sends here, also before and after.  It is no shared one: others that get what it does
        # not get what it gets, too.
        if not expected.is_implied.any():
            return missing
        at = np.flatnonzero(missing & expected.is_implied)
        _, before, behind = _around(grouped(route, expected.qos), found.is_got, at)
        count = int(route.max(initial=-1)) + 1
        got = np.bincount(route, found.is_got & expected.is_implied, count)
        lacks = np.bincount(route[at], minlength=count)
        is_regular = before & behind & (got >= _REGULAR * lacks)[route[at]]
        takers = np.zeros(int(expected.message.max(initial=-1)) + 1, np.int64)
        np.add.at(takers, expected.message[found.is_got & ~expected.is_inside], 1)
        both = np.bincount(route, found.is_got & (takers[expected.message] > 1), count)
        is_shared = (takers[expected.message[at]] > 0) & (2 * both < got)[route[at]]
        return marked(len(missing), at[is_regular & ~is_shared])


def _is_any(group, when, wanted, low, high):
    # -> for each wanted group: has it an entry from `low` to `high`, both included?
    if not len(group) or not len(wanted):
        return np.zeros(len(wanted), bool)
    start = min(when.min(), low.min())
    span = max(when.max(), high.max()) - start + 1
    number = grouped(np.concatenate((group, wanted))) * span - start
    there = np.sort(number[: len(group)] + when)
    mine = number[len(group) :]
    return np.searchsorted(there, mine + low) < np.searchsorted(there, mine + high, "right")


def _is_sent_anew(facts, published, expected, found, producer):
    # A new session repeats, with DUP, a message that was not finished in the one before.  If that
    # one was delivered, this one need not be.
    row = published.row[expected.message]
    is_marked = (row >= 0) & facts.is_marked[row] & (expected.qos > 0)
    if not is_marked.any():
        return is_marked
    same = grouped(found.groups, producer)
    is_open = found.is_got & (row >= 0) & (published.accepted[expected.message] == FAR)
    return is_marked & (np.bincount(same, is_open) > 0)[same]


def _around(group, mask, at):
    # -> for the entries `at`: is the mask set anywhere in their group, before them, behind them?
    order, place = _places(group, at, np.arange(len(group)))
    count = np.concatenate(([0], np.cumsum(mask[order])))
    begin, end = (np.searchsorted(group[order], group[at], side) for side in ("left", "right"))
    so_far = count[place[at] + 1] - count[begin]
    all_of = count[end] - count[begin]
    return all_of > 0, so_far > 0, all_of > so_far


def _overtakes(expected, found, taken, at):
    # -> for subscribers and topics that lack a message: which messages came at least a second
    # before one that the broker had accepted earlier, and not long ago?
    is_asked = marked(int(expected.pair.max(initial=-1)) + 1, expected.pair[at])
    some = np.flatnonzero(is_asked[expected.pair] & (found.when < FAR) & (expected.qos > 0))
    some = some[found.when[some] - taken[some] < LATE_US]
    some = some[np.lexsort((taken[some], expected.pair[some]))]
    last = running_max(expected.pair[some], found.when[some])
    return marked(len(taken), some[last >= found.when[some] + PAUSE_US])


def _neighbours(group, when, mask, at):
    # -> for the entries `at`: the nearest in their group with the mask set, by the time at which
    # the broker accepted them, before and after; -1 for none.
    order, place = _places(group, at, when)
    here, is_set = place[at], mask[order]
    before = np.maximum.accumulate(np.where(is_set, np.arange(len(order)), -1))[here]
    behind = np.where(is_set, np.arange(len(order)), len(order))[::-1]
    behind = np.minimum.accumulate(behind)[::-1][here]
    found = []
    for one, is_there in ((before, before >= 0), (behind, behind < len(order))):
        entry = order[np.where(is_there, one, 0)] if len(order) else one
        found.append(np.where(is_there & (group[entry] == group[at]), entry, -1))
    return found


def _places(group, at, when):
    # -> (the entries of the groups of `at`, by group and time; the place of each entry there)
    order = _of_groups(group, at)
    order = order[np.lexsort((when[order], group[order]))]
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(order))
    return order, place


def _of_groups(group, at):
    # -> all entries in the groups of the entries `at`, usually a few of very many.
    return np.flatnonzero(marked(int(group.max(initial=-1)) + 1, group[at])[group])


# Places in `LOSSES`.
_BETWEEN, _SOME, _ASSUMED, _STUCK, _FULL, _OTHERS, _NONE, _ELSEWHERE = range(4, 12)
_GROUP, _IMPLIED, _WAITS, _BLURRED, _AWAY, _EQUAL, _TWICE, _MEMBERS, BRIDGED = range(12, 21)
_REGULAR = 9  # so many messages are delivered for each that is not


def is_plain_known(facts, published, expected, delivered, found):
    """For each pair: has every delivery a captured message, with no bytes missing between the
    first message and the last?"""
    sent = published.row[expected.message]
    known = ~found.has_unknown
    if facts.gaps.any():
        here = np.flatnonzero(sent >= 0)
        route = grouped(expected.pair[here], published.client[expected.message[here]])
        known[expected.pair[here[_differs(route, facts.gaps[sent[here]])]]] = False
        known[delivered.pair[_differs(delivered.pair, facts.gaps[delivered.row])]] = False
    return known


def _differs(group, values):
    # -> for each entry: does its value differ from the smallest of its group?
    count = int(group.max(initial=-1)) + 1
    return values != over(np.minimum, count, group, values, FAR)[group]


class Copies:
    """Deliveries (places in `delivered`) of what had been delivered before.

    `twice` at QoS 2 where that must not be, `is_sure` of them; `repeated` at a lower QoS;
    `unexplained` at QoS 2 and `unknown` below it, where other publishers may have sent
    the same.
    """

    def __init__(self, facts, published, expected, delivered, found, pairs, known):
        extra = np.flatnonzero(found.is_extra)
        pair, row = delivered.pair[extra], delivered.row[extra]
        group = found.group[extra]
        count = len(found.equal)
        room = np.bincount(found.groups, expected.more_copies, count)
        extras = np.bincount(group, minlength=count)
        allowed = (extras <= room)[group] | pairs.is_shared[pair]
        extra, pair, row, group = (values[~allowed] for values in (extra, pair, row, group))
        sent = published.row[expected.message]
        at_two = (delivered.qos[extra] == 2) & ~facts.is_marked[row]
        # One of them may belong to a message from before the capture.
        early = np.bincount(found.group[delivered.is_early], minlength=count) > 0
        alone = found.equal[group] == 1
        few = _is_one_of_few(found, expected.pair, group, extras)
        # A short payload says little, but more if the messages around it came once, in a session
        # that is known.
        is_told = few & facts.is_known[row] & (extras[group] == 1)
        distinct = alone & (is_told | (facts.payload_bytes[row] >= _DISTINCT_BYTES))
        distinct &= known[pair]
        # A client whose CONNECT was not captured may have had a will.
        distinct &= marked(count, found.groups[(sent >= 0) & facts.has_client[sent]])[group]
        reading = facts.is_reading[row]
        # A repetition is known by its reading, or because its publisher repeated it.
        again = marked(count, found.groups[(sent >= 0) & facts.is_repeated[sent]])
        is_again = again[group] & known[pair] & ~early[group]
        is_repeated = reading | is_again | facts.is_marked[row]
        self.repeated = extra[~at_two & is_repeated]
        self.unknown = extra[~at_two & ~is_repeated]
        is_twice = at_two & (reading | distinct) & ~early[group]
        is_twice &= facts.is_known[row] | few
        self.twice = extra[is_twice]
        self.is_sure = facts.is_reading[delivered.row[self.twice]]
        self.unexplained = extra[at_two & ~is_twice]


def _is_one_of_few(found, pair, group, extras):
    # -> for these groups with more deliveries than messages: did the messages before and after
    # come once?  The subscriptions of a client from before the capture are not known, and where
    # two filters match all messages come twice.
    got = np.flatnonzero(found.is_got)
    if not len(got):
        return np.zeros(len(group), bool)
    of_group = np.zeros(len(found.equal), np.int64)
    of_group[found.groups[got]] = np.arange(len(got))
    at = of_group[group]
    is_single = extras[found.groups[got]] == 0
    result = np.ones(len(at), bool)
    for near in (at - 1, at + 1):
        is_there = (near >= 0) & (near < len(got))
        near = np.where(is_there, near, at)
        result &= is_there & is_single[near] & (pair[got[near]] == pair[got[at]])
    return result


class Late:
    """Deliveries (places in `delivered`) behind a later message of the same producer."""

    def __init__(self, facts, names, published, expected, delivered, found, pairs, known, exempt):
        at = np.flatnonzero(found.entry >= 0)
        entry = found.entry[at]
        message = expected.message[entry]
        sent, row = published.row[message], delivered.row[at]
        keep = (sent >= 0) & (delivered.qos[at] == published.qos[message])
        keep &= ~pairs.is_shared[delivered.pair[at]] & ~facts.is_marked[row]
        # It is not known when the broker got a message that was sent twice.
        keep &= ~facts.is_repeated[sent]
        if exempt:
            is_exempt = [any(matches(f, n or "") for f in exempt) for n in names.topics]
            keep &= ~np.array(is_exempt, bool)[names.topic[row]]
        at, entry, message, sent = at[keep], entry[keep], message[keep], sent[keep]
        keys = (delivered.pair[at], delivered.session[at], published.client[message])
        group = grouped(*keys, delivered.qos[at])
        order = np.lexsort((facts.position[delivered.row[at]], group))
        late = order[running_max_breaks(group[order], facts.position[sent][order])]
        # Equal payloads do not tell messages apart if one was sent twice, or at another QoS:
        # those of QoS 2 are passed on when they are released.
        row, qos = published.row[expected.message], published.qos[expected.message]
        is_mixed = ((row >= 0) & facts.is_repeated[row]) | (qos != expected.qos)
        mixed = marked(len(found.equal), found.groups[is_mixed])
        # Copies for several subscriptions may come by several queues, and cannot be told apart.
        copied = marked(len(found.equal), found.group[found.is_extra])
        may_copy = np.bincount(found.groups, expected.more_copies, len(found.equal)) > 0
        late = late[~(copied & may_copy)[found.group[at[late]]]]
        late = late[facts.is_reading[delivered.row[at[late]]] | ~mixed[found.group[at[late]]]]
        at, entry = at[late], entry[late]
        # Only a unique payload identifies its message, unless all came soon.
        reading = facts.is_reading[delivered.row[at]]
        pair, group = delivered.pair[at], found.group[at]
        wait = delivered.ts[at] - expected.ts[entry]
        complete = ~found.has_extra[pair] & ~found.has_missing[pair]
        complete &= (wait >= 0) & (wait < GRACE_US)
        plain = known[pair] & ((found.equal[group] == 1) | complete)
        # Before the subscription was captured there may have been others.
        judged = reading | (plain & expected.is_inside[entry])
        self.at, self.is_sure = at[judged], reading[judged]
