"""Messages counted by client, direction, topic and QoS.

`lost`, `duplicates`, `repeated`, `unmatched` and `overtaking` need the other end too;
`routes` finds them, and `with_ends` adds them.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import factorized, over, runs, table
from ..tables import plain
from .messages import unanswered
from .quota import at_once
from .rows import FAR, dictionary, grouped

_KEYS = ("site", "client_id", "topic", "qos")
_ROUTED = [name for name in schemas.ROUTES.names if name not in _KEYS]  # that `routes` counts
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1}


def sequences(rows, sessions, flows):
    """The `sequences` table, its end-to-end columns still 0."""
    plain = unanswered(rows)
    plain = plain[rows.qos[plain] < 3]
    at = np.concatenate((flows.publish_row, plain))
    key = (rows.client[at] * (len(rows.topics) + 1) + rows.topic[at] + 1) * 8
    group, uniques = factorized(key + rows.direction[at] * 4 + rows.qos[at])
    count = len(uniques)
    first = np.zeros(count, np.int64)  # one row of each group
    first[group[::-1]] = at[::-1]
    of_flow = group[: len(flows.publish_row)]
    complete = flows.done_row < FAR
    wait = np.full(len(at), np.nan)
    done = np.flatnonzero(complete)
    wait[done] = np.maximum(rows.ts[flows.done_row[done]] - rows.ts[at[done]], 0) / 1000
    abandoned = flows.states(sessions) == 2

    def total(values):
        return np.bincount(of_flow, values, count).astype(np.int64)

    # Count up at the first PUBLISH, down at the last acknowledgement or when the id is reused.
    # If the end was not captured, it is not known how long the message was in flight.
    judged = np.flatnonzero(complete | flows.is_known)
    under_way = at_once(group[judged], flows.publish_row[judged], flows.done_row[judged])
    repeats = flows.sent - 1
    first_dup = rows.dup[flows.publish_row]
    marked = np.minimum(flows.dups - first_dup, repeats)
    columns = {
        "direction": pa.array(schemas.DIRECTIONS).take(pa.array(rows.direction[first])),
        "qos": rows.qos[first],
        "messages": np.bincount(group, minlength=count),
        "packets": np.bincount(group, minlength=count) + total(repeats),
        "redelivered": total(marked > 0),
        "unmarked": total(repeats - marked),
        "incomplete": total(abandoned),
        "in_flight_max": over(np.maximum, count, group[judged], under_way, 0),
    }
    columns |= dict.fromkeys(_ROUTED, np.zeros(count, np.int64))
    known = np.flatnonzero(~np.isnan(wait))
    order = known[np.lexsort((wait[known], group[known]))]
    who, value = group[order], wait[order]
    begin, last = runs(who)
    for name, part in _PERCENTILES.items():
        # The nearest rank is a measured value, and does not depend on how rows were split.
        behind = np.ceil(part * (last - begin + 1)).astype(np.int64)
        latency = np.full(count, np.nan)
        latency[who[begin]] = value[begin + behind - 1]
        columns["latency_%s_ms" % name] = pa.array(latency, mask=np.isnan(latency))
    columns.update(rows.columns(("site", "client_id", "topic"), first))
    return table(columns, schemas.SEQUENCES)


def with_ends(own, found):
    """`sequences` of some topics with what `routes` found of them: its table, or None."""
    if found is None or not found.num_rows:
        return own
    own, found = plain(own, schemas.SEQUENCES), plain(found, schemas.ROUTES)
    count, direction = len(own), pa.array(["s2c"] * len(found))
    both = [own, found.append_column("direction", direction)]
    both = pa.concat_tables(both, promote_options="default").combine_chunks()
    codes = grouped(*(dictionary(both[key])[0] for key in _KEYS[:3]), both["qos"].to_numpy())
    # Of several rows for a client without an id only the first counts.  A subscriber that got
    # nothing of a topic has no sequence.
    place = np.zeros(int(codes.max()) + 1, np.int64)
    at = np.flatnonzero(pc.equal(both["direction"], "s2c").to_numpy())[::-1]
    place[codes[at]] = at
    target = place[codes[count:]]
    columns = {}
    for name in _ROUTED:
        numbers = np.append(own[name].to_numpy(), np.zeros(len(found), np.int64))
        np.add.at(numbers, target, found[name].to_numpy())
        columns[name] = pa.array(numbers)
    for field in schemas.SEQUENCES:
        if field.name not in columns and pa.types.is_integer(field.type):
            columns[field.name] = both[field.name].fill_null(0)
    kept = pa.array(np.union1d(np.arange(count), target))
    return table(columns, schemas.SEQUENCES, both).take(kept)
