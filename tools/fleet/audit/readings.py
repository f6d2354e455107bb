"""Readings of devices: each once, whatever happened to it on the way, and the gaps.

Works on all messages of some devices.  A reading is known by device, boot counter,
stream and sequence number (docs/reference/readings.md).
"""

import numpy as np
import pyarrow as pa

from .. import schemas
from ..capture.payloads import MAGIC, MOST_VALUES
from ..columns import begins, coded, factorized, marked, over, table
from .alignment import SKEW_US
from .envelopes import devices, headers, measured, unpack
from .rows import FAR, clients, dictionary, grouped
from .rules import LOSSES
from .traffic import flags, is_published, numbers

# The columns of messages that `readings` reads.
COLUMNS = """
site client_id connection direction topic qos retain first_sent times_sent times_dup gaps is_early
envelope packet_id capture offset
""".split()
_COUNTING_PART, _COUNTING_LEAST = 0.8, 3  # part of the steps that are one, and steps at least
_LOST = ["site", "topic", "qos", "connection", "packet_id", "capture", "offset"]


def readings(messages):
    """-> {"readings", "losses"} from the messages (with envelopes) of some devices."""
    messages = _counting(messages)
    laid = _Laid(messages)
    return {"readings": _readings(messages, laid), "losses": _losses(messages, laid)}


def _counting(messages):
    # -> the messages without JSON objects whose field is no counter: that grows by one nearly
    # every time, and never goes back.
    fields = headers(messages["envelope"])
    at = np.flatnonzero(fields["magic"] == MAGIC)
    if not len(at):
        return messages
    fields, sent = fields[at], numbers(messages, "first_sent")[at]
    site, direction = (dictionary(messages[name])[0][at] for name in ("site", "direction"))
    series = grouped(devices(fields).indices.to_numpy(), site, fields["stream"], direction)
    number = fields["boot"].astype(np.int64) << 32 | fields["sequence"]
    order = np.lexsort((sent, series))
    step, same = np.diff(number[order]), np.diff(series[order]) == 0
    owner, count = series[order][1:], int(series.max()) + 1
    moves = np.bincount(owner[same & (step != 0)], minlength=count)
    ones = np.bincount(owner[same & ((step == 1) | (step >= 1 << 31))], minlength=count)
    backs = np.bincount(owner[same & (step < 0)], minlength=count)
    is_good = (ones >= _COUNTING_PART * moves) & (moves >= _COUNTING_LEAST) & (backs == 0)
    return messages.filter(pa.array(~marked(len(messages), at[~is_good[series]])))


class _Laid:
    # Messages by reading: `order` are their rows, `first` the places in `order` where each reading
    # begins, `group` the reading of each place, `sent` and `published` what is known of it.
    def __init__(self, messages):
        fields = headers(messages["envelope"])
        sites, _ = dictionary(messages["site"])
        self.devices = devices(fields)
        self._devices = max(1, len(self.devices.dictionary))
        device = sites.astype(np.int64) * self._devices + self.devices.indices.to_numpy()
        # A reading is known by its series, of a device at a site, and its place in that.
        self.series = device << 8 | fields["stream"]
        self._number = fields["boot"].astype(np.uint64) << 32 | fields["sequence"]
        sent = numbers(messages, "first_sent")
        self.order = order = np.lexsort((sent, self._number, self.series))
        is_first = begins(self.series[order], self._number[order])
        self.first, self.group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        self.sent, self.published = sent[order], is_published(messages)[order]

    def keys(self):
        """Site, device, stream, boot and sequence of each reading."""
        row = self.order[self.first]
        device, stream = np.divmod(self.series[row], 256)
        boot, sequence = np.divmod(self._number[row], np.uint64(1 << 32))
        both = boot.astype(np.int64), sequence.astype(np.int64)
        return *np.divmod(device, self._devices), stream, *both

    def least(self, values):
        """Of each reading, over its messages."""
        return over(np.minimum, len(self.first), self.group, values, FAR)


