"""The packets of many clients as numpy columns, in the order in which they happened.

Rows are sorted by client, then connection (by its start), then place in the
connection.  Strings stay in Arrow; here they are numbers.  A client without a
known id is its connection.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..capture.files import JSON_SUFFIXES, subscriber
from ..columns import FAR, SET_US, begins, factorized, marked, over, ranked, whole

TYPES = {name: code for code, name in enumerate((*schemas.PACKET_TYPES, *schemas.EVENT_TYPES))}
_NARROW = 1 << 31


class Rows:
    """Columns of a table of `schemas.EVENTS`; one entry for each row, sorted.

    `table` keeps the original rows, `source` tells which of them a row is.
    `connection` numbers are in order: those of one client follow each other.
    """

    flags: np.ndarray

    def __init__(self, table):
        self.table = table.unify_dictionaries().combine_chunks()
        site, _ = dictionary(self.table["site"])
        name, names = dictionary(self.table["connection"])
        connection = grouped(site, name)
        first_row = np.full(int(connection.max(initial=-1)) + 1, -1, np.int64)
        first_row[connection[::-1]] = np.arange(len(connection))[::-1]
        names = names.take(pa.array(name[first_row]))
        ts = _numbers(self.table["ts"].cast(pa.int64()))
        start = over(np.minimum, len(names), connection, ts, FAR)
        chosen = self.table.select(["site", "client_id"]).take(pa.array(first_row))
        codes, values = dictionary(identities(chosen["site"], chosen["client_id"], names))
        client = ranks(values)[codes]
        begin = self._in_file_order(connection, client, start)
        order = np.lexsort((ranks(names), begin, client))
        client, start, connection = client[order], start[order], ranked(order)[connection]
        number = _numbers(self.table["number"])
        order = np.lexsort((number, connection))
        self.source = order
        self.connection = connection.take(order)
        self.ts = ts.take(order)
        self.client_of = client
        self.start_of = start
        self.client = client.take(self.connection)
        self.number = number.take(order)
        self.kind = _codes(self.table["packet_type"], TYPES).take(order)
        self.direction = _codes(self.table["direction"], {"c2s": 0, "s2c": 1}).take(order)
        for name in ("qos", "flags", "packet_id", "level", "reason_code"):
            self.__dict__[name] = _numbers(self.table[name], -1).take(order)
        self.dup = self.flags & 8 != 0
        for name in ("payload_bytes", "packet_bytes", "payload_hash"):
            self.__dict__[name] = _numbers(self.table[name], 0).take(order)
        # Is it from a capture, and not from a JSON line of a subscriber?
        self.is_captured = self.__dict__["packet_bytes"] > 0
        self.is_packet = self.kind < len(schemas.PACKET_TYPES)
        topic, self.topics = dictionary(self.table["topic"])
        self.topic = topic.take(order)
        # Where the rows of each connection begin; the last entry is the end.
        self.first_of = np.searchsorted(self.connection, np.arange(len(client) + 1))
        # Where the connections of each client begin, in the same way.
        self.connections_of = np.searchsorted(client, np.arange(client.max(initial=-1) + 2))
        # `start_of`, `end_of`: the earliest and the latest time of each connection.
        self.end_of = over(np.maximum, len(client), self.connection, self.ts, -FAR)

    def __len__(self):
        return len(self.source)

    def connections_with(self, mask):
        """For each connection: has it a row for which the mask is set?"""
        return marked(len(self.client_of), self.connection[mask])

    def firsts(self, at):
        """Of these rows the first of each connection."""
        return at[begins(self.connection[at])]

    def is_opened(self, side):
        """For each connection: was the SYN of this side captured, which tells where it begins?"""
        return self.connections_with((self.kind == TYPES["TCP_OPEN"]) & (self.direction == side))

    def _in_file_order(self, connection, client, start):
        # -> what connections are sorted by: when they began, or their places in the file if all
        # are in one file whose clock was set back.
        is_one_of_many = np.bincount(client)[client] > 1  # others need no order
        if not is_one_of_many.any():
            return start
        capture, names = dictionary(self.table["capture"])
        # A row that is made at the end belongs to no file.
        is_named = np.array([bool(name) for name in names.to_pylist()] + [False])[capture]
        is_named &= self.table["offset"].is_valid().to_numpy()
        at = np.flatnonzero(is_named & is_one_of_many[connection])
        count, mine, place = len(start), connection[at], _numbers(self.table["offset"], -1)[at]
        offset = over(np.minimum, count, mine, place, FAR)
        held = over(np.minimum, count, mine, capture[at], FAR)
        last = over(np.maximum, count, mine, capture[at], 0)
        order = np.lexsort((start, client))
        one, other = order[:-1], order[1:]
        is_back = (client[one] == client[other]) & (offset[other] < offset[one])
        is_back &= (start[other] - start[one] > SET_US) & (held[one] == held[other])
        if not is_back.any():
            return start
        # All connections of the client lie in that file alone.
        count = int(client.max()) + 1
        is_set = marked(count, client[one[is_back]]) & ~marked(count, client[held != last])
        low = over(np.minimum, count, client, held, FAR)
        is_set &= low == over(np.maximum, count, client, held, 0)
        return np.where(is_set[client], offset, start)

    def numbers(self, name, index):
        """Column `name` of the rows at `index`, -1 for null."""
        return _numbers(self.table[name].take(pa.array(self.source[index])), -1)

    def strings(self, name, index):
        """Column `name` of the rows at `index`, as Arrow."""
        return self.columns([name], index)[name]

    def columns(self, names, index):
        """{name: column of the rows at `index`, as Arrow}."""
        source = pa.array(self.source.take(index))
        return {name: whole(self.table[name]).take(source) for name in names}


def identities(site, client, connection):
    """Whose each row is, at which site, in one text: three columns of Arrow -> one.

    An empty client id is nobody's (clients of level 3.1.1 and 5 may have none): they are their
    connections.
    """
    site, client, connection = (one.cast(pa.string()) for one in (site, client, connection))
    known = pc.if_else(pc.equal(client, ""), None, client)
    return pc.binary_join_element_wise(site, pc.coalesce(known, connection), "\0")


def equal_ones(keys, others):
    """-> (entry, place): for each of the `keys` the places of its equals among the others, one
    after the other."""
    order = np.argsort(others, kind="stable")
    low, high = (np.searchsorted(others, keys, one, sorter=order) for one in ("left", "right"))
    count = high - low
    entry = np.repeat(np.arange(len(keys)), count)
    step = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
    return entry, order[low[entry] + step]


def _numbers(column, null=None):
    if column.null_count:
        column = pc.fill_null(column, null)
    return column.to_numpy()


def dictionary(column):
    """-> (code of each row, -1 for null; the values) of a column of strings."""
    encoded = whole(column)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1) if encoded.null_count else encoded.indices
    return codes.to_numpy(), encoded.dictionary


def clients(table):
    """-> (number of each row's client, their ids) of a table with `client_id` and `connection`.

    A client without a known id is its connection; its id stays null or empty.  JSON lines
    are of the `subscriber` that their file is named after, in however many files.
    """
    codes, values = dictionary(table["client_id"])
    names = [*values.to_pylist(), None]
    codes = np.where(codes < 0, len(names) - 1, codes).astype(np.int64)
    nameless = np.array([not name for name in names])[codes]
    if nameless.any():
        where, connections = dictionary(table["connection"])
        who = [nameless_client(name) for name in connections.to_pylist()]
        where = dictionary(pa.array(who))[0][where]
        of = np.full(len(connections), len(names) - 1)
        of[where[nameless]] = codes[nameless]
        codes = np.where(nameless, len(names) + where, codes)
        names += [names[one] for one in of.tolist()]
    return codes, names


def servers(connections):
    """-> (number of each one's server, their addresses) for the names of some connections.

    A server is its address and its port: two brokers may run on one computer.
    """
    names = connections.cast(pa.string())
    found = pc.struct_field(pc.extract_regex(names, _SERVER), "server")
    return dictionary(pc.coalesce(found, names))


# A connection is client:port-server:port@time, or a file of JSON lines: its own server.
_SERVER = "-(?P<server>[^-@]*:[0-9]+)@[^@]*$"


def nameless_client(connection):
    """What tells clients without an id apart: the connection, or whose JSON lines they are."""
    is_json = connection.lower().endswith(JSON_SUFFIXES)
    return subscriber(connection) if is_json else connection


def ranks(strings):
    """The place of each string in their order; of equal ones the first comes first."""
    return ranked(pc.sort_indices(strings.cast(pa.string())).to_numpy())


def _codes(column, numbers):
    codes, names = dictionary(column)
    table = np.array([numbers[name] for name in names.to_pylist()] or [0], np.int8)
    return table.take(codes)


def grouped(*columns):
    """A number below the count of groups for each row; equal in all columns: one group."""
    codes, width = _narrow(columns[0])
    for column in columns[1:]:
        more, count = _narrow(column)
        if width * count >= FAR:
            codes, values = factorized(codes)
            width = len(values)
        codes, width = codes * count + more, width * count
    return factorized(codes)[0]


def alike(number, fingerprint):
    """`grouped` of small numbers and 64-bit fingerprints, by a fingerprint of both."""
    # Two of these numbers are as unlikely to be equal by chance as two fingerprints.
    mixed = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return factorized(mixed ^ fingerprint.view(np.uint64))[0]


def _narrow(column):
    # -> (numbers from 0 on that tell its values apart, how many there may be).
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if high - low < _NARROW:
        return column.astype(np.int64) - low, high - low + 1
    codes, values = factorized(column)
    return codes, max(1, len(values))


def running_max_breaks(group, value):
    """Where `value` is less than an earlier one of its group (rows sorted by group)."""
    is_less = (value[1:] < value[:-1]) & (group[1:] == group[:-1])
    if not is_less.any():
        return np.empty(0, np.int64)
    return np.flatnonzero(value < running_max(group, value))


def running_max(group, value):
    """The largest value so far in its group, for each row (rows sorted by group)."""
    # Ranks keep the sum of group and value inside 64 bits.
    order = np.argsort(value, kind="stable")
    floor = np.cumsum(np.diff(group, prepend=group[:1]) != 0) * len(value)
    return value[order[np.maximum.accumulate(ranked(order) + floor) - floor]]
