"""From publisher to subscriber: lost, duplicated and overtaken messages.

Theory of operation.  Works on all messages of some topics.  For each subscriber of a
topic its deliveries are laid against the messages that they can be (`Matches`): where
every payload is published and delivered equally often, first to first, second to
second; everywhere else as two sequences, module `alignment`.  A message is lost when
the broker had taken it on while the client was subscribed and long enough connected,
and nothing of it came.  What comes a second time is a duplicate at QoS 2 alone.  Order
is judged per producer, topic, QoS and subscriber's session: MQTT-4.6.0-5, SIB-ROUTE,
SIB-NONDURABLE; never for topics that are exempt (MQTT-4.6.0-6) or shared.  How sure
each verdict is: docs/fleet-verdicts.md.
"""

import bisect

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..mqtt import matches
from .matches import Matches
from .messages import GRACE_US
from .rows import FAR, dictionary, grouped, running_max_breaks
from .sessions import table

# What `routes` reads of messages.
COLUMNS = [
    *("site", "client_id", "connection", "direction", "topic", "qos", "packet_id", "retain"),
    *("payload_hash", "payload_bytes", "first_sent", "accepted", "expiry_s"),
    *("times_sent", "times_dup"),
    *("level", "session", "position", "capture", "offset"),
    *("number", "device", "boot", "stream", "sequence"),
]
_EDGE_US = 2_000_000  # around a subscription: what may belong to it, and need not
# A plain payload that is published again and again tells little about a single delivery.
_DISTINCT_BYTES = 8
_HEADER_BYTES = 16  # of a PUBLISH at most, beside topic and properties


def is_wild(pattern):
    """Does the filter match more than one name (or is it shared)?"""
    return "+" in pattern or "#" in pattern or pattern.startswith("$share/")


def routes(messages, subscriptions, exempt=(), wills=None):
    """-> {"routes", "losses", "violations", "findings"} for all messages of some topics.

    `messages`, `subscriptions` and `wills` are Arrow tables of `schemas`; subscriptions
    hold the filters that can match.  `exempt` are filters of topics without order.
    """
    names = _Names(messages)
    facts = _Facts(messages)
    spans = _Spans(subscriptions, names)
    published = _Published(facts, names, wills)
    delivered = _Delivered(facts, names, spans)
    pairs = _Pairs(names, spans, delivered)
    expected = _Expected(facts, names, spans, published, delivered, pairs)
    found = Matches(expected, delivered, pairs.count)
    lost = _Lost(published, expected, found)
    copies = _Copies(facts, published, expected, delivered, found, pairs)
    late = _Late(facts, names, published, expected, delivered, found, pairs, exempt)
    return {
        "routes": _routes(names, pairs, expected, delivered, found, lost, copies, late),
        "losses": _losses(messages, names, published, expected, pairs, lost),
        "violations": _violations(messages, delivered, copies, late),
        "findings": _findings(names, pairs, delivered, found, copies),
    }


class _Names:
    # Sites with topics, and subscribers, as numbers.
    def __init__(self, messages):
        site, self.sites = _encode(messages["site"])
        self.topic, self.topics = _encode(messages["topic"])
        who, self.clients = _encode(messages["client_id"])
        self.place = site * len(self.topics) + self.topic
        self.client = site * len(self.clients) + who
        self._others = {}
        self._other_names = []
        self.numbers = {name: code for code, name in enumerate(self.clients)}
        self.site_numbers = {name: code for code, name in enumerate(self.sites)}
        self.topic_numbers = {name: code for code, name in enumerate(self.topics)}

    def client_number(self, site, name):
        """The number of a client at a site; below 0 when it has no message here."""
        if site in self.site_numbers and name in self.numbers:
            return self.site_numbers[site] * len(self.clients) + self.numbers[name]
        if (site, name) not in self._others:
            self._others[site, name] = -1 - len(self._others)
            self._other_names.append(name)
        return self._others[site, name]

    def place_number(self, site, topic):
        """The number of a topic at a site, -1 when there is no message of it."""
        if site not in self.site_numbers or topic not in self.topic_numbers:
            return -1
        return self.site_numbers[site] * len(self.topics) + self.topic_numbers[topic]

    def client_name(self, number):
        """The client id of a client's number, None for a client that is not known."""
        if number < 0:
            return self._other_names[-1 - number]
        return self.clients[number % len(self.clients)] if number >= 0 else None

    def topic_bytes(self, places):
        """The length of the topics of these places."""
        sizes = np.array([len((name or "").encode()) for name in self.topics], np.int64)
        return sizes[places % len(self.topics)]

    def exempt(self, filters):
        """For each topic: does one of the filters match it?"""
        return np.array([any(matches(f, n or "") for f in filters) for n in self.topics], bool)


