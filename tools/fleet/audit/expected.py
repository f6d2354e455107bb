"""What each subscriber had to get, and what else it may have got.  For `routes`."""

from types import SimpleNamespace

import numpy as np

from ..columns import marked, over, runs
from .alignment import EARLY_US, SKEW_US
from .messages import GRACE_US
from .rows import FAR, alike, equal_ones, grouped
from .spans import HEADER_BYTES
from .subscriptions import PAUSE_US
from .traffic import UNKNOWN

_EDGE_US = 2_000_000  # around a subscription: what may belong to it, and need not
# How what several subscriptions of one client say of a message is put together.
_MERGED = {
    np.logical_or: ("is_inside", "is_due", "is_implied"),
    np.logical_and: ("is_stuck", "is_full", "is_assumed", "is_elsewhere", "is_busy", "is_spare"),
    np.maximum: ("attached_until", "until"),
}


class Expected:
    """Messages that a subscriber had to get, and others that it may have got.

    `message` (in `Published`), `pair`, `hash`, `ts`, sorted by pair and message; `released` when
    a broker that waits for PUBREL could pass it on; `gone` when it was too old for that;
    `is_due`: it had to be delivered; `is_sent_before`: it may have been before it was captured,
    so it had not; `is_repeated`: its publisher sent it again; `qos` as it could be expected;
    `more_copies` that may come of it.
    `is_stuck`: the client had left earlier ones unacknowledged, `is_full`: as many as it takes;
    `is_assumed`: nobody says that its session went on; `is_elsewhere`: it was published through
    another address than that which the subscriber is connected to; `is_implied`: only other
    deliveries tell that there was a subscription; `is_spare`: it comes only close to one.
    `attached_until`: when the connection ended that the client had when the broker took it on
    (0: it had none); `until`: end of the session; `is_busy`: up to then, or until it was too
    old, the client had always another delivery to answer.
    `is_group`: subscriptions are those of a group's members, one of whom gets each message.
    """

    def __init__(self, facts, names, spans, published, delivered, pairs, is_group=False):
        self._is_group = is_group
        self._published, self._facts, self._names = published, facts, names
        inside = self._inside(spans, pairs)
        others = self._unknown(spans, delivered, pairs), self._delayed(spans, pairs)
        self._merge(_laid(inside, *others))
        self.hash = published.hash[self.message]
        row = published.row[self.message]
        self.is_sent_before = (row >= 0) & facts.is_sent_before[row]
        self.is_repeated = (row >= 0) & (facts.times_sent[row] > 1)
        self.ts = published.sent[self.message]
        is_released = (published.qos == 2) & (published.accepted < FAR)
        self.released = np.where(is_released, published.accepted, published.sent)[self.message]
        accepted, expires = published.accepted[self.message], published.expires[self.message]
        is_old = (accepted < FAR) & (expires < FAR)
        self.gone = np.full(len(accepted), FAR)
        self.gone[is_old] = (accepted + expires - self.ts + SKEW_US)[is_old]

    def _join(self, place, begin, end, some=None):
        # -> (entry, message) for all messages of these places (or `some` of them), sent between
        # the two.
        places = self._published.place if some is None else self._published.place[some]
        entry, message = equal_ones(place, places)
        message = message if some is None else some[message]
        when = self._published.sent[message]
        near = (when > begin[entry]) & (when < end[entry])
        return entry[near], message[near]

    def _inside(self, spans, pairs):
        # Of each subscription the messages in its time and close to it -> columns for `_merge`.
        span = spans.span
        end = np.where(spans.end < FAR - _EDGE_US, spans.end + _EDGE_US, spans.end)
        if self._is_group:
            # A member that was not seen again may still have a session, and messages in it.
            is_gone = spans.end == spans.last
            end[is_gone] = FAR
        entry, message = self._join(spans.place, (spans.begin - _EDGE_US)[span], end[span])
        own, pair = span[entry], pairs.of_span[entry]
        published, facts = self._published, self._facts
        elsewhere = spans.server[own] != published.server[message]
        elsewhere &= published.server[message] != UNKNOWN
        # Mostly all that a subscriber gets on a topic is of one server.
        some = np.flatnonzero((np.bincount(pair, elsewhere) > 0)[pair])
        # What a bridge published here itself is a copy of what came to its other end, too.
        copied = some[self._is_copied(pair[some], message[some], elsewhere[some])]
        drop = marked(len(pair), copied)
        drop |= spans.is_own_excluded[own] & (published.client[message] == spans.client[own])
        columns = own, pair, message, elsewhere
        own, pair, message, elsewhere = (values[~drop] for values in columns)
        row = published.row[message]
        sent, accepted = published.sent[message], published.accepted[message]
        inside = (sent > spans.begin[own]) & (accepted < spans.end[own]) & (accepted < FAR)
        inside &= ~spans.is_shared[own]
        implied = inside & spans.is_implied[own]
        # Without the level nobody knows where the payload begins.
        due = inside & facts.has_level[row] & (row >= 0) & ~facts.is_sent_before[row]
        # Where the clock was set back meanwhile, nobody knows what came first.
        due &= accepted > sent - EARLY_US
        limit = spans.packet_bytes_max[own]
        if (limit < FAR).any():
            topics = [len((name or "").encode()) for name in self._names.topics]
            topic_bytes = np.array(topics, np.int64)[pairs.place[pair] % len(topics)]
            size = facts.payload_bytes[row] + topic_bytes
            # The properties of the message travel with it.
            size = np.maximum(size, facts.packet_bytes[row])
            due &= size + HEADER_BYTES < limit
        # At QoS 2 it may have grown too old between PUBLISH and PUBREL.
        expires = published.expires[message]
        due &= accepted < expires
        at = np.flatnonzero(due)
        until = np.minimum(spans.end, spans.last)[own]
        due[at] = self._is_reached(spans, own[at], accepted[at], expires[at])
        at = at[due[at]]
        attached = np.zeros(len(due), np.int64)
        attached[at] = spans.attached_until(own[at], accepted[at])
        busy = np.zeros(len(due), bool)
        # Did the client answer one delivery after the other, from the message on?
        at = at[spans.is_ever_busy[own[at]]]  # few are
        first, last = (own[at], accepted[at]), (own[at], np.minimum(until, expires)[at])
        online = spans.online(*last) - spans.online(*first)
        busy[at] = online - (spans.busy(*last) - spans.busy(*first)) < PAUSE_US
        # Of these nobody knows what else the client had asked for.
        # Messages that every subscriber gets: kept ones may be marked, old ones dropped.
        due &= ~implied | (~elsewhere & ~facts.retain[row] & (facts.expiry_s[row] < 0))
        since = spans.stuck, spans.full, spans.assumed
        stuck, full, assumed = (accepted > one[own] for one in since)
        if self._is_group:
            # Each member may be the one, and must have had the time.
            value = grouped(pair, message)
            unseen = is_gone[own] & (accepted >= spans.end[own])
            unseen |= inside & (~due | stuck | assumed)
            due &= _counted(value, unseen) == 0
        return {
            **{"pair": pair, "message": message, "until": until, "attached_until": attached},
            **{"is_due": due, "is_stuck": stuck, "is_full": full, "is_assumed": assumed},
            **{"is_busy": busy, "is_implied": implied, "is_elsewhere": elsewhere},
            "granted": spans.qos[own],
            "is_inside": inside & ~implied,
            "subscribed": ~spans.is_implied[own],
            "is_spare": (sent <= spans.begin[own]) | (sent >= spans.end[own]),
        }

    def _is_copied(self, pair, message, elsewhere):
        # Two brokers, and a bridge that publishes on one what was published on the other: each
        # message is there twice, and a subscriber gets the one of its own broker.  Clients of
        # other servers of which half and more has a twin here are not expected.
        client = self._published.client[message]
        value = alike(pair, self._published.hash[message])
        mine, route = grouped(value, client), grouped(pair, client)
        here = _counted(value, ~elsewhere) > _counted(mine, ~elsewhere)
        twins = _counted(route, elsewhere & here)
        return elsewhere & (2 * twins >= _counted(route, elsewhere))

    @staticmethod
    def _is_reached(spans, own, accepted, expires):
        # Was the client connected long enough, with nothing missing in the capture?
        until = np.minimum(spans.end, spans.last)[own]
        before = spans.online(own, accepted)
        is_away = spans.online(own, accepted + 1) == before
        # What expired counts when it could have been delivered at once.
        until = np.where(is_away, np.minimum(expires, until), until)
        reached = spans.online(own, until) - before >= GRACE_US
        # Where it left deliveries unanswered, the broker may have held it, too.
        is_held = spans.busy(own, accepted + 1) > spans.busy(own, accepted)
        return reached & ~spans.is_near_gap(own, accepted, is_away | is_held)

    def _delayed(self, spans, pairs):
        # Messages that the broker may have passed on long after they were first sent, to those
        # who subscribed meanwhile: repeated ones, those of QoS 2, and wills.
        published, row = self._published, self._published.row
        some = self._facts.is_repeated[row] | (published.qos == 2) | (row < 0)
        some = np.flatnonzero(some & (published.accepted > published.sent + _EDGE_US))
        span = spans.span
        begin = (spans.begin - _EDGE_US)[span]
        entry, message = self._join(spans.place, np.full(len(span), -1), begin + 1, some)
        keep = published.accepted[message] > begin[entry]
        entry, message = entry[keep], message[keep]
        pair, own = pairs.of_span[entry], span[entry]
        found = {"pair": pair, "message": message, "is_spare": np.ones(len(pair), bool)}
        return found | {"granted": spans.qos[own], "subscribed": ~spans.is_implied[own]}

    def _unknown(self, spans, delivered, pairs):
        # Deliveries of a subscription from before the capture, or that nobody knows of.
        begin = np.where(spans.is_implied, FAR, spans.begin - _EDGE_US)
        known = over(np.minimum, pairs.count, pairs.of_span, begin[spans.span], FAR)
        early = delivered.ts < known[delivered.pair]
        pair = np.unique(delivered.pair[early])
        seen = delivered.pair[early], delivered.ts[early]
        last = over(np.maximum, pairs.count, *seen, 0)
        begin = np.full(len(pair), -1)
        # Messages behind its beginning belong to the subscription that is known.
        end = np.minimum(last[pair] + _EDGE_US, known[pair])
        entry, message = self._join(pairs.place[pair], begin, end)
        return {"pair": pair[entry], "message": message, "granted": np.full(len(entry), 2)}

    def _merge(self, columns):
        # Several filters of one client that match are one: the broker may send one copy.
        sort = np.lexsort((columns["message"], columns["pair"]))
        each = SimpleNamespace(**{name: values[sort] for name, values in columns.items()})
        pair, message = each.pair, each.message
        first, _ = runs(pair, message)
        self.pair, self.message = pair[first], message[first]
        # Those that it is due to decide until when.
        each.is_busy |= ~each.is_due
        each.until = np.where(each.is_due, each.until, 0)
        for function, names in _MERGED.items():
            for name in names:
                setattr(self, name, _over(function, getattr(each, name), first))
        # A subscription that it only comes close to counts where it is in no other one's time.
        within = _over(np.maximum, np.where(each.is_inside, each.granted, -1), first)
        granted = np.where(within < 0, _over(np.maximum, each.granted, first), within)
        self.qos = np.minimum(self._published.qos[self.message], granted)
        # The broker may send one for each subscription, as it is when the message gets there.
        copies = _over(np.add, each.subscribed.astype(np.int64), first)
        self.more_copies = np.maximum(copies - 1, 0)
        self.is_overlapped = _over(np.add, each.is_inside.astype(np.int64), first) > 1


def _laid(inside, *others):
    # The columns of all of them behind each other.  What others do not say is not so: their
    # messages are those that a subscriber may have got, and need not.
    def laid(name, values):
        rest = (one.get(name, np.zeros(len(one["pair"]), values.dtype)) for one in others)
        return np.concatenate([values, *rest])

    return {name: laid(name, values) for name, values in inside.items()}


def _counted(group, mask):
    # For each entry, of how many of its group the mask is set.
    return np.bincount(group, mask, int(group.max(initial=-1)) + 1)[group]


def _over(function, values, first):
    # Mostly there is one filter for each message.
    return function.reduceat(values, first) if len(first) < len(values) else values
