"""Subscriptions as numbers, and the topics that they match.  For `routes`."""

import bisect
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import texts, whole
from ..mqtt import matches
from .messages import GRACE_US
from .rows import FAR
from .traffic import flags, numbers

HEADER_BYTES = 16  # the most that a PUBLISH has beside topic, properties and payload
SHARED = "$share/"  # filters of shared subscriptions begin so


def are_wild(filters):
    """For each filter of a column: is it shared, or does it match more than one name?"""
    return pc.match_substring_regex(filters.cast(pa.string()), r"^\$share/|[+#]")


def unshared(pattern):
    """The filter behind the name of the group, if the subscription is a shared one."""
    return pattern.split("/", 2)[-1] if pattern.startswith(SHARED) else pattern


def that_match(subscriptions, topics):
    """Those of `subscriptions` whose filter matches one of the `topics`, which are sorted."""
    filters = texts(subscriptions["filter"])
    found = matched(set(filters), topics)
    return subscriptions.filter(pa.array([bool(found[text]) for text in filters], pa.bool_()))


class Spans:
    """Subscriptions that match topics here; `place` and `span` are the matching pairs."""

    def __init__(self, subscriptions, names):
        filters = texts(subscriptions["filter"])
        known = sorted((name, number) for number, name in enumerate(names.topics) if name)
        topics, codes = [name for name, _ in known], np.array([one for _, one in known], np.int64)
        found = matched(set(filters), topics)
        sizes = np.array([len(found[text]) for text in filters], np.int64)
        rows = np.flatnonzero((sizes > 0) & names.is_here)
        chosen = subscriptions.take(pa.array(rows))
        filters = [filters[row] for row in rows.tolist()]
        self.span = np.repeat(np.arange(len(rows)), sizes[rows])
        near = chain.from_iterable(found[text] for text in filters)
        topic = codes[np.fromiter(near, np.int64, len(self.span))]
        self.place = names.site_asked[rows][self.span] * len(names.topics) + topic
        self.begin, self.end = numbers(chosen, "begin"), numbers(chosen, "end")
        self.last, self.qos = numbers(chosen, "last_seen"), numbers(chosen, "qos")
        # A message that came shortly before had to wait, too, as deliveries are late.
        self.stuck = numbers(chosen, "stuck_since", FAR) - GRACE_US
        self.full = numbers(chosen, "full_since", FAR) - GRACE_US
        self.assumed = numbers(chosen, "assumed_since", FAR)
        self.packet_bytes_max = numbers(chosen, "packet_bytes_max", FAR)
        self.is_shared = np.array([text.startswith(SHARED) for text in filters], bool)
        self.is_implied = flags(chosen["is_implied"])
        self.is_own_excluded = flags(chosen["no_local"])
        self.keeps_retain = flags(chosen["as_published"])
        self.client, self.server = names.client_asked[rows], names.server_asked[rows]
        self._online = _lists(chosen, "online_begins"), _lists(chosen, "online_ends")
        self._asked = _lists(chosen, "asked")
        self._busy = _lists(chosen, "busy_begins"), _lists(chosen, "busy_ends")
        self.is_ever_busy = np.diff(self._busy[0][1]) > 0
        self._gaps = _lists(chosen, "gap_begins"), _lists(chosen, "gap_ends")
        self.has_gaps = np.diff(self._gaps[0][1]) > 0

    def online(self, span, times):
        """How long (µs) the client had been connected before each time, in this session."""
        return self._sums(self._online, span, _before, times)

    def has_asked(self, span, times):
        """Had the client sent a SUBSCRIBE on the connection that it had at each time?"""
        result = np.zeros(len(span), bool)
        order = np.argsort(span, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(span[order])) + 1) if len(span) else ():
            one = span[at[0]]
            asked, ends = (
                np.sort(values[first[one] : first[one + 1]])
                for values, first in (self._asked, self._online[1])
            )
            before = np.searchsorted(ends, times[at])
            since = np.concatenate(([0], ends))[before]
            sent = np.searchsorted(asked, times[at]) - np.searchsorted(asked, since, "right")
            result[at] = sent > 0
        return result

    def attached_until(self, span, times):
        """When the connection ended on which the client was at each time; 0 if on none."""

        def end_of(begin, end, times):
            return np.where((begin <= times) & (times < end), end, 0)

        return self._sums(self._online, span, end_of, times)

    def busy(self, span, times):
        """For how much of that it had always a delivery to answer."""
        return self._sums(self._busy, span, _before, times)

    def is_near_gap(self, span, times, is_away):
        """Which times lie close to bytes of the client that are missing; when it was away,
        those before them as well."""

        def behind(begin, end, times):
            return times < end + GRACE_US

        def near(begin, end, times):
            return (times > begin - GRACE_US) & (times < end + GRACE_US)

        found = self._sums(self._gaps, span, near, times) > 0
        return found | (is_away & (self._sums(self._gaps, span, behind, times) > 0))

    @staticmethod
    def _sums(lists, span, function, times):
        # -> the sum of function(begin, end, time) over the list of each span.  One step adds the
        # first entries of all, the next step the second ones, and so on.
        (begins, first), (ends, _) = lists
        total = np.zeros(len(span), np.int64)
        if not len(begins):
            return total
        count = np.diff(first)[span]
        at = np.flatnonzero(count > 0)
        step = 0
        while len(at):
            place = first[span[at]] + step
            total[at] += function(begins[place], ends[place], times[at])
            step += 1
            at = at[count[at] > step]
        return total


def _before(begin, end, times):
    return np.clip(times, begin, end) - begin


def _lists(table, name):
    # A column of lists of times -> (all times, where each list begins).
    column = whole(table[name])
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    values = column.flatten().cast(pa.int64()).to_numpy()
    return values, np.concatenate(([0], np.cumsum(sizes)))


def matched(filters, topics):
    """{filter: places of the topics that it matches}; `topics` are sorted, each is there once."""
    # Sorted topics that begin like a filter are neighbours, so each filter meets few of them.
    known = {name: place for place, name in enumerate(topics)}
    found: dict[str, Sequence[int]] = {}
    for text in filters:
        pattern = unshared(text)
        if "+" not in pattern and "#" not in pattern:
            found[text] = [known[pattern]] if pattern in known else []
            continue
        size = min((pattern + "+").index("+"), (pattern + "#").index("#"))
        start = pattern[:size]
        begin = bisect.bisect_left(topics, start)
        behind = bisect.bisect_left(topics, start + "\U0010ffff") if start else len(topics)
        near = range(begin, behind)
        if start and pattern[size:] == "#":
            is_more = start.endswith("/") and start[:-1] in known  # "a/#" matches "a" too
            found[text] = [*near, known[start[:-1]]] if is_more else near
        else:
            found[text] = [place for place in near if matches(pattern, topics[place])]
    return found