def _encode(column):
    codes, values = dictionary(column)
    values = values.to_pylist()
    return np.where(codes < 0, len(values), codes).astype(np.int64), [*values, None]


class _Facts:
    # Columns of all messages as numpy arrays; FAR where a time is null, -1 elsewhere.
    def __init__(self, messages):
        self.is_published = _true(pc.equal(messages["direction"], "c2s"))
        self.retain = _true(messages["retain"])
        self.has_level = _true(messages["level"].is_valid())
        self.is_reading = _true(messages["sequence"].is_valid())
        for name in ("payload_hash", "payload_bytes", "first_sent", "qos", "position"):
            setattr(self, name, _ints(messages, name))
        self.session, self.times_sent = _ints(messages, "session"), _ints(messages, "times_sent")
        # Marked as a repetition from its first PUBLISH on.
        self.is_marked = _ints(messages, "times_dup") >= self.times_sent
        self.accepted = _ints(messages, "accepted", FAR)
        self.expiry_s = _ints(messages, "expiry_s", -1)
        self.messages = messages


def _true(values):
    return values.to_numpy(zero_copy_only=False).astype(bool)


def _ints(messages, name, null=0):
    values = messages[name].cast(pa.int64())
    return (pc.fill_null(values, null) if values.null_count else values).to_numpy()


class _Spans:
    """Subscriptions that match topics here; `place` and `span` are the matching pairs."""

    def __init__(self, subscriptions, names):
        filters = subscriptions["filter"].to_pylist()
        topics = [name for name in names.topics[:-1] if name]
        matched = _matched(set(filters), topics)
        rows = np.flatnonzero([bool(matched[text]) for text in filters])
        chosen = subscriptions.take(pa.array(rows))
        filters = [filters[row] for row in rows.tolist()]
        sites = [names.site_numbers.get(one) for one in chosen["site"].to_pylist()]
        place, span = [], []
        for number, (text, site) in enumerate(zip(filters, sites, strict=True)):
            for name in matched[text] if site is not None else ():
                place.append(site * len(names.topics) + names.topic_numbers[name])
                span.append(number)
        self.place, self.span = np.array(place, np.int64), np.array(span, np.int64)
        self.begin, self.end = _ints(chosen, "begin"), _ints(chosen, "end")
        self.last, self.qos = _ints(chosen, "last_seen"), _ints(chosen, "qos")
        self.stuck = _ints(chosen, "stuck_since", FAR)
        self.packet_bytes_max = _ints(chosen, "packet_bytes_max", FAR)
        self.is_shared = np.array([text.startswith("$share/") for text in filters], bool)
        self.is_own_excluded = _true(chosen["no_local"])
        self.keeps_retain = _true(chosen["as_published"])
        clients = chosen["client_id"].to_pylist()
        who = map(names.client_number, chosen["site"].to_pylist(), clients)
        self.client = np.array(list(who), np.int64)
        self._online = _lists(chosen, "online_begins"), _lists(chosen, "online_ends")
        self._gaps = _lists(chosen, "gap_begins"), _lists(chosen, "gap_ends")

    def online(self, span, times):
        """How long (µs) the client had been connected before each time, in this session."""
        return self._sums(self._online, span, lambda b, e, t: np.clip(t, b, e) - b, times)

    def is_near_gap(self, span, times):
        """Which times lie close to bytes of the client that are missing."""

        def near(begin, end, times):
            return (times > begin - GRACE_US) & (times < end + GRACE_US)

        return self._sums(self._gaps, span, near, times) > 0

    @staticmethod
    def _sums(lists, span, function, times):
        # Sums of function(begin, end, time) over the list of each span: one step for the
        # first entries of all, one for the second ones, and so on.
        (begins, first), (ends, _) = lists
        total = np.zeros(len(span), np.int64)
        if not len(begins):
            return total
        count = np.diff(first)[span]
        at = np.flatnonzero(count > 0)
        step = 0
        while len(at):
            place = first[span[at]] + step
            total[at] += function(begins[place], ends[place], times[at])
            step += 1
            at = at[count[at] > step]
        return total


