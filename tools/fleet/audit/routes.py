"""From publisher to subscriber: lost, duplicated and overtaken messages.

Theory of operation.  Works on all messages of some topics.  For each subscriber of
a topic the messages that it had to get (published while it was subscribed) are
joined with those it got, by payload: the first of equal payloads with the first,
the second with the second.  What is left over on the one side is lost, on the
other a duplicate if that payload was published at all.  Order is judged per
producer, topic, QoS and subscriber's session: MQTT-4.6.0-5, SIB-ROUTE,
SIB-NONDURABLE; never for topics that are exempt (MQTT-4.6.0-6) or shared.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..mqtt import matches
from .readings import decode
from .rows import dictionary, grouped, running_max_breaks
from .sessions import table

# A message may be under way when the capture ends; what is published later than this
# before the subscriber's last packet is not judged.
GRACE_US = 5_000_000


def is_wild(pattern):
    """Does the filter match more than one name (or is it shared)?"""
    return "+" in pattern or "#" in pattern or pattern.startswith("$share/")


def routes(messages, subscriptions, exempt=()):
    """-> {"routes", "losses", "violations"} for all messages of some topics.

    `messages` and `subscriptions` are Arrow tables of `schemas`; the latter hold
    the filters that can match.  `exempt` are filters of topics without order.
    """
    names = _Names(messages)
    expected = _Expected(messages, names, _by_topic(subscriptions, names))
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
        self.client = site * max(1, len(self.clients)) + who
        self.numbers = {name: code for code, name in enumerate(self.clients)}
        self.site_numbers = {name: code for code, name in enumerate(self.sites)}

    def client_number(self, site, name):
        """The number of a client at a site; -1 when it got no message here."""
        if site not in self.site_numbers or name not in self.numbers:
            return -1
        return self.site_numbers[site] * max(1, len(self.clients)) + self.numbers[name]

    def exempt(self, filters):
        """For each topic: does one of the filters match it?"""
        return np.array([any(matches(f, n) for f in filters) for n in self.topics], bool)


def _encode(column):
    codes, values = dictionary(column)
    values = values.to_pylist()
    return np.where(codes < 0, len(values), codes).astype(np.int64), [*values, ""]


def _by_topic(subscriptions, names):
    # {(site number, topic number): [subscription, …]}, shared ones left out.
    found = {}
    exact = {name: code for code, name in enumerate(names.topics)}
    for one in subscriptions.to_pylist():
        pattern = one["filter"]
        site = names.site_numbers.get(one["site"])
        if site is None or pattern.startswith("$share/"):
            continue
        if is_wild(pattern):
            codes = [code for code, name in enumerate(names.topics) if matches(pattern, name)]
        else:
            codes = [exact[pattern]] if pattern in exact else []
        for code in codes:
            found.setdefault(site * len(names.topics) + code, []).append(one)
    return found


class _Expected:
    """Messages that a subscriber had to get: `message` (row), `client`, `qos`, `is_sure`."""

    def __init__(self, messages, names, by_topic):
        self.subscribed = by_topic
        published = pc.equal(messages["direction"], "c2s").to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(published & (messages["qos"].to_numpy() < 3))
        sent = _ints(messages, "first_sent")
        keys = (_ints(messages, "position"), names.client, sent, names.place)
        rows = rows[np.lexsort([key[rows] for key in keys])]
        qos = _ints(messages, "qos")
        place = names.place[rows]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        parts = []
        for begin, end in zip(first, [*first[1:], len(rows)], strict=False):
            mine = rows[begin:end]
            for subscriber in _merged(by_topic.get(int(place[begin]), ())):
                number = names.client_number(subscriber["site"], subscriber["client_id"])
                parts.append(_expect(subscriber, number, mine, sent[mine], qos[mine]))
        columns = zip(*parts, strict=True) if parts else [[np.empty(0, np.int64)]] * 5
        self.message, client, self.qos, sure, who = (np.concatenate(c) for c in columns)
        self.client, self.is_sure = client.astype(np.int64), sure.astype(bool)
        self.who = who


def _merged(subscriptions):
    # Several filters of one client that match are one: the broker may send one copy.
    merged = {}
    for one in subscriptions:
        key = (one["site"], one["client_id"])
        entry = merged.setdefault(
            key, {"site": one["site"], "client_id": one["client_id"], "spans": []}
        )
        entry["spans"].append(one)
    return merged.values()


def _expect(subscriber, number, rows, sent, qos):
    granted = np.full(len(rows), -1)
    sure = np.zeros(len(rows), bool)
    for span in subscriber["spans"]:
        begin, end, last = (_us(span[name]) for name in ("begin", "end", "last_seen"))
        inside = (sent > begin) & (sent < end)
        granted = np.where(inside, np.maximum(granted, span["qos"]), granted)
        known = inside & (sent < min(last, end) - GRACE_US)
        for first, behind in zip(span["gap_begins"], span["gap_ends"], strict=True):
            known &= ~((sent > _us(first) - GRACE_US) & (sent < _us(behind) + GRACE_US))
        sure |= known
    keep = granted >= 0
    size = int(keep.sum())
    who = np.full(size, subscriber["client_id"], object)
    return (
        rows[keep],
        np.full(size, number),
        np.minimum(qos[keep], granted[keep]),
        sure[keep],
        who,
    )


def _us(moment):
    return int(moment.timestamp() * 1_000_000 + 0.5) if hasattr(moment, "timestamp") else moment


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
        expected.who[lost].tolist(),
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
    reading = decode(chosen["envelope"])
    columns = {
        "site": chosen["site"],
        "kind": ["not_delivered"] * len(row),
        "client_id": expected.who[lost].tolist(),
        "topic": chosen["topic"],
        "qos": expected.qos[lost],
        "ts": chosen["first_sent"],
        "device": reading["device"],
        "boot": reading["boot"],
        "stream": reading["stream"],
        "first_sequence": reading["sequence"],
        "last_sequence": reading["sequence"],
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
