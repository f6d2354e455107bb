"""From publisher to subscriber: lost, duplicated and overtaken messages.

Theory of operation.  Works on all messages of some topics.  For each subscriber of
a topic the messages that it had to get (published while it was subscribed) are
joined with those it got, by payload: the first of equal payloads with the first,
the second with the second.  What is left over on the one side is lost, on the
other a duplicate if that payload was published at all.  Order is judged per
producer, topic, QoS and subscriber's session: MQTT-4.6.0-5, SIB-ROUTE,
SIB-NONDURABLE; never for topics that are exempt (MQTT-4.6.0-6) or shared.
"""

import bisect

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..mqtt import matches
from .messages import GRACE_US
from .rows import dictionary, grouped, running_max_breaks
from .sessions import table

# What `routes` reads of messages.
COLUMNS = [
    *("site", "client_id", "connection", "direction", "topic", "qos", "packet_id", "retain"),
    *("payload_hash", "first_sent", "level", "session", "position", "capture", "offset"),
    *("number", "device", "boot", "stream", "sequence"),
]


def is_wild(pattern):
    """Does the filter match more than one name (or is it shared)?"""
    return "+" in pattern or "#" in pattern or pattern.startswith("$share/")


def routes(messages, subscriptions, exempt=()):
    """-> {"routes", "losses", "violations"} for all messages of some topics.

    `messages` and `subscriptions` are Arrow tables of `schemas`; the latter hold
    the filters that can match.  `exempt` are filters of topics without order.
    """
    names = _Names(messages)
    expected = _Expected(messages, names, _Spans(subscriptions, names))
    pairs = _Pairs(messages, names, expected)
    lost = pairs.lost(expected)
    extra = pairs.duplicates()
    late = pairs.overtaking(names.exempt(exempt))
    return {
        "routes": _routes(messages, names, expected, lost, extra, late),
        "losses": _losses(messages, names, expected, lost),
        "violations": _violations(messages, extra, late),
    }


class _Names:
    # Sites with topics, and subscribers, as numbers.
    def __init__(self, messages):
        site, self.sites = _encode(messages["site"])
        self.topic, self.topics = _encode(messages["topic"])
        who, self.clients = _encode(messages["client_id"])
        self.place = site * len(self.topics) + self.topic
        self.client = site * len(self.clients) + who
        self.others = {}
        self.numbers = {name: code for code, name in enumerate(self.clients)}
        self.site_numbers = {name: code for code, name in enumerate(self.sites)}

    def client_number(self, site, name):
        """The number of a client at a site; below 0 when it got no message here."""
        if site in self.site_numbers and name in self.numbers:
            return self.site_numbers[site] * len(self.clients) + self.numbers[name]
        return self.others.setdefault((site, name), -1 - len(self.others))

    def exempt(self, filters):
        """For each topic: does one of the filters match it?"""
        return np.array([any(matches(f, n) for f in filters) for n in self.topics], bool)


def _encode(column):
    codes, values = dictionary(column)
    values = values.to_pylist()
    return np.where(codes < 0, len(values), codes).astype(np.int64), [*values, ""]


class _Spans:
    """Subscriptions that match topics here; `place` and `span` are the matching pairs."""

    def __init__(self, subscriptions, names):
        filters = subscriptions["filter"].to_pylist()
        matched = _matched(set(filters), [name for name in names.topics[:-1] if name])
        rows = np.flatnonzero([bool(matched[text]) for text in filters])
        self.rows = subscriptions.take(pa.array(rows)).to_pylist()
        codes = {name: code for code, name in enumerate(names.topics)}
        place, span = [], []
        for number, one in enumerate(self.rows):
            site = names.site_numbers.get(one["site"])
            for name in matched[one["filter"]] if site is not None else ():
                place.append(site * len(names.topics) + codes[name])
                span.append(number)
        self.place, self.span = np.array(place, np.int64), np.array(span, np.int64)
        self.begin, self.end, self.last = (self._times(n) for n in ("begin", "end", "last_seen"))
        self.qos = np.array([one["qos"] for one in self.rows], np.int64)
        who = [names.client_number(one["site"], one["client_id"]) for one in self.rows]
        self.client = np.array(who, np.int64)

    def names(self, spans):
        """The client ids of these spans."""
        return [self.rows[number]["client_id"] for number in spans.tolist()]

    def _times(self, name):
        return np.array([_us(one[name]) for one in self.rows], np.int64)