def _lists(table, name):
    # A column of lists of times -> (all of them in a row, where each list begins).
    column = table[name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = (
            pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        )
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    values = column.flatten().cast(pa.int64()).to_numpy()
    return values, np.concatenate(([0], np.cumsum(sizes)))


def _us(moment):
    return FAR if moment is None else int(moment.timestamp() * 1_000_000 + 0.5)


def _matched(filters, topics):
    # {filter: the topics that it matches}.  Topics that begin like a filter are
    # neighbours in order, so each filter is compared with few.
    topics = sorted(topics)
    known = set(topics)
    found = {}
    for text in filters:
        pattern = text.split("/", 2)[-1] if text.startswith("$share/") else text
        if not is_wild(pattern):
            found[text] = [pattern] if pattern in known else []
            continue
        start = pattern[: min((pattern + "+").index("+"), (pattern + "#").index("#"))]
        begin = bisect.bisect_left(topics, start)
        end = bisect.bisect_left(topics, start + "\U0010ffff") if start else len(topics)
        near = topics[begin:end]
        if start.endswith("/") and start[:-1] in known:
            near.append(start[:-1])  # "a/#" matches "a" too
        found[text] = [name for name in near if matches(pattern, name)]
    return found


class _Published:
    """What was sent to the broker, sorted by topic and time, wills that may have been too.

    `row` is that of the message, -1 for a will.
    """

    def __init__(self, facts, names, wills):
        row = np.flatnonzero(facts.is_published & (facts.qos < 3))
        columns = {
            "row": row,
            "place": names.place[row],
            "client": names.client[row],
            "sent": facts.first_sent[row],
            "position": facts.position[row],
            "hash": facts.payload_hash[row],
            "qos": facts.qos[row],
            "accepted": facts.accepted[row],
        }
        if wills is not None and wills.num_rows:
            columns = _with_wills(columns, names, wills)
        order = np.lexsort([columns[name] for name in ("position", "client", "sent", "place")])
        for name, values in columns.items():
            setattr(self, name, values[order])


def _with_wills(columns, names, wills):
    more: dict[str, list] = {name: [] for name in columns}
    for one in wills.to_pylist():
        place = names.place_number(one["site"], one["topic"])
        if place < 0:
            continue
        values = {
            "row": -1,
            "place": place,
            "client": names.client_number(one["site"], one["client_id"]),
            "sent": _us(one["since"]),
            "position": FAR,
            "hash": one["payload_hash"],
            "qos": one["qos"],
            "accepted": FAR,
        }
        for name, value in values.items():
            more[name].append(value)
    return {
        name: np.concatenate((values, np.array(more[name], np.int64)))
        for name, values in columns.items()
    }


class _Delivered:
    """Deliveries in the order of each client's packets; `pair` is set by `_Pairs`.

    Those with RETAIN come from the broker's store, unless the subscription leaves the
    flag as it was published.
    """

    def __init__(self, facts, names, spans):
        row = np.flatnonzero(~facts.is_published & (facts.qos < 3))
        retained = facts.retain[row]
        if retained.any():
            kept = spans.keeps_retain[spans.span]
            keeps = set(zip(spans.client[spans.span][kept], spans.place[kept], strict=True))
            drop = [
                (int(names.client[one]), int(names.place[one])) not in keeps
                for one in row[retained].tolist()
            ]
            row = np.delete(row, np.flatnonzero(retained)[np.array(drop, bool)])
        self.row = row[np.argsort(facts.position[row], kind="stable")]
        self.hash = facts.payload_hash[self.row]
        self.ts = facts.first_sent[self.row]
        self.qos = facts.qos[self.row]
        self.session = facts.session[self.row]
        self.retain = facts.retain[self.row]
        self.pair = np.zeros(0, np.int64)


class _Pairs:
    """A client and a topic of one site: what subscriptions and deliveries are about."""

    def __init__(self, names, spans, delivered):
        client = np.concatenate((spans.client[spans.span], names.client[delivered.row]))
        place = np.concatenate((spans.place, names.place[delivered.row]))
        pair = grouped(client, place)
        self.count = int(pair.max(initial=-1)) + 1
        self.of_span, delivered.pair = pair[: len(spans.span)], pair[len(spans.span) :]
        self.client, self.place = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self.client[pair], self.place[pair] = client, place
        shared = spans.is_shared[spans.span]
        self.is_shared = np.bincount(self.of_span[shared], minlength=self.count) > 0


class _Expected:
    """Messages that a subscriber had to get, and others that it may have got.

    `message` (in `_Published`), `pair`, `hash`, `ts`, sorted by pair and message;
    `is_due`: it had to be delivered; `qos` as it could be expected; `more_copies` that may
    come of it.  `is_stuck`: the client had left earlier ones unacknowledged.
    """

    def __init__(self, facts, names, spans, published, delivered, pairs):
        self._published, self._facts, self._names = published, facts, names
        inside = self._inside(spans, pairs)
        unknown = self._unknown(spans, delivered, pairs)
        columns = [np.concatenate(both) for both in zip(inside, unknown, strict=True)]
        self._merge(*columns)
        self.hash = published.hash[self.message]
        self.ts = published.sent[self.message]
        self.qos = np.minimum(published.qos[self.message], self.granted)

    def _join(self, place, begin, end):
        # -> (entry, message) for all messages of these places, sent between the two.
        low = np.searchsorted(self._published.place, place, "left")
        count = np.searchsorted(self._published.place, place, "right") - low
        entry = np.repeat(np.arange(len(low)), count)
        step = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        message = low[entry] + step
        when = self._published.sent[message]
        near = (when > begin[entry]) & (when < end[entry])
        return entry[near], message[near]

    def _inside(self, spans, pairs):
        # Of each subscription the messages in its time and close to it.
        span = spans.span
        end = np.where(spans.end < FAR - _EDGE_US, spans.end + _EDGE_US, spans.end)
        entry, message = self._join(spans.place, (spans.begin - _EDGE_US)[span], end[span])
        own, pair = span[entry], pairs.of_span[entry]
        published, facts = self._published, self._facts
        keep = ~(spans.is_own_excluded[own] & (published.client[message] == spans.client[own]))
        own, pair, message = own[keep], pair[keep], message[keep]
        row = published.row[message]
        sent, accepted = published.sent[message], published.accepted[message]
        inside = (sent > spans.begin[own]) & (accepted < spans.end[own]) & (accepted < FAR)
        inside &= ~spans.is_shared[own]
        # Without the level nobody knows where the payload begins.
        due = inside & facts.has_level[row] & (row >= 0)
        limit = spans.packet_bytes_max[own]
        if (limit < FAR).any():
            size = facts.payload_bytes[row] + self._names.topic_bytes(pairs.place[pair])
            due &= size + _HEADER_BYTES < limit
        at = np.flatnonzero(due)
        due[at] = self._is_reached(spans, own[at], accepted[at], facts.expiry_s[row[at]])
        stuck = accepted > spans.stuck[own]
        return pair, message, spans.qos[own], inside, due, stuck

    @staticmethod
    def _is_reached(spans, own, accepted, expiry_s):
        # Was the client connected long enough, with nothing missing in the capture?
        until = np.minimum(spans.end, spans.last)[own]
        before = spans.online(own, accepted)
        expires = expiry_s >= 0
        if expires.any():
            # What expired counts when it could have been delivered at once.
            expires &= spans.online(own, accepted + 1) == before
            gone = accepted + expiry_s * 1_000_000
            until = np.where(expires, np.minimum(gone, until), until)
        reached = spans.online(own, until) - before >= GRACE_US
        return reached & ~spans.is_near_gap(own, accepted)

    def _unknown(self, spans, delivered, pairs):
        # Deliveries of a subscription from before the capture, or that nobody knows of.
        known = np.full(pairs.count, FAR)
        np.minimum.at(known, pairs.of_span, spans.begin[spans.span] - _EDGE_US)
        early = delivered.ts < known[delivered.pair]
        pair = np.unique(delivered.pair[early])
        last = np.zeros(pairs.count, np.int64)
        np.maximum.at(last, delivered.pair[early], delivered.ts[early])
        begin = np.full(len(pair), -1)
        # Messages behind its beginning belong to the subscription that is known.
        end = np.minimum(last[pair] + _EDGE_US, known[pair])
        entry, message = self._join(pairs.place[pair], begin, end)
        nothing = np.zeros(len(entry), bool)
        granted = np.full(len(entry), 2)
        return pair[entry], message, granted, nothing, nothing, nothing

    def _merge(self, pair, message, granted, inside, due, stuck):
        # Several filters of one client that match are one: the broker may send one copy.
        sort = np.lexsort((message, pair))
        pair, message = pair[sort], message[sort]
        is_new = np.ones(len(pair), bool)
        is_new[1:] = (pair[1:] != pair[:-1]) | (message[1:] != message[:-1])
        first = np.flatnonzero(is_new)
        self.pair, self.message = pair[first], message[first]
        self.granted = _over(np.maximum, granted[sort], first)
        self.is_inside = _over(np.logical_or, inside[sort], first)
        self.is_due = _over(np.logical_or, due[sort], first)
        self.is_stuck = _over(np.logical_and, stuck[sort], first)
        # The broker may send one for each subscription.
        self.more_copies = np.maximum(_over(np.add, inside[sort].astype(np.int64), first) - 1, 0)


class _Lost:
    """Entries of `expected` that were not delivered although they were due: `at`, and how
    sure that is."""

    def __init__(self, published, expected, found):
        missing = ~found.is_got & expected.is_due & (expected.qos > 0)
        self.at = np.flatnonzero(missing)
        producer = published.client[expected.message]
        route = grouped(expected.pair, producer)
        some, _, _ = _around(route, found.is_got, self.at)
        _, before, behind = _around(grouped(route, expected.qos), found.is_got, self.at)
        any_producer, _, _ = _around(expected.pair, found.is_got, self.at)
        stuck = expected.is_stuck[self.at] & ~behind
        self.reason = np.select(
            [before & behind, stuck, some, any_producer], [_BETWEEN, _STUCK, _SOME, _OTHERS], _NONE
        )
        self.is_explained = self.reason < _STUCK


def _around(group, mask, at):
    # For the entries `at`: is the mask set anywhere in their group, before, behind them?
    if not len(at):
        return (np.zeros(0, bool),) * 3
    order = np.argsort(group, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    count = np.cumsum(mask[order])
    sizes = np.bincount(group)
    last = np.cumsum(sizes) - 1
    total = count[last]
    floor = np.concatenate(([0], total[:-1]))
    mine = group[at]
    so_far = count[place[at]] - floor[mine]
    all_of = (total - floor)[mine]
    return all_of > 0, so_far > 0, all_of > so_far


_BETWEEN, _SOME, _STUCK, _OTHERS, _NONE = range(5)
_LOST = (
    ("proved", "messages of the same client before and behind it were delivered here"),
    ("likely", "other messages of the same client on this topic were delivered here"),
    ("not_knowable", "the subscriber had left earlier messages unacknowledged"),
    ("not_knowable", "nothing of this client reached the subscriber here: it may not be allowed"),
    ("not_knowable", "nothing of this topic reached the subscriber: it may not be allowed"),
)


class _Copies:
    """Deliveries (places in `delivered`) of what had been delivered before.

    `twice` at QoS 2 where that must not be, `is_sure` of them; `repeated` at a lower QoS;
    `unexplained` at QoS 2 and `unknown` below it, where other publishers may have sent
    the same.
    """

    def __init__(self, facts, published, expected, delivered, found, pairs):
        extra = np.flatnonzero(found.is_extra)
        pair, row = delivered.pair[extra], delivered.row[extra]
        group = found.group[extra]
        count = len(found.equal)
        room = np.bincount(found.groups, expected.more_copies, count)
        extras = np.bincount(group, minlength=count)
        allowed = (extras <= room)[group] | pairs.is_shared[pair]
        extra, pair, row, group = (values[~allowed] for values in (extra, pair, row, group))
        at_two = (delivered.qos[extra] == 2) & ~facts.is_marked[row]
        alone = found.equal[group] == 1
        distinct = alone & (facts.payload_bytes[row] >= _DISTINCT_BYTES)
        distinct &= ~found.has_unknown[pair]
        reading = facts.is_reading[row]
        # A repetition is known by what it says, or by its publisher, who repeated it.
        sent = published.row[expected.message]
        again = np.zeros(len(found.equal), bool)
        again[found.groups[(sent >= 0) & (facts.times_sent[sent] > 1)]] = True
        is_repeated = reading | again[group] | facts.is_marked[row]
        self.repeated = extra[~at_two & is_repeated]
        self.unknown = extra[~at_two & ~is_repeated]
        self.twice = extra[at_two & (reading | distinct)]
        self.is_sure = facts.is_reading[delivered.row[self.twice]]
        self.unexplained = extra[at_two & ~reading & ~distinct]


class _Late:
    """Deliveries (places in `delivered`) behind a later message of the same producer."""

    def __init__(self, facts, names, published, expected, delivered, found, pairs, exempt):
        at = np.flatnonzero(found.entry >= 0)
        entry = found.entry[at]
        message = expected.message[entry]
        sent, row = published.row[message], delivered.row[at]
        keep = (sent >= 0) & (delivered.qos[at] == published.qos[message])
        keep &= ~pairs.is_shared[delivered.pair[at]] & ~facts.is_marked[row]
        # When the broker got what was sent twice is not known.
        keep &= facts.times_sent[sent] == 1
        if exempt:
            keep &= ~names.exempt(exempt)[names.topic[row]]
        at, entry, message, sent = at[keep], entry[keep], message[keep], sent[keep]
        keys = (delivered.pair[at], delivered.session[at], published.client[message])
        group = grouped(*keys, delivered.qos[at])
        order = np.lexsort((facts.position[delivered.row[at]], group))
        late = order[running_max_breaks(group[order], facts.position[sent][order])]
        self._judge(facts, expected, delivered, found, at[late], entry[late])

    def _judge(self, facts, expected, delivered, found, at, entry):
        # Only a payload of its own says which message it is, unless all came soon.
        reading = facts.is_reading[delivered.row[at]]
        pair, group = delivered.pair[at], found.group[at]
        soon = delivered.ts[at] - expected.ts[entry] < GRACE_US
        complete = ~found.has_extra[pair] & ~found.has_missing[pair] & soon
        judged = reading | (~found.has_unknown[pair] & ((found.equal[group] == 1) | complete))
        self.at, self.is_sure = at[judged], reading[judged]


def _over(function, values, first):
    return function.reduceat(values, first) if len(first) else values[:0]


def _routes(names, pairs, expected, delivered, found, lost, copies, late):
    counted = lost.at[lost.is_explained]
    unmatched = (np.flatnonzero(found.is_unknown), copies.unexplained, copies.unknown)
    parts = {
        "lost": (expected.pair[counted], expected.qos[counted]),
        "duplicates": _keys(delivered, copies.twice),
        "repeated": _keys(delivered, copies.repeated),
        "unmatched": _keys(delivered, np.concatenate(unmatched)),
        "overtaking": _keys(delivered, late.at),
    }
    pair = np.concatenate([keys[0] for keys in parts.values()])
    qos = np.concatenate([keys[1] for keys in parts.values()])
    codes, uniques = pd.factorize(pair * 4 + qos)
    columns, start = {}, 0
    for name, keys in parts.items():
        mine = codes[start : start + len(keys[0])]
        columns[name] = np.bincount(mine, minlength=len(uniques))
        start += len(keys[0])
    columns.update(_named(names, pairs, uniques // 4))
    columns["qos"] = uniques % 4
    return table(columns, schemas.ROUTES)


def _keys(delivered, at):
    return delivered.pair[at], delivered.qos[at]


def _named(names, pairs, pair):
    place = pairs.place[pair].tolist()
    return {
        "site": [names.sites[one // len(names.topics)] for one in place],
        "client_id": [names.client_name(one) for one in pairs.client[pair].tolist()],
        "topic": [names.topics[one % len(names.topics)] for one in place],
    }


def _losses(messages, names, published, expected, pairs, lost):
    chosen = messages.take(pa.array(published.row[expected.message[lost.at]]))
    kinds = np.where(lost.is_explained, "not_delivered", "unexplained")
    columns = {
        "kind": kinds.tolist(),
        "qos": expected.qos[lost.at],
        "ts": chosen["first_sent"],
        "first_sequence": chosen["sequence"],
        "last_sequence": chosen["sequence"],
        "messages": np.ones(len(lost.at), np.int64),
        "sure": [_LOST[one][0] for one in lost.reason.tolist()],
        "why": [_LOST[one][1] for one in lost.reason.tolist()],
    }
    for name in ("site", "topic", "device", "boot", "stream"):
        columns[name] = chosen[name]
    who = pairs.client[expected.pair[lost.at]].tolist()
    columns["client_id"] = [names.client_name(one) for one in who]
    return table(columns, schemas.LOSSES)


_READING = "a reading says by itself which message it is"
_PAYLOAD = "the messages are told apart by their payloads alone"


def _violations(messages, delivered, copies, late):
    # QoS 2 is delivered once: what came twice as two messages breaks 4.3.3-10.
    row = delivered.row[np.concatenate((late.at, copies.twice))]
    sure = np.concatenate((late.is_sure, copies.is_sure))
    chosen = messages.take(pa.array(row))
    ids = ["MQTT-4.6.0-5"] * len(late.at) + ["MQTT-4.3.3-10"] * len(copies.twice)
    texts = ["forwarded after a later message of its producer"] * len(late.at)
    texts += ["forwarded again as a new message"] * len(copies.twice)
    columns = {
        "requirement": ids,
        "by": ["broker"] * len(row),
        "ts": chosen["first_sent"],
        "detail": texts,
        "sure": np.where(sure, "proved", "likely").tolist(),
        "why": np.where(sure, _READING, _PAYLOAD).tolist(),
    }
    for name in ("site", "client_id", "connection", "topic", "packet_id"):
        columns[name] = chosen[name]
    for name in ("capture", "offset", "number"):
        columns[name] = chosen[name]
    return table(columns, schemas.VIOLATIONS)


def _findings(names, pairs, delivered, found, copies):
    # Where other publishers than those in the capture have a say.
    mixed = found.is_unknown & found.has_messages[delivered.pair]
    kinds = (
        ("publisher_not_captured", "capture", np.flatnonzero(mixed), "proved", _FOREIGN),
        ("unexplained_copy", "broker", copies.unexplained, "not_knowable", _SAME),
    )
    columns: dict = {name: [] for name in schemas.FINDINGS.names}
    for finding, about, at, sure, (why, detail) in kinds:
        pair, first = np.unique(delivered.pair[at], return_index=True)
        named = _named(names, pairs, pair)
        times = pd.Series(delivered.ts[at]).groupby(delivered.pair[at]).agg(["min", "max", "size"])
        values = {
            "finding": [finding] * len(pair),
            "about": [about] * len(pair),
            "connection": [None] * len(pair),
            "first_seen": times["min"].tolist(),
            "last_seen": times["max"].tolist(),
            "count": times["size"].tolist(),
            "sure": [sure] * len(pair),
            "why": [why] * len(pair),
            "detail": [detail] * len(pair),
            **named,
        }
        for name, more in values.items():
            columns[name] += more
    for name in ("first_seen", "last_seen"):
        columns[name] = np.array(columns[name], np.int64)
    return table(columns, schemas.FINDINGS)


_FOREIGN = (
    "deliveries have payloads that nobody in the capture published",
    "order and duplicates of plain payloads are not judged here",
)
_SAME = (
    "the same plain payload may have been published by a client that was not captured",
    "QoS 2 deliveries beyond the messages captured",
)
