"""Columns of Arrow and arrays of numpy, seen as each other."""

import sys

import numpy as np
import pyarrow as pa


class _NoPandas:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


# With its first array pyarrow looks for pandas: 0.4 CPU-seconds and 40 MB in each process.  It
# looks again when somebody asks for a DataFrame.
sys.meta_path.insert(0, _NoPandas)
pa.array([0])
sys.meta_path.remove(_NoPandas)

SET_US = 1_000_000  # a clock that goes back by more was set


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


class Growing:
    """A numpy array that is long enough for every index asked for."""

    def __init__(self, fill, dtype):
        self._fill = fill
        self.array = np.full(1024, fill, dtype)

    def reserve(self, count):
        """Make room for indices below `count`."""
        if count > len(self.array):
            grown = np.full(max(count, 2 * len(self.array)), self._fill, self.array.dtype)
            grown[: len(self.array)] = self.array
            self.array = grown
