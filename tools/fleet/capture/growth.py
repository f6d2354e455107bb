"""How far a file that is still being written can be read, and where it can be cut.

Plain pcap and JSON lines grow record by record and line by line.  Everything else
(compressed, pcapng, what is damaged) is read when it is settled, that is, when nobody has
written to it for a while.  Reads no packet; keeps no state.
"""

import mmap
import time
from pathlib import Path

import numpy as np

from . import files, pcap


def is_settled(path, settle_s):
    """Has nobody written to the file for `settle_s` seconds?"""
    return time.time() - Path(path).stat().st_mtime >= settle_s


def end_of(source, begin, most_bytes, settle_s):
    """Up to which byte `source` can be read from `begin` on: `begin` when not yet.

    About `most_bytes` at a time where the file can be cut.
    """
    size = Path(source.path).stat().st_size
    if size <= begin:
        return begin
    can_end = is_settled(source.path, settle_s)
    if _is_plain_json(source):
        return _cut_lines(source.path, begin, most_bytes, can_end)
    if _is_plain_pcap(source.path):
        return _cut_records(source.path, begin, most_bytes, can_end)
    return size if can_end else begin


def ranges(source, begin, end, range_bytes):
    """Cut what `end_of` allowed into (begin, until) of about `range_bytes`."""
    if not (_is_plain_json(source) or _is_plain_pcap(source.path)):
        return [(0, None)]
    cuts = [begin]
    with open(source.path, "rb") as file, _mapped(file) as data:
        if files.is_json(source):
            for goal in range(begin + range_bytes, end - range_bytes // 2, range_bytes):
                cuts.append(data.find(b"\n", goal, end) + 1 or cuts[-1])
        else:
            starts = np.array(_records(data, begin, end)[0], np.int64)
            for goal in range(begin + range_bytes, end - range_bytes // 2, range_bytes):
                at = np.searchsorted(starts, goal)
                cuts.append(int(starts[at]) if at < len(starts) else cuts[-1])
    cuts = sorted(set(cuts))
    return list(zip(cuts, [*cuts[1:], end], strict=True))


def _is_plain_json(source):
    return files.is_json(source) and not files.is_packed(source.path)


def _is_plain_pcap(path):
    with open(path, "rb") as file:
        start = file.read(pcap.HEADER_BYTES)
    return pcap.is_pcap(start) and len(start) == pcap.HEADER_BYTES


def _mapped(file):
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _cut_lines(path, begin, most_bytes, can_end):
    with open(path, "rb") as file, _mapped(file) as data:
        limit = min(len(data), begin + most_bytes)
        end = data.rfind(b"\n", begin, limit) + 1 or data.find(b"\n", limit) + 1
        if can_end and limit == len(data):
            return limit
        return max(begin, end)


def _cut_records(path, begin, most_bytes, can_end):
    with open(path, "rb") as file, _mapped(file) as data:
        limit = min(len(data), max(begin, pcap.HEADER_BYTES) + most_bytes)
        _, end, is_bad = _records(data, begin, limit)
        if can_end and (is_bad or limit == len(data)):
            return len(data)
        return end if end > pcap.HEADER_BYTES else begin


def _records(data, begin, end):
    header = pcap.read_header(data[: pcap.HEADER_BYTES])
    return pcap.walk(data, end, header, max(begin, pcap.HEADER_BYTES))
