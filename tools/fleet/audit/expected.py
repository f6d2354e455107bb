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

_EDGE_US = 2_000_000  # a message so close to a subscription may belong to it
# How to combine what several subscriptions of a client say of one message.
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
        # -> (entry, message) for all messages (or `some`) of these places that were sent between
        # `begin` and `end`.
        places = self._published.place if some is None else self._published.place[some]
        entry, message = equal_ones(place, places)
        message = message if some is None else some[message]
        when = self._published.sent[message]
        near = (when > begin[entry]) & (when < end[entry])
        return entry[near], message[near]

    def _inside(self, spans, pairs):
        # -> the messages during each subscription and close to it, as columns for `_merge`.
        span = spans.span
        end = np.where(spans.end < FAR - _EDGE_US, spans.end + _EDGE_US, spans.end)
        if self._is_group:
            # A member that was not seen again may have a session that still gets messages.
            is_gone = spans.end == spans.last
            end[is_gone] = FAR
        entry, message = self._join(spans.place, (spans.begin - _EDGE_US)[span], end[span])
        own, pair = span[entry], pairs.of_span[entry]
        published, facts = self._published, self._facts
        elsewhere = spans.server[own] != published.server[message]
        elsewhere &= published.server[message] != UNKNOWN
        # Usually one server sends a subscriber all messages of a topic.
        some = np.flatnonzero((np.bincount(pair, elsewhere) > 0)[pair])
        # What a bridge published here is also a copy of what it got at its other end.
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
        # Without the level it is not known where the payload begins.
        due = inside & facts.has_level[row] & (row >= 0) & ~facts.is_sent_before[row]
        # If the clock was set back meanwhile, it is not known what came first.
        due &= accepted > sent - EARLY_US
        limit = spans.packet_bytes_max[own]
        if (limit < FAR).any():
            topics = [len((name or "").encode()) for name in self._names.topics]
            topic_bytes = np.array(topics, np.int64)[pairs.place[pair] % len(topics)]
            size = facts.payload_bytes[row] + topic_bytes
            # The broker passes the properties on with the message.
            size = np.maximum(size, facts.packet_bytes[row])
            due &= size + HEADER_BYTES < limit
        # At QoS 2 a message may expire between PUBLISH and PUBREL.
        expires = published.expires[message]
        due &= accepted < expires
        at = np.flatnonzero(due)
        until = np.minimum(spans.end, spans.last)[own]
        due[at] = self._is_reached(spans, own[at], accepted[at], expires[at])
        at = at[due[at]]
        attached = np.zeros(len(due), np.int64)
        attached[at] = spans.attached_until(own[at], accepted[at])
        busy = np.zeros(len(due), bool)
        # Did the client answer deliveries all the time after the message?
        at = at[spans.is_ever_busy[own[at]]]  # few are
        first, last = (own[at], accepted[at]), (own[at], np.minimum(until, expires)[at])
        online = spans.online(*last) - spans.online(*first)
        busy[at] = online - (spans.busy(*last) - spans.busy(*first)) < PAUSE_US
        # If the subscription is only implied, its options are not known.  So expect only what each
        # subscriber gets: retained messages may be marked, and old ones dropped.
        due &= ~implied | (~elsewhere & ~facts.retain[row] & (facts.expiry_s[row] < 0))
        since = spans.stuck, spans.full, spans.assumed
        stuck, full, assumed = (accepted > one[own] for one in since)
        if self._is_group:
            # Any member may get it, so each must have been there long enough.
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
        # A bridge publishes on one broker what was published on the other.  Each message is there
        # twice, and a subscriber gets the one of its own broker.  So expect nothing of a client of
        # another server if at least half of its messages have a twin here.
        client = self._published.client[message]
        value = alike(pair, self._published.hash[message])
        mine, route = grouped(value, client), grouped(pair, client)
        here = _counted(value, ~elsewhere) > _counted(mine, ~elsewhere)
        twins = _counted(route, elsewhere & here)
        return elsewhere & (2 * twins >= _counted(route, elsewhere))

    @staticmethod
    def _is_reached(spans, own, accepted, expires):
        # Was the client connected long enough, and is nothing missing in the capture?
        until = np.minimum(spans.end, spans.last)[own]
        before = spans.online(own, accepted)
        is_away = spans.online(own, accepted + 1) == before
        # A message that expired counts if the broker could deliver it at once.
        until = np.where(is_away, np.minimum(expires, until), until)
        reached = spans.online(own, until) - before >= GRACE_US
        # While deliveries are unanswered, the broker may hold this one, too.
        is_held = spans.busy(own, accepted + 1) > spans.busy(own, accepted)
        return reached & ~spans.is_near_gap(own, accepted, is_away | is_held)

    def _delayed(self, spans, pairs):
        # Repeated messages, those of QoS 2 and wills: the broker may pass them on long after they
        # were first sent, also to clients that subscribed meanwhile.
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
        # Deliveries of a subscription from before the capture, or of an unknown one.
        begin = np.where(spans.is_implied, FAR, spans.begin - _EDGE_US)
        known = over(np.minimum, pairs.count, pairs.of_span, begin[spans.span], FAR)
        early = delivered.ts < known[delivered.pair]
        pair = np.unique(delivered.pair[early])
        seen = delivered.pair[early], delivered.ts[early]
        last = over(np.maximum, pairs.count, *seen, 0)
        begin = np.full(len(pair), -1)
        # Later messages belong to the known subscription.
        end = np.minimum(last[pair] + _EDGE_US, known[pair])
        entry, message = self._join(pairs.place[pair], begin, end)
        return {"pair": pair[entry], "message": message, "granted": np.full(len(entry), 2)}

    def _merge(self, columns):
        # Several filters of a client that match count once, as the broker may send one copy.
        sort = np.lexsort((columns["message"], columns["pair"]))
        each = SimpleNamespace(**{name: values[sort] for name, values in columns.items()})
        pair, message = each.pair, each.message
        first, _ = runs(pair, message)
        self.pair, self.message = pair[first], message[first]
        # Subscriptions for which it is due decide until when it must come.
        each.is_busy |= ~each.is_due
        each.until = np.where(each.is_due, each.until, 0)
        for function, names in _MERGED.items():
            for name in names:
                setattr(self, name, _over(function, getattr(each, name), first))
        # A subscription nearby counts only if the message is in the time of no other one.
        within = _over(np.maximum, np.where(each.is_inside, each.granted, -1), first)
        granted = np.where(within < 0, _over(np.maximum, each.granted, first), within)
        self.qos = np.minimum(self._published.qos[self.message], granted)
        # The broker may send a copy for each subscription that exists when the message arrives.
        copies = _over(np.add, each.subscribed.astype(np.int64), first)
        self.more_copies = np.maximum(copies - 1, 0)
        self.is_overlapped = _over(np.add, each.is_inside.astype(np.int64), first) > 1


def _laid(inside, *others):
    # All columns, one behind the other.  Columns that the others lack are false or 0: their
    # messages may have come, and need not.
    def laid(name, values):
        rest = (one.get(name, np.zeros(len(one["pair"]), values.dtype)) for one in others)
        return np.concatenate([values, *rest])

    return {name: laid(name, values) for name, values in inside.items()}


def _counted(group, mask):
    # -> for each entry, how many of its group have the mask set.
    return np.bincount(group, mask, int(group.max(initial=-1)) + 1)[group]


def _over(function, values, first):
    # Usually one filter matches each message.
    return function.reduceat(values, first) if len(first) < len(values) else values
