"""From publisher to subscriber: lost, duplicated and overtaken messages.

Theory of operation.  Works on all messages of some topics.  For each subscriber of a
topic its deliveries are laid against the messages that they can be (`Matches`): where
every payload is published and delivered equally often, first to first, second to
second; everywhere else as two sequences, module `alignment`.  A message is lost when
the broker had taken it on while the client was subscribed and long enough connected,
and nothing of it came.  What comes a second time is a duplicate at QoS 2 alone.  Order
is judged per producer, topic, QoS and subscriber's session: MQTT-4.6.0-5, SIB-ROUTE,
SIB-NONDURABLE; never for topics that are exempt (MQTT-4.6.0-6) or shared.  How sure
each verdict is: docs/reference/fleet-verdicts.md.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import factorized, over, table
from . import findings, groups
from .alignment import EARLY_US
from .brokers import not_passed_on
from .expected import Expected
from .matches import Matches
from .rows import FAR, grouped
from .rules import BREACHES, LOSSES
from .spans import Spans
from .traffic import Delivered, Facts, Names, Pairs, Published, flags, numbers
from .verdicts import BRIDGED, Copies, Late, Lost, is_plain_known
from .wills import not_sent

# The columns of messages that `routes` reads.
COLUMNS = """
site client_id connection server direction topic qos packet_id retain payload_hash payload_bytes
packet_bytes first_sent accepted expiry_s times_sent times_dup is_refused level session position
capture offset number device boot stream sequence gaps is_early is_sent_before is_known
""".split()
_NO_WILLS = schemas.WILLS.empty_table()


def routes(messages, subscriptions, exempt=(), wills=_NO_WILLS):
    """-> {"routes", "losses", "violations", "findings", "latency"} for messages of some topics.

    `messages`, `subscriptions` and `wills` are Arrow tables of `schemas`; subscriptions
    hold the filters that can match.  `exempt` are filters of topics without order.
    """
    laid = _laid(messages, subscriptions, wills)
    names, facts, spans, published, delivered, pairs, expected, found = laid
    known = is_plain_known(facts, published, expected, delivered, found)
    copies = Copies(facts, published, expected, delivered, found, pairs, known)
    strange = np.concatenate((copies.unexplained, copies.unknown))
    again = copies.repeated[~facts.is_reading[delivered.row[copies.repeated]]]
    again = found.group[again], delivered.ts[again]
    lost = Lost(facts, published, expected, found, strange, again)
    late = Late(facts, names, published, expected, delivered, found, pairs, known, exempt)
    told = _findings(names, pairs, published, delivered, found, copies)
    of_wills = not_sent(names, facts, spans, wills).cast(schemas.FINDINGS)
    lost_rows = set(published.row[expected.message[lost.at]].tolist())
    losses = [_losses(messages, names, published, expected, pairs, lost)]
    losses += _of_groups(messages, subscriptions) + _of_bridges(messages, lost_rows)
    losses = [one.cast(losses[0].schema) for one in losses]
    return {
        "routes": _routes(names, pairs, expected, delivered, found, lost, copies, late),
        "losses": pa.concat_tables(losses).unify_dictionaries(),
        "violations": _violations(messages, delivered, copies, late),
        "latency": _latency(messages, published, expected, delivered, found),
        "findings": pa.concat_tables([told, of_wills]),
    }


def _laid(messages, subscriptions, wills, is_group=False):
    names, facts = Names(messages, subscriptions, wills), Facts(messages)
    spans = Spans(subscriptions, names)
    published, delivered = Published(facts, names, wills), Delivered(facts, names, spans)
    pairs = Pairs(names, spans, delivered)
    expected = Expected(facts, names, spans, published, delivered, pairs, is_group)
    found = Matches(expected, delivered, pairs)
    return names, facts, spans, published, delivered, pairs, expected, found


def _of_groups(messages, subscriptions):
    # -> what no member of a shared subscription got.
    both = groups.together(messages, subscriptions)
    if both is None:
        return []
    mine, asked = both
    names, facts, _, published, _, pairs, expected, found = _laid(mine, asked, _NO_WILLS, True)
    lost = Lost(facts, published, expected, found, is_group=True)
    return [_losses(mine, names, published, expected, pairs, lost)]


def _latency(messages, published, expected, delivered, found):
    # -> the time from publisher to first subscriber, of messages that are no readings: those
    # contain their times.
    hit = np.flatnonzero(found.entry >= 0)
    message = expected.message[found.entry[hit]]
    first = over(np.minimum, len(published.row), message, delivered.ts[hit], FAR)
    is_plain = flags(messages["device"].is_null())[published.row]
    at = np.flatnonzero((first < FAR) & (published.row >= 0) & is_plain)
    chosen = messages.select(["site", "client_id", "topic", "first_sent"])
    chosen = chosen.take(pa.array(published.row[at]))
    ms = np.maximum(first[at] - published.sent[at], 0) / 1000
    named = chosen.rename_columns(["site", "device", "topic", "ts"])
    return named.append_column("latency_ms", pa.array(ms))


def _of_bridges(messages, lost_rows):
    found = not_passed_on(messages, lost_rows)
    if not found:
        return []
    rows, passed = (pa.array(one, pa.int64()) for one in zip(*found, strict=True))
    chosen, bridge = messages.take(rows), messages.take(passed)
    reason = np.full(len(rows), BRIDGED)
    return [_lost(chosen, bridge["client_id"], reason, numbers(chosen, "qos"))]


def _routes(names, pairs, expected, delivered, found, lost, copies, late):
    counted = lost.at[lost.is_explained & (expected.qos[lost.at] > 0)]
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
    codes, uniques = factorized(pair * 4 + qos)
    ends = np.cumsum([len(keys[0]) for keys in parts.values()])
    counts = [np.bincount(one, minlength=len(uniques)) for one in np.split(codes, ends[:-1])]
    columns = dict(zip(parts, counts, strict=True)) | _named(names, pairs, uniques // 4)
    return table(columns | {"qos": uniques % 4}, schemas.ROUTES)


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
    who = pairs.client[expected.pair[lost.at]].tolist()
    clients = [names.client_name(one) for one in who]
    return _lost(chosen, clients, lost.reason, expected.qos[lost.at])


def _lost(chosen, clients, reason, qos):
    # -> the losses of the messages `chosen`, which these clients did not get.
    found = [_RULES[one] for one in reason.tolist()]
    device, client = (chosen[name].cast(pa.string()) for name in ("device", "client_id"))
    device = pc.if_else(pc.is_valid(chosen["sequence"]), device, client)
    columns = {
        "kind": [_KINDS[one.sure == "not_knowable"] for one in found],
        "client_id": clients,
        "published_by": pc.coalesce(device, client),
        "qos": qos,
        "ts": chosen["first_sent"],
        "first_sequence": chosen["sequence"],
        "last_sequence": chosen["sequence"],
        "messages": np.ones(len(reason), np.int64),
        "sure": [one.sure for one in found],
        "evidence": [one.why for one in found],
    }
    return table(columns, schemas.LOSSES, chosen)


_RULES, _KINDS = list(LOSSES.values()), ("not_delivered", "unexplained")


def _violations(messages, delivered, copies, late):
    # A QoS 2 message that is delivered twice, as two messages, breaks 4.3.3-10.
    chosen = messages.take(pa.array(delivered.row[np.concatenate((late.at, copies.twice))]))
    sure = [*late.is_sure.tolist(), *copies.is_sure.tolist()]
    found = [BREACHES["reading" if one else "payload"] for one in sure]
    texts = ["forwarded after a later message of its producer"] * len(late.at)
    texts += ["forwarded again as a new message"] * len(copies.twice)
    columns = {
        "requirement": ["MQTT-4.6.0-5"] * len(late.at) + ["MQTT-4.3.3-10"] * len(copies.twice),
        "by": ["broker"] * len(found),
        "ts": chosen["first_sent"],
        "detail": texts,
        "sure": [one.sure for one in found],
        "why": [one.why for one in found],
    }
    return table(columns, schemas.VIOLATIONS, chosen)


def _findings(names, pairs, published, delivered, found, copies):
    # Deliveries that may be of publishers which were not captured.
    mixed = found.is_unknown & found.has_messages[delivered.pair]
    # JSON lines of a subscriber may spell a JSON payload in another way.
    mixed = np.flatnonzero(mixed & names.is_captured[delivered.row])
    is_here = _is_published(pairs, published, delivered, mixed)
    kinds = {
        "publisher_not_captured": mixed[~is_here],
        "not_subscribed": mixed[is_here],
        "unexplained_copy": copies.unexplained,
    }
    entries = []
    for rule, at in kinds.items():
        at = at[np.lexsort((delivered.ts[at], delivered.pair[at]))]
        pair, first, size = np.unique(delivered.pair[at], return_index=True, return_counts=True)
        columns = _named(names, pairs, pair) | {"count": size.tolist()}
        times = {"first_seen": first, "last_seen": first + size - 1}
        columns |= {name: delivered.ts[at[one]].tolist() for name, one in times.items()}
        told = {"rule": rule, "detail": _SEEN[rule]}
        rows = zip(*columns.values(), strict=True)
        entries += [told | dict(zip(columns, row, strict=True)) for row in rows]
    return findings.found(entries)


def _is_published(pairs, published, delivered, at):
    # -> did a captured client publish the payload of each of these deliveries on its topic?
    if not len(at):
        return np.zeros(0, bool)
    places = np.concatenate((pairs.place[delivered.pair[at]], published.place))
    group = grouped(places, np.concatenate((delivered.hash[at], published.hash)))
    first = over(np.minimum, len(group), group[len(at) :], published.sent, FAR)
    return first[group[: len(at)]] < delivered.ts[at] + EARLY_US


_SEEN = {
    "publisher_not_captured": "order and duplicates of plain payloads are not judged here",
    "not_subscribed": "deliveries on a topic to which it had not subscribed, or not any more",
    "unexplained_copy": "QoS 2 deliveries beyond the messages captured",
}
