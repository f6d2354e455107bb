"""Clients of several brokers: told apart by broker, and what a bridge between two loses."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import by_value, over, runs, whole
from .alignment import EARLY_US
from .rows import FAR, clients, dictionary, servers
from .traffic import is_published, numbers

_BOTH_US = 2_000_000  # the longest take-over
_PASSED_US = 60_000_000  # a bridge passes messages on within this time
_LEAST, _PART = 5, 0.8  # a route has so many messages, and the bridge passes on this part of them


def told_apart(rows, table):
    """The events in which a client id that is connected to two brokers at once has the name
    of its broker behind it: one broker would have ended the older connection."""
    count = len(rows.client_of)
    server, names = servers(rows.strings("connection", rows.first_of[:count]))
    if len(names) < 2:
        return table
    back = np.flatnonzero(rows.direction == 1)
    heard = over(np.maximum, count, rows.connection[back], rows.ts[back], -FAR)
    split = set()
    for one in np.flatnonzero(np.diff(rows.client_of) == 0).tolist():
        first = np.searchsorted(rows.client_of, rows.client_of[one])
        here = np.arange(first, one + 1)
        is_both = (heard[here] > rows.start_of[one + 1] + _BOTH_US) & (heard[one + 1] > -FAR)
        if (is_both & (server[here] != server[one + 1])).any():
            split.add(int(rows.client_of[one]))
    if not split:
        return table
    chosen = np.flatnonzero(np.isin(rows.client_of, list(split)))
    at = rows.first_of[chosen]
    ids, connections = (rows.strings(name, at).to_pylist() for name in ("client_id", "connection"))
    both = zip(connections, ids, server[chosen].tolist(), strict=True)
    known = {one: "%s@%s" % (name, names[code].as_py()) for one, name, code in both if name}
    codes, values = dictionary(table["connection"])
    fresh = pa.array([known.get(one) for one in values.to_pylist()], pa.string())
    ids = pc.coalesce(fresh.take(pa.array(codes)), whole(table["client_id"]).cast(pa.string()))
    return table.set_column(table.schema.get_field_index("client_id"), "client_id", ids)


def not_passed_on(messages, lost):
    """-> [(row of a message, row of one that its bridge passed on)]: what bridges left out.

    A bridge publishes at one broker what was published at another one, on the same topic, soon
    after.  `lost`: rows of messages of which a loss is told already.
    """
    server, names = dictionary(messages["server"])
    at = np.flatnonzero(is_published(messages) & (server >= 0))
    if len(names) < 2 or len(np.unique(server[at])) < 2:
        return []
    client, _ = clients(messages)
    site, topic = (dictionary(messages[name])[0] for name in ("site", "topic"))
    sent, value = numbers(messages, "first_sent"), numbers(messages, "payload_hash")
    at = at[np.lexsort((sent[at], topic[at], site[at]))]
    first, _ = runs(site[at], topic[at])
    connection = dictionary(messages["connection"])[0].tolist()
    whole = list(zip(connection, numbers(messages, "gaps").tolist(), strict=True))
    found = []
    for some in np.split(at, first[1:]):
        for bridge in np.unique(client[some]).tolist() if len(np.unique(server[some])) > 1 else ():
            own = some[client[some] == bridge]
            for other in np.unique(server[some]).tolist():
                source = some[(server[some] == other) & (client[some] != bridge)]
                if len(source) and other != server[own[0]]:
                    found += _left_out(source, own, sent, value, whole, lost)
    return found


def _left_out(source, own, sent, value, whole, lost):
    waiting = by_value(value, own.tolist()[::-1])
    twins = []
    for row in source.tolist():
        rest = waiting.get(int(value[row]), [])
        while rest and sent[rest[-1]] < sent[row] - EARLY_US:
            rest.pop()
        is_near = rest and sent[rest[-1]] < sent[row] + _PASSED_US
        twins.append(rest.pop() if is_near else -1)
    passed = np.flatnonzero(np.array(twins) >= 0)
    if len(passed) < max(_LEAST, _PART * len(source)):
        return []
    found = []
    for place in np.flatnonzero(np.diff(passed) > 1).tolist():
        before, behind = (twins[int(passed[one])] for one in (place, place + 1))
        # Both on one connection of the bridge, with no bytes missing between them.
        if whole[before] == whole[behind]:
            inner = source[passed[place] + 1 : passed[place + 1]].tolist()
            found += [(row, before) for row in inner if row not in lost]
    return found