def _matched(filters, topics):
    # {filter: the topics that it matches}.  Topics that begin like a filter are
    # neighbours in order, so each filter is compared with few.
    topics = sorted(topics)
    known = set(topics)
    found = {}
    for text in filters:
        if not is_wild(text):
            found[text] = [text] if text in known else []
            continue
        if text.startswith("$share/"):
            found[text] = []
            continue
        start = text[: min((text + "+").index("+"), (text + "#").index("#"))]
        begin = bisect.bisect_left(topics, start)
        end = bisect.bisect_left(topics, start + "\U0010ffff") if start else len(topics)
        near = topics[begin:end]
        if start.endswith("/") and start[:-1] in known:
            near.append(start[:-1])  # "a/#" matches "a" too
        found[text] = [name for name in near if matches(text, name)]
    return found


class _Expected:
    """Messages that a subscriber had to get.

    `message` (row), `client`, `span` (in `_Spans`), `qos`, and `is_sure`: so long
    before the end, and so far from missing bytes, that it must have been seen.
    """

    def __init__(self, messages, names, spans):
        published = pc.equal(messages["direction"], "c2s").to_numpy(zero_copy_only=False)
        qos = _ints(messages, "qos")
        sent = _ints(messages, "first_sent")
        rows = np.flatnonzero(published & (qos < 3))
        keys = (_ints(messages, "position"), names.client, sent, names.place)
        rows = rows[np.lexsort([key[rows] for key in keys])]
        place = names.place[rows]
        low = np.searchsorted(place, spans.place, "left")
        count = np.searchsorted(place, spans.place, "right") - low
        pair = np.repeat(np.arange(len(low)), count)
        step = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
        order = low[pair] + step
        span, when = spans.span[pair], sent[rows[order]]
        inside = (when > spans.begin[span]) & (when < spans.end[span])
        order, span, when = order[inside], span[inside], when[inside]
        sure = when < np.minimum(spans.last, spans.end)[span] - GRACE_US
        # Without the level nobody knows where the payload begins.
        sure &= messages["level"].is_valid().to_numpy(zero_copy_only=False)[rows[order]]
        for number, one in enumerate(spans.rows):
            for begin, end in zip(one["gap_begins"], one["gap_ends"], strict=True):
                near = (when > _us(begin) - GRACE_US) & (when < _us(end) + GRACE_US)
                sure &= ~(near & (span == number))
        self._merge(order, span, sure, spans)
        self.message = rows[self._order]
        self.qos = np.minimum(qos[self.message], self.granted)
        self._spans = spans

    def subscribers(self, entries):
        """The client ids of these entries."""
        return self._spans.names(self.span[entries])

    def _merge(self, order, span, sure, spans):
        # Several filters of one client that match are one: the broker may send one copy.
        client = spans.client[span]
        sort = np.lexsort((client, order))
        order, client = order[sort], client[sort]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (order[1:] != order[:-1]) | (client[1:] != client[:-1])
        first = np.flatnonzero(is_new)
        self._order, self.client, self.span = order[first], client[first], span[sort][first]
        some = len(first) > 0
        self.granted = np.maximum.reduceat(spans.qos[span][sort], first) if some else first
        self.is_sure = np.logical_or.reduceat(sure[sort], first) if some else first > 0


def _us(moment):
    return int(moment.timestamp() * 1_000_000 + 0.5)


def _ints(messages, name):
    return messages[name].cast(pa.int64()).to_numpy()


