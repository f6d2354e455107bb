"""Columns of Arrow and arrays of numpy, seen as each other."""

import sys

import numpy as np
import pyarrow as pa


class _NoPandas:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


# pyarrow imports pandas with its first array: 0.4 CPU-seconds and 40 MB in each process.  It
# looks for it again when a program asks for a DataFrame.
sys.meta_path.insert(0, _NoPandas)
pa.array([0])
sys.meta_path.remove(_NoPandas)

SET_US = 1_000_000  # a clock that goes back by more was set
FAR = np.iinfo(np.int64).max


def factorized(values):
    """-> (number of each value, from 0 in the order in which they first come; the values).

    As `pandas.factorize`; to import that would cost each process more than a small audit.
    """
    coded = pa.array(values).dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_numpy()


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


def marked(count, at):
    """An array of so many truths: those `at` these places."""
    result = np.zeros(count, bool)
    result[at] = True
    return result


def over(function, count, group, values, none):
    """`np.minimum` or `np.maximum` of the values of each of `count` groups, and of `none`."""
    result = np.full(count, none)
    function.at(result, group, values)
    return result


def begins(*columns):
    """For each row: is one of the columns (numbers from 0 on) another than in the row before?"""
    result = np.diff(columns[0], prepend=-1) != 0
    for column in columns[1:]:
        result[1:] |= column[1:] != column[:-1]
    return result


def runs(*columns):
    """-> (where each run of equal rows begins, where it ends, its last row included)."""
    first = np.flatnonzero(begins(*columns))
    return first, np.append(first[1:], len(columns[0]))[: len(first)] - 1


def in_runs(*columns):
    """The place of each row in its run of equal rows, from 0 on."""
    first, last = runs(*columns)
    return np.arange(len(columns[0])) - np.repeat(first, last - first + 1)


def ranked(order):
    """The place of each row in this order of all rows."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def table(columns, schema, rows=None):
    """An Arrow table of `schema` from numpy arrays, lists and Arrow arrays.

    What is not among the columns is that of `rows`, an Arrow table, where it has it, else null.
    Strings may stay dictionaries; `plain` of the module `tables` makes them strings.
    """
    count, arrays = len(next(iter(columns.values()))) if rows is None else len(rows), {}
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            is_there = rows is not None and field.name in rows.column_names
            values = rows[field.name] if is_there else pa.nulls(count, field.type)
        if isinstance(values, np.ndarray) and pa.types.is_timestamp(field.type):
            values = pa.array(values, pa.int64())
        elif not isinstance(values, pa.Array | pa.ChunkedArray):
            values = pa.array(values, field.type)
        kind = values.type
        is_coded = pa.types.is_dictionary(kind) and kind.value_type == field.type
        arrays[field.name] = values if is_coded or kind == field.type else values.cast(field.type)
    return pa.table(arrays)


def by_value(values, places):
    """{value: those of the `places` in `values` that have it, in their order}."""
    found: dict = {}
    for at in places:
        found.setdefault(values[at], []).append(at)
    return found


def coded(codes, values, mask=None):
    """A dictionary array of strings, null where the mask is set."""
    # Nulls must be in the codes, as Parquet cannot write a dictionary with a null.
    codes, texts = np.asarray(codes).astype(np.int32), pa.array(values, pa.string())
    if texts.null_count:
        mask = texts.is_null().to_numpy(zero_copy_only=False)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), texts.fill_null(""))


class Growing:
    """A numpy array that is long enough for every index asked for."""

    def __init__(self, fill, dtype):
        self._fill = np.array(fill, dtype)
        self.array = np.full(1024, self._fill)

    def reserve(self, count):
        """Make room for indices below `count`."""
        if count > len(self.array):
            grown = np.full(max(count, 2 * len(self.array)), self._fill)
            grown[: len(self.array)] = self.array
            self.array = grown
