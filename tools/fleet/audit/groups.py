"""Shared subscriptions: messages that no member of a group got.

The members of a group are laid together as one subscriber.  Who of them gets a message is
the broker's affair, and a member that was away may have it waiting; so a message is missed
only where all of them had the time to get it.  A member that was not captured may have got
it just as well: what is missing here is told, and held against nobody.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .rows import dictionary, equal_ones, identities
from .spans import SHARED, unshared

_MEMBER = ("site", "client_id", "connection")
_GAPS = ("gap_begins", "gap_ends")


def together(messages, subscriptions):
    """-> (messages, subscriptions) in which each group is one client of its name, or None."""
    is_shared = pc.starts_with(subscriptions["filter"].cast(pa.string()), SHARED)
    shared = subscriptions.filter(is_shared)
    if not shared.num_rows:
        return None
    groups: dict[tuple, list] = {}
    members = shared.select([*_MEMBER, "filter", *_GAPS]).to_pylist()
    for row in members:
        groups.setdefault((row["site"], row["filter"]), []).append(row)
    columns = {name: shared[name] for name in shared.column_names}
    columns["client_id"] = pa.array([row["filter"] for row in members], pa.string())
    patterns = [unshared(row["filter"]) for row in members]
    columns["filter"] = pa.array(patterns, pa.string())
    for name in _GAPS:
        # Bytes that are missing of one member are missing of the group.
        joined = {
            key: [ts for row in rows for ts in row[name] or ()] for key, rows in groups.items()
        }
        values = [joined[row["site"], row["filter"]] for row in members]
        columns[name] = pa.array(values, shared.schema.field(name).type)
    # All published messages, and the deliveries to members as deliveries to their group.
    is_published = pc.equal(messages["direction"], "c2s")
    sent, got = messages.filter(is_published), messages.filter(pc.invert(is_published))
    entries = [(text, row) for (_, text), rows in groups.items() for row in rows]
    who = [pa.array([row[name] for _, row in entries], pa.string()) for name in _MEMBER]
    member, names = dictionary(identities(*who))
    # A client may be in several groups, and in one of them on two connections.
    text, texts = dictionary(pa.array([text for text, _ in entries], pa.string()))
    pairs = np.unique(member.astype(np.int64) * len(texts) + text)
    member, text = pairs // len(texts), pairs % len(texts)
    who = pc.index_in(identities(*(got[name] for name in _MEMBER)), names)
    who = pc.fill_null(who, len(names)).to_numpy()
    at, found = equal_ones(who, member)
    mine = got.take(pa.array(at))
    mine = _with(mine, "client_id", texts.take(pa.array(text[found])))
    mine = _with(mine, "position", mine["first_sent"].cast(pa.int64()))
    both = pa.concat_tables([sent, mine]).unify_dictionaries().combine_chunks()
    return both, pa.table(columns)


def _with(table, name, values):
    # -> the table with other values in one column, of the same type.
    at = table.column_names.index(name)
    field = table.schema.field(at)
    if pa.types.is_dictionary(field.type):
        values = values.dictionary_encode().cast(field.type)
    return table.set_column(at, field, values)