def _readings(messages, laid):
    order, first, group = laid.order, laid.first, laid.group
    published, sent = laid.published, laid.sent
    published_at = laid.least(np.where(published, sent, FAR))
    delivered_at = laid.least(np.where(published, FAR, sent))
    # Published long after it was delivered is published again: the first was not captured.
    known = (published_at < FAR) & (published_at - SKEW_US <= delivered_at) & (delivered_at < FAR)
    latency = np.maximum(np.where(known, delivered_at, 0) - published_at, 0) / 1000
    times = messages["times_sent"].to_numpy()[order]
    # If a reading is published and delivered at two QoS, that of the device counts.
    place = np.arange(len(order))
    best = laid.least(np.where(published, place, FAR))
    chosen = order[np.where(best < FAR, best, first)]
    one = unpack(messages["envelope"], chosen)
    # At QoS 1 a repeat is legal, also if the capture shows it as a new message.
    dups = messages["times_dup"].to_numpy()[order]
    is_repeat = (dups >= times) & (messages["qos"].to_numpy()[order] == 1)
    # The broker sends a retained message anew for each subscription.
    is_repeat |= flags(messages["retain"])[order]
    # A number for each client and topic: devices may publish a reading on several.
    topic, topics = dictionary(messages["topic"])
    taker = (clients(messages)[0] * (len(topics) + 1) + topic + 1)[order]
    delivered = _most(taker, group, ~published, len(first))
    anew = _most(taker, group, ~published & ~is_repeat, len(first))
    anew = np.maximum(anew, np.minimum(delivered, 1))
    codes, versions = factorized(one["firmware"].astype(np.int64))
    versions = ["%d.%d" % divmod(number, 256) if number else None for number in versions.tolist()]
    columns = {
        "device": laid.devices.take(pa.array(chosen)),
        "stream": one["stream"].astype(np.int16),
        **{name: one[name].astype(np.int64) for name in ("boot", "sequence", "uptime_s")},
        "firmware": coded(codes, versions),
        "measured": measured(one),
        "ts": np.minimum(published_at, delivered_at),
        "published": pa.array(published_at, mask=published_at == FAR),
        "delivered": pa.array(delivered_at, mask=delivered_at == FAR),
        "latency_ms": pa.array(latency, mask=~known),
        "times_published": np.bincount(group, published, len(first)).astype(np.int64),
        "times_delivered": anew,
        "redelivered": (np.bincount(group, times > 1, len(first)) > 0) | (anew < delivered),
        "values": _values(one),
    }
    rows = messages.select(["site", "topic", "qos"]).take(pa.array(chosen))
    return table(columns, schemas.READINGS, rows)


