"""Written tables as rows, for a test to compare."""

import pyarrow.parquet as pq

from tools.fleet import places, schemas
from tools.fleet.places import place


def rows(out, name):
    """All rows of a table, in order; which part of a stream they are from is left out."""
    with places.copied_here(place(out) / name) as folder:
        table = pq.read_table(folder)
    columns = sorted(one for one in table.column_names if one != "part")
    return sorted(table.select(columns).to_pylist(), key=repr)


def assert_same(one, other):
    """Both folders hold the same tables."""
    for name in schemas.TABLES:
        assert rows(one, name) == rows(other, name), name
