"""Sequence strips: the order in which a subscriber saw the messages of one topic.

Each cell is [label, kind]: `new`, `again` (repeat with DUP), `twice` (repeat without),
`late` (after a later one), `lost` (a number that was left out).
"""

_BEFORE, _AFTER = 4, 20
_FAR_APART = 10_000


def strip(wanted, dups, packet_ids, hashes, readings):
    """The strip around the first place that is out of order -> dict, or None."""
    cells = _cells(dups, packet_ids, hashes, readings)
    first = next((at for at, cell in enumerate(cells) if cell[1] != "new"), None)
    if first is None:
        return None
    begin = max(0, first - _BEFORE)
    return wanted | {"cells": cells[begin : first + _AFTER], "before": begin}


def _cells(dups, packet_ids, hashes, readings):
    cells, seen, last = [], set(), None
    arrived = {reading for reading in readings if reading[1] is not None}
    for dup, packet_id, payload, reading in zip(dups, packet_ids, hashes, readings, strict=True):
        is_reading = reading[1] is not None
        key = reading if is_reading else payload
        label = str(reading[1] if is_reading else packet_id if packet_id is not None else "·")
        if key in seen and (is_reading or dup):
            cells.append([label, "again" if dup else "twice"])
            continue
        seen.add(key)
        if is_reading and last and reading < last:
            cells.append([label, "late"])
            continue
        if is_reading:
            cells += _left_out(last, reading, arrived)
            last = reading
        cells.append([label, "new"])
    return cells


def _left_out(last, reading, arrived):
    # Numbers between two that arrived, if they never come later.
    if not last or last[0] != reading[0]:
        return []
    # Numbers come from payloads: what is missing between them may be billions.
    count = reading[1] - last[1] - 1
    if count > _FAR_APART:
        return [["%d–%d" % (last[1] + 1, reading[1] - 1), "lost"]]
    missing = [n for n in range(last[1] + 1, reading[1]) if (reading[0], n) not in arrived]
    if len(missing) > 3:
        return [["%d–%d" % (missing[0], missing[-1]), "lost"]]
    return [[str(n), "lost"] for n in missing]
