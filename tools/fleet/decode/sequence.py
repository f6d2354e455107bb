"""TCP's sequence numbers, which begin again behind 2^32 (RFC 9293 §3.4)."""

import numpy as np

WHOLE = 1 << 32
_HALF = 1 << 31
# How far outside what was seen of a stream its own segments can lie: no sender sends
# further ahead without an answer.
NEAR_BYTES = 1 << 20


def wrapped(difference):
    """Of two sequence numbers this difference, in bytes from -2^31 to 2^31 - 1; arrays, too."""
    return (difference + _HALF) % WHOLE - _HALF


def bases(known, stream, seq, is_data, is_syn):
    """The sequence number from which each stream is counted: what is `known` of it, else its
    SYN's, else that of its first data; -1 for none.

    `stream` is the place in `known` of each segment, whose number is `seq`.
    """
    base = known.copy()
    for places in (np.flatnonzero(is_data), np.flatnonzero(is_syn)):
        first = np.full(len(base), -1, np.int64)
        first[stream[places[::-1]]] = seq[places[::-1]] % WHOLE
        base = np.where((known < 0) & (first >= 0), first, base)
    return base
