"""What the few packets say that have fields of their own: the column `detail`, JSON.

Most of them say the same, but for the client id, which is a column of its own: what is left
of a text without it is read once, and what that says is asked once.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import over
from .rows import TYPES, dictionary


class Told:
    """What the first packet of a kind (such as "CONNECT") says, for each connection.

    `row` is that packet's, -1 where there is none; `has_some`: does it say anything?  The
    client id is left out.
    """

    def __init__(self, rows, kind):
        at = rows.firsts(np.flatnonzero(rows.kind == TYPES[kind]))
        count = len(rows.client_of)
        self.row = over(np.maximum, count, rows.connection[at], at, -1)
        texts = pc.replace_substring_regex(rows.strings("detail", at), _CLIENT_ID, _NOBODY)
        codes, self._said = read(texts)
        self._code = np.full(count, len(self._said) - 1)
        self._code[rows.connection[at]] = codes
        self.has_some = np.array([bool(one) for one in self._said], bool)[self._code]

    def __getitem__(self, connection):
        """The dict of one connection, an empty one where nothing is said."""
        return self._said[self._code[connection]]

    def numbers(self, name, none=0):
        """A field as whole numbers, `none` where it is not said."""
        return np.array([one.get(name, none) for one in self._said], np.int64)[self._code]

    def flags(self, name):
        """A field as truth, not said: False."""
        return self.numbers(name) != 0

    def column(self, name, kind):
        """A field as a column of Arrow of this type, null where it is not said."""
        return self.mapped(lambda one: one.get(name), kind)

    def mapped(self, function, kind):
        """As `column`, of what `function` makes of each dict."""
        values = pa.array([function(one) for one in self._said], kind)
        return values.take(pa.array(self._code))


def parsed(details):
    """The dicts of a `detail` column."""
    codes, said = read(details)
    return [said[code] for code in codes.tolist()]


def read(details):
    """-> (the place of each among the dicts; those of a `detail` column, and {} behind them)"""
    codes, texts = dictionary(details)
    # One call for all rows, as the calls would take most of the time.
    said = json.loads("[%s]" % ",".join([text or "{}" for text in [*texts.to_pylist(), None]]))
    return np.where(codes < 0, len(said) - 1, codes), said


# An id with an escaped character is kept as it is.
_CLIENT_ID, _NOBODY = r'"client_id":"[^"\\]*"', '"client_id":""'
