"""How the tables' columns are written down: name, type, meaning."""

import pyarrow as pa

TS = pa.timestamp("us", tz="UTC")


def schema(columns):
    """An Arrow schema from [(name, type, meaning), …]."""
    fields = []
    for name, kind, meaning in columns:
        fields.append(pa.field(name, kind, metadata={"comment": meaning}))
    return pa.schema(fields)
