"""A capture file some megabytes at a time: what the formats do alike.

A format has a walker, which hops from one record or block to the next:

- `walk(array, end, limit, base, pos)` -> ([`Frames`, …], next position, is_bad): those that
  start before `limit` and are all there before `end`; with `is_bad` it stands before one
  whose length cannot be true;
- `may_begin(window, count)` -> where in the first `count` bytes one may begin;
- `step(data, pos, told)` -> (where the one at `pos` ends, -1 where none can be; what is told of
  it to the next step, None for the first);
- `unit`: what it hops over; `head_bytes` of each; `sync_bytes`: a chain is looked for only in
  so many, or at the file's end; `most_bytes`: none with a frame is longer.
"""

from .frames import padded, refill

# Longer than any frame, so that records inside a recorded payload (a capture sent over the
# network) cannot form such a chain: real record headers interrupt it.
SYNC_BYTES = 1 << 19
_CHAIN = 4  # records or blocks
_WINDOW_BYTES = 1 << 18


def read(stream, walker, tally, base, until, chunk_bytes):
    """Yield `Frames` from `stream`, which stands at file offset `base`, before a record.

    Records that start before offset `until` (None: all) are read; damage is noted in
    `tally` and skipped to the next chain of records.
    """
    rest = b""
    while True:
        array, end = refill(stream, rest, chunk_bytes)
        is_last = end == len(rest)
        limit = end if until is None else min(end, until - base)
        pos = 0
        while True:
            found, pos, is_bad = walker.walk(array, end, limit, base, pos)
            yield from found
            if not is_bad or (not is_last and end - pos < walker.sync_bytes):
                break
            pos = _skip_damage(walker, memoryview(array)[:end], pos, is_last, tally, base)
        if until is not None and base + pos >= until:
            if base + pos > until:
                tally.error(until, "two ranges of the file do not meet here")
            return
        if is_last:
            if pos < end:
                tally.cut_short(base + pos, "%s cut short at the end of the file" % walker.unit)
            return
        rest = array[pos:end]
        base += pos


def _skip_damage(walker, data, pos, is_last, tally, base):
    found = resync(walker, data, pos + 1, is_last)
    if found < 0:
        found = len(data) if is_last else max(pos + 1, len(data) - walker.most_bytes)
    tally.error(base + pos, "damaged %s: %d bytes skipped" % (walker.unit, found - pos))
    tally.add("skipped_bytes", found - pos)
    return found


def resync(walker, data, pos, is_last, chain_bytes=0):
    """The first position from `pos` on where a chain of records or blocks starts, or -1.

    The chain has to hold for four of them and `chain_bytes`, or, when `is_last` says that the
    file ends with `data`, exactly to that end.
    """
    last, broken = len(data) - walker.head_bytes, set()
    while pos <= last:
        window = padded(data[pos : pos + _WINDOW_BYTES + walker.head_bytes])
        for one in walker.may_begin(window, min(_WINDOW_BYTES, last - pos + 1)).tolist():
            if _is_chain(walker, data, pos + one, is_last, chain_bytes, broken):
                return pos + one
        pos += _WINDOW_BYTES
    return -1


def _is_chain(walker, data, start, is_last, chain_bytes, broken):
    # `broken`: records of chains that ended too early; a later chain with one of them does, too.
    pos, told, passed = start, None, []
    while len(passed) < _CHAIN or pos - start < chain_bytes:
        if pos + walker.head_bytes > len(data):
            return pos == len(data) if is_last else len(passed) > 1
        after, told = walker.step(data, pos, told)
        if after < 0 or pos in broken:
            broken.update(passed if pos - start < chain_bytes else ())
            return False
        passed.append(pos)
        pos = after
    return True


def hop(walker, data, pos, goal):
    """The first position at `goal` or behind it, of the chain that `pos` belongs to; less where
    the chain ends before, or `pos` is -1."""
    told = None
    while 0 <= pos < goal and pos + walker.head_bytes <= len(data):
        pos, told = walker.step(data, pos, told)
    return pos