def _most(taker, group, delivered, count):
    # -> for each reading, the most deliveries to one subscriber on one topic.
    width = int(taker.max(initial=-1)) + 1
    owner, taker = group[delivered], taker[delivered]
    result = np.bincount(owner, minlength=count)
    several = result[owner] > 1
    pairs, times = np.unique(owner[several] * width + taker[several], return_counts=True)
    result = np.minimum(result, 1)
    np.maximum.at(result, pairs // width, times)
    return result


def _values(fields):
    # An Arrow map from kind to value.
    count = fields["count"].astype(np.int64)
    kept = np.arange(MOST_VALUES)[None, :] < count[:, None]
    offsets = pa.array(np.concatenate(([0], np.cumsum(count))).astype(np.int32))
    kinds = pa.array(fields["values"]["kind"][kept].astype(np.int16))
    values = pa.array(fields["values"]["value"][kept].astype(np.int64))
    return pa.MapArray.from_arrays(offsets, kinds, values)


def _losses(messages, laid):
    # Numbers left out between two readings of a stream, or before the first of a boot
    # that began while the capture ran.
    order, first = laid.order, laid.first
    site, device, stream, boot, sequence = of = laid.keys()
    same_stream, same_boot = (~begins(site, device, stream, *more) for more in ((), (boot,)))
    before = np.concatenate(([0], sequence[:-1]))
    missing = np.where(same_boot, sequence - before - 1, 0)
    is_later_boot = same_stream & ~same_boot
    missing = np.where(is_later_boot, sequence - 1, missing)
    from_number = np.where(same_boot, before + 1, 1)
    # They may be in a gap of the capture, or came before it began: no loss is reported.
    unsure = _is_behind_gap(messages, laid)
    is_early = flags(messages["is_early"])[order[first]]
    # A reading that only came from the broker's store proves nothing.
    is_kept = flags(messages["retain"])[order] & ~laid.published
    is_apart = is_early | np.logical_and.reduceat(is_kept, first)
    unsure = unsure | is_apart
    unsure[1:] |= is_apart[:-1]
    # A device that sends the newest first has still to send those in between.
    when = laid.sent[first]
    unsure[1:] |= same_boot[1:] & (when[:-1] > when[1:])
    at = np.flatnonzero((missing > 0) & ~unsure)
    at, from_number, to_number = _not_elsewhere(of, at, from_number[at], sequence[at] - 1)
    chosen = pa.array(order[first[at]])
    names = laid.devices.take(chosen)
    reasons = _reasons(messages, laid, at)
    columns = {
        "kind": ["unexplained" if one == "apart" else "never_seen" for one in reasons],
        "ts": when[at],
        **{"device": names, "published_by": names.cast(pa.string())},
        **{"boot": boot[at], "stream": stream[at]},
        **{"first_sequence": from_number, "last_sequence": to_number},
        "messages": to_number - from_number + 1,
        "sure": [LOSSES[one].sure for one in reasons],
        "evidence": [LOSSES[one].why for one in reasons],
    }
    return table(columns, schemas.LOSSES, messages.select(_LOST).take(chosen))


def _is_behind_gap(messages, laid):
    # -> for each reading: are bytes missing since one of its clients had another reading of its
    # series?  If the device was captured with both, only its own bytes count.
    gaps = messages["gaps"].to_numpy()[laid.order]
    result = np.zeros(len(laid.first), bool)
    if not gaps.any():
        return result
    route = grouped(laid.series[laid.order], clients(messages)[0][laid.order])
    place = np.lexsort((laid.group, route))
    behind, before = place[1:], place[:-1]
    changed = (route[behind] == route[before]) & (gaps[behind] != gaps[before])
    is_sent = np.bincount(laid.group, laid.published, len(laid.first)) > 0
    is_sent[1:] &= is_sent[:-1]
    tells = laid.published | ~is_sent[laid.group]
    result[laid.group[behind[changed & tells[behind]]]] = True
    return result


def _not_elsewhere(keys, at, begin, end):
    # -> the gaps `at` in the numbers of a device, from `begin` to `end`, without the numbers that
    # another site has, as the device was there meanwhile.  One gap may become several.
    site, device, stream, boot, sequence = keys
    if not len(at) or site.min() == site.max():
        return at, begin, end
    series = grouped(device, stream, boot)
    order = np.lexsort((sequence, series))
    number, owner = sequence[order], series[order]
    width = int(max(sequence.max(), end.max())) + 2
    place = owner * width + number  # a bucket has few enough series for 64 bits
    low = np.searchsorted(place, series[at] * width + begin)
    high = np.searchsorted(place, series[at] * width + end, "right")
    found: list[tuple] = []
    for gap, first, last, some in zip(
        at.tolist(), begin.tolist(), end.tolist(), map(slice, low, high), strict=True
    ):
        for one in np.unique(number[some]).tolist():
            if one > first:
                found.append((gap, first, one - 1))
            first = one + 1
        if first <= last:
            found.append((gap, first, last))
    return tuple(np.array(found, np.int64).reshape(-1, 3).T)


def _reasons(messages, laid, at):
    # -> the name in `LOSSES` for each reading before which some are missing.  The one before may
    # be of an earlier boot, and so of another connection.
    connection = dictionary(messages["connection"])[0][laid.order]
    ends = np.append(laid.first[1:], len(laid.order))
    reasons = []
    for one in at.tolist():
        near = [slice(laid.first[index], ends[index]) for index in (one - 1, one)]
        if all(laid.published[some].any() for some in near):
            own = [set(connection[some][laid.published[some]].tolist()) for some in near]
            reasons.append("published" if set.intersection(*own) else "moved")
            continue
        both = set.intersection(*(set(connection[some].tolist()) for some in near))
        reasons.append("received" if both else "apart")
    return reasons
