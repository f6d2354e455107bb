"""Segments in, batches of `schemas.CODED_EVENTS` out; everything that lasts is kept here.

`Decoder` takes segments batch by batch, in capture order, and hands out the rows
they complete.  How the traffic is cut into batches changes no row.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..capture import files, jsonl, link
from ..capture.frames import PAD_BYTES
from ..capture.link import FIN, RST, SYN
from ..capture.payloads import COUNTERS
from ..columns import coded, factorized, in_runs, table, whole
from . import fields
from .connections import Registry
from .framing import Framer
from .order import in_tcp_order
from .streams import Pieces, Streams

_ORDINAL_SHIFT = 22  # room for the packets that one segment can complete
_TYPES = [*schemas.PACKET_TYPES, *schemas.EVENT_TYPES]
_PACKETS = pa.array(schemas.PACKET_TYPES)
_GAPS = pa.array(("GAP", "MALFORMED", "NOT_MQTT", "INCOMPLETE", "UNREAD", "ENCRYPTED"))
_EVENT_CODES = {name: code for code, name in enumerate(_TYPES)}
# Rows of an array of events, one column for each; behind the kind comes the size.
_CAPTURE, _STREAM, _KIND, _WHERE, _WIDTH = 0, 1, 2, slice(4, 7), 7


def decoded(source, ports, tally, counters=COUNTERS):
    """Yield batches of rows of one `files.Source` that holds whole connections; `ports` is a set.

    Lines of JSON are such rows, too.
    """
    if files.is_json(source):
        yield from jsonl.read_events(source, tally, counters)
        return
    decoder = Decoder(source.site, counters)
    for frames in files.read_frames(source.path, tally):
        yield from decoder.feed(link.segments(frames, ports, tally), source.capture)
    yield from decoder.finish()


class Decoder:
    """Decodes the traffic of one `site`; `capture` names the file being fed.

    `counters` are names of JSON fields that count readings.
    """

    def __init__(self, site, counters=COUNTERS):
        self._site, self._counters = site, counters
        self._registry = Registry()
        self._streams = Streams()
        self._framer = Framer()
        self._aliases = fields.Aliases()
        # Events of connections that have not said who they are; all captures so far.
        self._held, self._captures = _columns([]), []
        self._known = np.empty(0, np.int64)  # connections so far

    def feed(self, segments, capture):
        """Rows that these `Segments` complete: a list of record batches."""
        if not len(segments.ts):
            return []
        segments = segments.in_time_order()
        numbers, ordinals = self._registry.assign(segments, capture)
        by_time = segments, numbers, ordinals
        count = len(self._registry.all)
        segments = in_tcp_order(segments, numbers, self._streams.next_seq(count))
        pieces, parts = self._streams.feed(segments, numbers, ordinals, count)
        direct, joined, events = self._framer.feed(pieces, parts, self._streams.is_opened.array)
        self._miss(events)
        out = self._packet_rows([direct, joined], capture)
        tcp = self._tcp_events(segments, numbers, ordinals)
        events += self._clock_events(by_time)
        if capture not in self._captures[-1:]:
            self._captures.append(capture)
        self._hold(len(self._captures) - 1, _columns(events), *tcp)
        # An event waits until its connection's client id is known, so that all rows
        # of a connection name the same client.
        codes, uniques = factorized(self._held[_STREAM] >> 1)
        known = self._registry.all
        is_known = np.array([known[one].client_id is not None for one in uniques.tolist()], bool)
        chosen, self._held = (self._held[:, some[codes]] for some in (is_known, ~is_known))
        return out + self._event_rows(chosen)

    def _hold(self, captures, *parts):
        # `captures`: the number of that which each event, or all, are of.
        events = np.concatenate(parts, axis=1)
        events[_CAPTURE] = captures
        self._held = np.concatenate((self._held, events), axis=1)

    def finish(self):
        """Rows for what was still waiting; call it once, at the end.

        They are of the capture that their connection was seen in last.
        """
        parts = self._streams.finish()
        _, joined, events = self._framer.feed(_NOTHING, parts, self._streams.is_opened.array)
        self._miss(events)
        out = self._packet_rows([None, joined], None)
        events = _columns(events + self._framer.finish())
        place = {name: at for at, name in enumerate(self._captures)}
        connections = (events[_STREAM] >> 1).tolist()
        self._hold([place[self._registry.all[one].capture] for one in connections], events)
        return out + self._event_rows(self._held)

    def _miss(self, events):
        for stream, kind, _, ordinal, *_ in events:
            if kind == "GAP":
                self._aliases.miss(stream, ordinal)

    def _packet_rows(self, found, capture):
        found = [packets for packets in found if packets is not None and len(packets.at)]
        hellos = [fields.introduce(packets, self._registry.all) for packets in found]
        return [self._packet_batch(*one, capture) for one in zip(found, hellos, strict=True)]

    def _packet_batch(self, packets, hellos, capture):
        codes, uniques = factorized(packets.stream >> 1)
        levels = np.array([self._registry.all[n].level for n in uniques.tolist()], np.int8)[codes]
        columns = fields.decode(packets, levels, self._aliases, hellos, self._counters)
        order = in_runs(packets.stream, packets.ordinal)
        columns["number"] = (packets.ordinal << _ORDINAL_SHIFT) + order + 1
        columns["level"] = pa.array(levels, mask=levels == 0)
        columns["ts"] = packets.ts
        columns["offset"] = packets.offset
        known = [self._registry.all[n].capture for n in uniques.tolist()]
        origin = coded(codes, known) if capture is None else _repeated(capture, len(levels))
        return self._batch(columns, packets.stream, codes, uniques, origin)

    def _event_rows(self, events):
        capture, stream, kind, size, ordinal, ts, offset = events
        count = len(stream)
        if not count:
            return []
        codes, uniques = factorized(stream >> 1)
        names = ("flags", "qos", "dup", "retain", "packet_bytes", "payload_hash")
        columns = dict.fromkeys(names, np.zeros(count, np.int8))
        columns |= {"packet_type": kind, "payload_bytes": size, "ts": ts, "offset": offset}
        columns["number"] = ordinal << _ORDINAL_SHIFT
        used, capture = np.unique(capture, return_inverse=True)
        origin = coded(capture, [self._captures[one] for one in used.tolist()])
        return [self._batch(columns, stream, codes, uniques, origin)]

    def _tcp_events(self, segments, numbers, ordinals):
        # Several times columns as of `_columns`.
        stream = 2 * numbers + ~segments.to_server
        for flag, kind in ((SYN, "TCP_OPEN"), (FIN, "TCP_FIN"), (RST, "TCP_RESET")):
            at = np.flatnonzero(segments.flags & flag)
            rows = np.zeros((_WIDTH, len(at)), np.int64)
            rows[_STREAM], rows[_KIND] = stream[at], _EVENT_CODES[kind]
            rows[_WHERE] = ordinals[at], segments.ts[at], segments.offset[at]
            yield rows
        at = np.flatnonzero(segments.flags & FIN)
        for place, missing in self._streams.cut_off(segments, stream, at):
            where = ordinals[place], segments.ts[place], segments.offset[place]
            yield _columns([(stream[place], "GAP", missing, *where)])

    def _clock_events(self, by_time):
        # Of each connection that goes on behind the place where the file's times go back, or
        # begins there in a time that was there before.
        segments, numbers, ordinals = by_time
        known, self._known = self._known, np.union1d(self._known, numbers)
        events = []
        for offset, before, behind in segments.set_back:
            late = np.flatnonzero(segments.offset >= offset)
            known = np.union1d(known, numbers[segments.offset < offset])
            found, first = np.unique(numbers[late], return_index=True)
            for number, at in zip(found.tolist(), late[first].tolist(), strict=True):
                if number in known or segments.ts[at] < before:
                    where = int(ordinals[at]), behind, int(segments.offset[at])
                    events.append((2 * number, "CLOCK_SET", before - behind, *where))
        return events

    def _batch(self, columns, stream, codes, uniques, capture):
        known = [self._registry.all[number] for number in uniques.tolist()]
        count = len(stream)
        columns["site"] = _repeated(self._site, count)
        columns["capture"] = capture
        columns["connection"] = coded(codes, [one.name for one in known])
        columns["client_id"] = coded(codes, [one.client_id for one in known])
        columns["direction"] = coded(stream & 1, schemas.DIRECTIONS)
        columns["packet_type"] = coded(columns["packet_type"], _TYPES)
        return table(columns, schemas.CODED_EVENTS).to_batches()[0]


def only_packets(events):
    """Of coded events (a table or a batch) those that are MQTT packets."""
    return _only(events, _PACKETS)


def only_gaps(events):
    """Of coded events those that stand where packets should be, named as in `schemas.GAPS`."""
    return _only(events, _GAPS).rename_columns({"packet_type": "kind", "payload_bytes": "bytes"})


def _only(events, kinds):
    column = whole(events["packet_type"])
    is_chosen = pc.is_in(column.dictionary, kinds).take(column.indices)
    return events if pc.all(is_chosen).as_py() else events.filter(is_chosen)


def _columns(events):
    # Tuples of (stream, kind, size, ordinal, ts, offset), each a column; which capture they
    # are of is put in later.
    columns = np.zeros((_WIDTH, len(events)), np.int64)
    for at, (stream, kind, *rest) in enumerate(events):
        columns[_STREAM:, at] = stream, _EVENT_CODES[kind], *rest
    return columns


def _repeated(value, count):
    return coded(np.zeros(count, np.int32), [value])


_EMPTY = np.empty(0, np.int64)
_NOTHING = Pieces(np.zeros(PAD_BYTES, np.uint8), *[_EMPTY] * 6)
