"""All messages of some topics as numbers: who published, who got what, on which topic.

For `routes`: nothing in here judges.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import whole
from .rows import FAR, clients, dictionary, equal_ones, grouped

UNKNOWN = -1  # server of a will


class Names:
    """Sites with topics, clients and servers as numbers: of messages, and behind them those of
    subscriptions and wills."""

    def __init__(self, messages, subscriptions, wills):
        tables = messages, subscriptions, wills
        (site, self.site_asked, of_will), self.sites = _encode([one["site"] for one in tables])
        (self.topic, topic), self.topics = _encode([messages["topic"], wills["topic"]])
        both = (site, self.topic), (of_will, topic)
        self.place, self.place_of_will = (one * len(self.topics) + other for one, other in both)
        self.is_here = np.isin(self.site_asked, np.append(site, of_will))
        ids = {n: _joined([one[n] for one in tables]) for n in ("client_id", "connection")}
        who, self.clients = clients(pa.table(ids))
        who += np.concatenate((site, self.site_asked, of_will)) * len(self.clients)
        cuts = np.cumsum([len(messages), len(subscriptions)])
        self.client, self.client_asked, self.client_of_will = np.split(who, cuts)
        servers, _ = _encode([one["server"] for one in tables])
        self.server, self.server_asked, self.server_of_will = servers
        # If an alias was set in missing bytes, the topic of its messages is not known.
        self.has_topic = np.array([bool(name) for name in self.topics], bool)[self.topic]
        self.is_captured = numbers(messages, "packet_bytes") > 0

    def client_name(self, number):
        """The client id of a client's number, None where it is not known."""
        return self.clients[number % len(self.clients)]


def _joined(columns):
    # -> columns of strings, one behind the other, coded by one dictionary.
    columns = [whole(one) for one in columns]
    coded = [
        one if pa.types.is_dictionary(one.type) else one.dictionary_encode() for one in columns
    ]
    return pa.chunked_array(coded).unify_dictionaries()


def _encode(columns):
    # -> (the numbers of each column's strings; all strings, then None for null).
    codes, values = dictionary(_joined(columns))
    values = values.to_pylist()
    codes = np.where(codes < 0, len(values), codes).astype(np.int64)
    return np.split(codes, np.cumsum([len(one) for one in columns])[:-1]), [*values, None]


_FLAGS = ("retain", "is_early", "is_known", "is_sent_before", "is_refused")
_NUMBERS = (
    *("payload_hash", "payload_bytes", "packet_bytes", "first_sent", "qos", "position"),
    *("session", "times_sent", "gaps"),
)


class Facts:
    # -> columns of all messages as numpy arrays.  Null is FAR for a time, else -1.
    def __init__(self, messages):
        self.is_published = is_published(messages)
        for name in _FLAGS:
            setattr(self, name, flags(messages[name]))
        self.has_level = flags(messages["level"].is_valid())
        self.has_client = flags(messages["client_id"].is_valid())
        self.is_reading = flags(messages["sequence"].is_valid())
        for name in _NUMBERS:
            setattr(self, name, numbers(messages, name))
        # Its first PUBLISH in the capture is marked as a repetition.
        times_sent = numbers(messages, "times_sent")
        self.is_marked = numbers(messages, "times_dup") >= times_sent
        self.is_repeated = (times_sent > 1) | flags(messages["is_sent_before"])
        self.accepted = numbers(messages, "accepted", FAR)
        self.expiry_s = numbers(messages, "expiry_s", -1)


def is_published(messages):
    """For each message: was it sent to the broker?"""
    codes, values = dictionary(messages["direction"])
    return np.array([*(one == "c2s" for one in values.to_pylist()), False])[codes]


def flags(values):
    return values.to_numpy(zero_copy_only=False).astype(bool, copy=False)


def numbers(messages, name, null=0):
    values = messages[name].cast(pa.int64())
    return (pc.fill_null(values, null) if values.null_count else values).to_numpy()


def microseconds(moment):
    return FAR if moment is None else int(moment.timestamp() * 1_000_000 + 0.5)


class Published:
    """What was sent to the broker, sorted by topic and time, wills that may have been too.

    `row` is that of the message, -1 for a will; `expires`: when it may be too old (FAR: never), as
    a broker counts from when it got it first.
    """

    def __init__(self, facts, names, wills):
        # The broker passes on nothing that it refused.
        is_taken = facts.is_published & ~facts.is_refused
        row = np.flatnonzero(is_taken & (facts.qos < 3) & names.has_topic)
        sent, age_s = facts.first_sent[row], facts.expiry_s[row]
        columns = {"row": row, "sent": sent, "hash": facts.payload_hash[row]}
        columns["expires"] = np.where(age_s < 0, FAR, sent + age_s * 1_000_000)
        for name in ("place", "client", "server"):
            columns[name] = getattr(names, name)[row]
        for name in ("position", "qos", "accepted"):
            columns[name] = getattr(facts, name)[row]
        if wills.num_rows:
            count = len(wills)
            more = {name: np.full(count, FAR) for name in ("position", "accepted", "expires")}
            more |= {"row": np.full(count, -1), "server": np.full(count, UNKNOWN)}
            more |= {"place": names.place_of_will, "client": names.client_of_will}
            of_will = (("sent", "since"), ("hash", "payload_hash"), ("qos", "qos"))
            more |= {name: numbers(wills, one) for name, one in of_will}
            columns = {name: np.append(values, more[name]) for name, values in columns.items()}
        order = np.lexsort([columns[name] for name in ("position", "client", "sent", "place")])
        for name, values in columns.items():
            setattr(self, name, values[order])


class Delivered:
    """Deliveries in the order of each client's packets; `pair` is set by `Pairs`.

    Those with RETAIN come from the broker's store, unless the subscription leaves the
    flag as it was published, or the client has asked for nothing on the connection: some
    brokers leave the flag on what they had kept for the session.
    """

    def __init__(self, facts, names, spans):
        row = np.flatnonzero(~facts.is_published & (facts.qos < 3) & names.has_topic)
        retained = facts.retain[row]
        if retained.any():
            at = np.flatnonzero(retained)
            is_stored = _is_stored(names, spans, row[at], facts.first_sent[row[at]])
            row = np.delete(row, at[is_stored])
        self.row = row[np.argsort(facts.position[row], kind="stable")]
        self.hash = facts.payload_hash[self.row]
        self.ts = facts.first_sent[self.row]
        self.qos = facts.qos[self.row]
        self.session = facts.session[self.row]
        self.retain = facts.retain[self.row]
        # Their PUBLISH may have come before the capture.
        self.is_early = facts.is_early[self.row]
        self.pair = np.zeros(0, np.int64)


def _is_stored(names, spans, row, ts):
    # -> for deliveries with RETAIN: do they come from the broker's store, as the flag says?
    width = int(max(spans.place.max(initial=0), names.place[row].max(initial=0))) + 1
    keys = names.client[row] * width + names.place[row]
    theirs = spans.client[spans.span] * width + spans.place
    entry, found = equal_ones(keys, theirs)
    span = spans.span[found]
    keeps = np.bincount(entry, spans.keeps_retain[span], len(row)) > 0
    when = ts[entry]
    here = (spans.begin[span] < when) & (when <= spans.end[span]) & ~spans.is_implied[span]
    entry, span, when = entry[here], span[here], when[here]
    is_known = np.bincount(entry, minlength=len(row)) > 0
    has_asked = np.bincount(entry, spans.has_asked(span, when), len(row)) > 0
    return ~keeps & (has_asked | ~is_known)


class Pairs:
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
