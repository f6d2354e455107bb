"""How far a file that is still being written can be read, and where it can be cut.

Plain pcap and JSON lines grow record by record and line by line.  Everything else
(compressed, pcapng, what is damaged) is read when it is settled, that is, when nobody has
written to it for a while, and so is every file that is not on a local disk.  Reads no
packet; keeps no state.
"""

import time

import numpy as np

from .. import places
from . import files, pcap


def end_of(source, begin, most_bytes, settle_s):
    """Up to which byte `source` can be read from `begin` on: `begin` when not yet.

    About `most_bytes` at a time where the file can be cut.
    """
    size, changed_s = places.size_and_time(source.path)
    if size <= begin:
        return begin
    can_end = time.time() - changed_s >= settle_s
    if places.is_remote(source.path) or source.problem:
        return size if can_end else begin
    if _is_plain_json(source):
        return _cut_lines(source.path, begin, most_bytes, can_end)
    if _is_plain_pcap(source.path):
        return _cut_records(source.path, begin, most_bytes, can_end)
    return size if can_end else begin


def ranges(source, begin, end, range_bytes):
    """Cut what `end_of` allowed into (begin, until) of about `range_bytes`."""
    if not (_is_plain_json(source) or _is_plain_pcap(source.path)):
        return [(0, None)]
    if places.is_remote(source.path):
        cuts = [begin] if begin else [cut for cut, *_ in files.ranges(source.path, range_bytes)]
    else:
        cuts = sorted(set(_cuts(source, begin, end, range_bytes)))
    return list(zip(cuts, [*cuts[1:], end], strict=True))


def _cuts(source, begin, end, range_bytes):
    cuts = [begin]
    goals = range(begin + range_bytes, end - range_bytes // 2, range_bytes)
    with open(source.path, "rb") as file, places.mapped(file) as data:
        if files.is_json(source):
            for goal in goals:
                cuts.append(data.find(b"\n", goal, end) + 1 or cuts[-1])
        else:
            starts = np.array(_records(data, begin, end)[0], np.int64)
            for goal in goals:
                at = np.searchsorted(starts, goal)
                cuts.append(int(starts[at]) if at < len(starts) else cuts[-1])
    return cuts


def _is_plain_json(source):
    return files.is_json(source) and not files.is_packed(source.path)


def _is_plain_pcap(path):
    with places.open_binary(path) as file:
        start = file.read(pcap.HEADER_BYTES)
    return pcap.is_pcap(start) and len(start) == pcap.HEADER_BYTES


def _cut_lines(path, begin, most_bytes, can_end):
    with open(path, "rb") as file, places.mapped(file) as data:
        limit = min(len(data), begin + most_bytes)
        end = data.rfind(b"\n", begin, limit) + 1 or data.find(b"\n", limit) + 1
        if can_end and limit == len(data):
            return limit
        return max(begin, end)


def _cut_records(path, begin, most_bytes, can_end):
    with open(path, "rb") as file, places.mapped(file) as data:
        limit = min(len(data), max(begin, pcap.HEADER_BYTES) + most_bytes)
        _, end, is_bad = _records(data, begin, limit)
        if can_end and (is_bad or limit == len(data)):
            return len(data)
        return end if end > pcap.HEADER_BYTES else begin


def _records(data, begin, end):
    header = pcap.read_header(data[: pcap.HEADER_BYTES])
    return pcap.walk(data, end, header, max(begin, pcap.HEADER_BYTES))