class _Pairs:
    """Deliveries, each with the published message that it is (-1: none was captured)."""

    def __init__(self, messages, names, expected):
        self.messages, self.names = messages, names
        self.hash = _ints(messages, "payload_hash")
        self.position = _ints(messages, "position")
        self.qos = _ints(messages, "qos")
        delivered = pc.equal(messages["direction"], "s2c").to_numpy(zero_copy_only=False)
        retained = messages["retain"].to_numpy(zero_copy_only=False)
        row = np.flatnonzero(delivered & ~retained & (self.qos < 3))
        self.row = row[np.argsort(self.position[row], kind="stable")]
        self._join(expected)

    def _join(self, expected):
        # Both sides numbered 0, 1, 2 … among equal payloads of one subscriber and topic.
        names, row = self.names, self.row
        client = np.concatenate((names.client[row], expected.client))
        place = np.concatenate((names.place[row], names.place[expected.message]))
        payload = np.concatenate((self.hash[row], self.hash[expected.message]))
        group = grouped(client, place, payload)
        here, there = group[: len(row)], group[len(row) :]
        self.group, self.expected_group = here, there
        self.rank, rank = _rank(here), _rank(there)
        width = max(self.rank.max(initial=0), rank.max(initial=0)) + 1
        order = np.argsort(there * width + rank)
        keys = (there * width + rank)[order]
        wanted = here * width + self.rank
        found = np.searchsorted(keys, wanted)
        found = np.minimum(found, max(0, len(keys) - 1))
        is_hit = keys[found] == wanted if len(keys) else np.zeros(len(row), bool)
        self.entry = np.where(is_hit, order[found] if len(keys) else 0, -1)
        message = expected.message
        self.message = np.where(is_hit, message[self.entry], -1) if len(message) else self.entry

    def lost(self, expected):
        """Entries of `expected` that were not delivered, although they had to be."""
        got = np.zeros(len(expected.message), bool)
        got[self.entry[self.entry >= 0]] = True
        return np.flatnonzero(~got & expected.is_sure & (expected.qos > 0))

    def duplicates(self):
        """Deliveries of a payload beyond the number of times that it was published."""
        published = np.bincount(self.expected_group, minlength=int(self.group.max(initial=0)) + 1)[
            self.group
        ]
        return self.row[(published > 0) & (self.rank >= published) & (self.message < 0)]

    def overtaking(self, exempt):
        """Deliveries that come after a later message of the same producer."""
        names, messages = self.names, self.messages
        known = np.flatnonzero(self.message >= 0)
        row, message = self.row[known], self.message[known]
        keep = ~exempt[names.topic[row]] & (self.qos[row] == self.qos[message])
        row, message = row[keep], message[keep]
        session = _ints(messages, "session")[row]
        keys = (names.place[row], names.client[row], session, names.client[message])
        group = grouped(*keys, self.qos[row])
        order = np.lexsort((self.position[row], group))
        late = running_max_breaks(group[order], self.position[message][order])
        return row[order[late]]


def _rank(group):
    order = np.argsort(group, kind="stable")
    sorted_group = group[order]
    first = np.flatnonzero(np.diff(sorted_group, prepend=-1))
    size = np.diff(first, append=len(group))
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(first, size)
    return rank


def _routes(messages, names, expected, lost, extra, late):
    rows = {}
    keys = zip(
        (names.place[expected.message[lost]] // len(names.topics)).tolist(),
        expected.subscribers(lost),
        names.topic[expected.message[lost]].tolist(),
        expected.qos[lost].tolist(),
        strict=True,
    )
    for key in keys:
        rows.setdefault(key, [0, 0, 0])[0] += 1
    who = messages["client_id"].take(pa.array(np.concatenate((extra, late)))).to_pylist()
    qos = _ints(messages, "qos")
    for place, row in enumerate([*extra.tolist(), *late.tolist()]):
        site = int(names.place[row]) // len(names.topics)
        key = (site, who[place], int(names.topic[row]), int(qos[row]))
        rows.setdefault(key, [0, 0, 0])[1 if place < len(extra) else 2] += 1
    columns = {
        "site": [names.sites[key[0]] for key in rows],
        "client_id": [key[1] for key in rows],
        "topic": [names.topics[key[2]] for key in rows],
        "qos": [key[3] for key in rows],
    }
    for place, name in enumerate(("lost", "duplicates", "overtaking")):
        columns[name] = [counts[place] for counts in rows.values()]
    return table(columns, schemas.ROUTES)


def _losses(messages, names, expected, lost):
    row = expected.message[lost]
    chosen = messages.take(pa.array(row))
    columns = {
        "site": chosen["site"],
        "kind": ["not_delivered"] * len(row),
        "client_id": expected.subscribers(lost),
        "topic": chosen["topic"],
        "qos": expected.qos[lost],
        "ts": chosen["first_sent"],
        "device": chosen["device"],
        "boot": chosen["boot"],
        "stream": chosen["stream"],
        "first_sequence": chosen["sequence"],
        "last_sequence": chosen["sequence"],
        "messages": np.ones(len(row), np.int64),
    }
    return table(columns, schemas.LOSSES)


def _violations(messages, extra, late):
    # QoS 2 is delivered once: what came twice as two messages breaks 4.3.3-10.
    qos = _ints(messages, "qos")
    twice = extra[qos[extra] == 2]
    row = np.concatenate((late, twice))
    chosen = messages.take(pa.array(row))
    ids = ["MQTT-4.6.0-5"] * len(late) + ["MQTT-4.3.3-10"] * len(twice)
    texts = ["forwarded after a later message of its producer"] * len(late)
    texts += ["forwarded again as a new message"] * len(twice)
    columns = {
        "requirement": ids,
        "by": ["broker"] * len(row),
        "ts": chosen["first_sent"],
        "detail": texts,
    }
    for name in (
        "site",
        "client_id",
        "connection",
        "topic",
        "packet_id",
        "capture",
        "offset",
        "number",
    ):
        columns[name] = chosen[name]
    return table(columns, schemas.VIOLATIONS)
