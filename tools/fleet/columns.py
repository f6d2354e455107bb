"""How the tables' columns are written down: name, type, meaning."""

import pyarrow as pa

TS = pa.timestamp("us", tz="UTC")


def schema(columns):
    """An Arrow schema from [(name, type, meaning), …]."""
    fields = []
    for name, kind, meaning in columns:
        fields.append(pa.field(name, kind, metadata={"comment": meaning}))
    return pa.schema(fields)


def texts(column):
    """A list of the strings of a column, coded or not; of codes Arrow makes one object each."""
    return column.cast(pa.string()).to_numpy(zero_copy_only=False).tolist()


def whole(column):
    """A column as one array: a copy only where it lies in several (Arrow copies always)."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
