"""Packets -> messages: which PUBLISHes and acknowledgements belong together.

Theory of operation.  All packets of one packet id in one direction of one client
are looked at in order.  A PUBLISH begins a new message unless it repeats the one
before: same topic, payload and QoS in the same session, and either that one was
not finished or DUP is set (its acknowledgement may have been lost behind the place
where the capture was made).  In JSON lines, which show no acknowledgement, only DUP
makes it a repeat.  What follows belongs to the last message begun.
Everything is a sort and sums over runs; there is no loop over packets.
"""

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import begins, coded, marked, over, table
from . import envelopes
from .rows import FAR, TYPES, grouped
from .told import read

PUBLISH, PUBACK, PUBREC = TYPES["PUBLISH"], TYPES["PUBACK"], TYPES["PUBREC"]
PUBREL, PUBCOMP = TYPES["PUBREL"], TYPES["PUBCOMP"]
# Packets may be under way when a capture begins or ends, so nothing is judged within this
# time of it.
GRACE_US = 5_000_000
# Frames of the two directions may be recorded so much out of order.
SWAPPED_US = 100_000
_STAGES = ("puback", "pubrec", "pubrel", "pubcomp")
# What two transmissions of one message have in common.
IDENTITY = ("client", "direction", "topic", "payload_hash", "qos")


class Gaps:
    """Where bytes are missing: from the last packet before to the first one behind."""

    def __init__(self, rows):
        self._end = np.flatnonzero(rows.kind == TYPES["GAP"])
        self._begin = np.array([self._before(rows, one) for one in self._end.tolist()], np.int64)
        # starts[p], ends[p]: how many gaps begin, end, in the rows before p.
        both, size = (self._begin, self._end), len(rows) + 1
        self._starts, self._ends = (np.cumsum(np.bincount(at + 1, None, size)) for at in both)

    @staticmethod
    def _before(rows, at):
        first = rows.first_of[rows.connection[at]]
        # A GAP row stands where the stream goes on: the bytes are missing before it.
        is_same = rows.direction[first:at] == rows.direction[at]
        same = np.flatnonzero(rows.is_packet[first:at] & is_same)
        return first + same[-1] if len(same) else first

    def times(self, rows):
        """[(client, begin, end)] in microseconds."""
        times = (rows.ts[at].tolist() for at in (self._begin, self._end))
        return list(zip(rows.client[self._end].tolist(), *times, strict=True))

    def touch(self, begin, end):
        """Is anything missing between the rows `begin` and `end`, both included?"""
        return self._starts[end + 1] - self._ends[begin] > 0

    def before(self, rows, at):
        """How many of the same client end before each of these rows?"""
        return self._ends[at] - self._ends[rows.first_of[rows.connections_of[rows.client[at]]]]

    def any_since(self, begin, end):
        """Did a gap begin in the rows from `begin` to `end`?"""
        return self._starts[end + 1] - self._starts[begin] > 0


class Flows:
    """Messages at QoS 1 and 2, and the packets of each.

    Packet arrays are sorted by client, direction and id, then time: `row` (in
    `Rows`), `flow` (-1: of no message that was captured), `is_moved` (a PUBLISH, on another
    connection than the one before it).  Flow arrays have one
    entry for each message: `publish_row` of its first PUBLISH, `last_row` of its last PUBLISH
    or PUBREL, and so on.
    """

    def __init__(self, rows, sessions, gaps):
        self.rows = rows
        is_ack = np.isin(rows.kind, (PUBACK, PUBREC, PUBREL, PUBCOMP))
        is_publish = (rows.kind == PUBLISH) & ((rows.qos == 1) | (rows.qos == 2))
        select = np.flatnonzero((is_ack | is_publish) & (rows.packet_id > 0))
        kind = rows.kind[select]
        back = (kind == PUBACK) | (kind == PUBREC) | (kind == PUBCOMP)
        direction = rows.direction[select] ^ back
        key = (rows.client[select] * 2 + direction) << 16 | rows.packet_id[select].astype(np.int64)
        order = np.argsort(key, kind="stable")
        self.row = select[order]
        self.key = key[order]
        self.kind = kind[order]
        self._unswap()
        self.session = sessions.number[rows.connection[self.row]]
        self._begin(sessions)
        self._sum(sessions, gaps)

    def _unswap(self):
        # Swap an acknowledgement that was recorded just before its PUBLISH, unless one of the two
        # has a closer partner: the PUBLISH before, or the acknowledgement behind.
        kind, key = self.kind, self.key
        if len(kind) < 2:
            return
        connection = self.rows.connection[self.row]
        same = (key[1:] == key[:-1]) & (connection[1:] == connection[:-1])
        wait = np.abs(np.diff(self.rows.ts[self.row]))  # a clock may be set back
        is_near = same & (wait < SWAPPED_US)
        at = np.flatnonzero(is_near & (kind[:-1] != PUBLISH) & (kind[1:] == PUBLISH))
        if len(at) and self._sort_stages(is_near):
            return self._unswap()
        at = at[np.isin(kind[at], (PUBACK, PUBREC))]
        if not len(at):
            return
        # Times to the outer neighbours: a closer one is the better match.
        before, behind = np.full((2, len(at)), FAR)
        inner = at > 0
        inner[inner] = same[at[inner] - 1] & (kind[at[inner] - 1] == PUBLISH)
        before[inner] = wait[at[inner] - 1]
        inner = at + 2 < len(kind)
        inner[inner] = same[at[inner] + 1] & (kind[at[inner] + 2] == kind[at[inner]])
        behind[inner] = wait[at[inner] + 1]
        at = at[(wait[at] < before) & (wait[at] < behind)]
        order = np.arange(len(kind))
        order[at], order[at + 1] = at + 1, at
        self.row, self.key, self.kind = self.row[order], key[order], kind[order]

    def _sort_stages(self, is_near):
        # Sort the packets of one message that are close together, PUBLISH first -> any found?
        kind = self.kind
        begins = np.append(True, ~is_near)
        first = np.flatnonzero(begins)
        bits = np.left_shift(1, kind.astype(np.int64))
        once = np.add.reduceat(bits, first) == np.bitwise_or.reduceat(bits, first)
        has_publish = np.logical_or.reduceat(kind == PUBLISH, first)
        chosen = once & has_publish & (kind[first] != PUBLISH)
        if not chosen.any():
            return False
        group = np.cumsum(begins) - 1
        order = np.lexsort((np.where(chosen[group], kind, 0), group))
        self.row, self.key, self.kind = self.row[order], self.key[order], kind[order]
        return True

    def _begin(self, sessions):
        rows, row, key, kind = self.rows, self.row, self.key, self.kind
        publish = np.flatnonzero(kind == PUBLISH)
        at, before = publish[1:], publish[:-1]
        begun = row[publish]
        alike = (getattr(rows, name)[begun] for name in ("payload_hash", "topic", "qos"))
        same = ~begins(key[publish], self.session[publish], *alike)[1:]
        done = np.where(
            rows.qos[begun[1:]] == 1,
            _between(kind == PUBACK, before, at),
            _between((kind == PUBCOMP) | self._is_refusal(), before, at),
        )
        # Without the other side's packets it is not known what was acknowledged.
        is_seen = rows.is_captured[row[at]] & ~sessions.is_one_way[rows.connection[row[before]]]
        repeats = same & (rows.dup[row[at]] | (~done & is_seen))
        is_new = marked(len(row), publish)
        is_new[at[repeats]] = False
        self.first = np.flatnonzero(is_new)
        flow = np.cumsum(is_new) - 1
        if len(self.first):
            start = self.first[np.maximum(flow, 0)]
            is_ours = (flow >= 0) & (key[start] == key) & (self.session[start] == self.session)
            flow = np.where(is_ours, flow, -1)
        self.flow = flow
        self.is_repeat = (kind == PUBLISH) & ~is_new

    def _is_refusal(self, kind=PUBREC):
        return (self.kind == kind) & (self.rows.reason_code[self.row] >= 128)

    def _sum(self, sessions, gaps):
        rows, first = self.rows, self.first
        count = len(first)
        own = self.flow >= 0
        self.publish_row = self.row[first]
        self.qos = rows.qos[self.publish_row]
        self.last_row = self.publish_row.copy()
        sent = np.flatnonzero(own & ((self.kind == PUBLISH) | (self.kind == PUBREL)))
        np.maximum.at(self.last_row, self.flow[sent], self.row[sent])
        self.stage_row = {}
        for name in _STAGES:
            at = np.flatnonzero(own & (self.kind == TYPES[name.upper()]))
            of = self.flow[at], self.row[at]
            self.stage_row[name] = over(np.minimum, count, *of, FAR)
        repeats = own & self.is_repeat
        self.sent = 1 + self._total(repeats)
        firsts = marked(len(self.row), first)
        self.dups = self._total((repeats | firsts) & rows.dup[self.row])
        publish = np.flatnonzero(self.kind == PUBLISH)
        where = rows.connection[self.row[publish]]
        self.is_moved = marked(len(self.row), publish[1:][where[1:] != where[:-1]])
        self.moves = self._total(repeats & self.is_moved)
        refused = self._total(own & self._is_refusal()) > 0
        self.is_refused = refused | (self._total(own & self._is_refusal(PUBACK)) > 0)
        self.answer_row = np.minimum(self.stage_row["puback"], self.stage_row["pubrec"])
        done = np.where(self.qos == 1, self.stage_row["puback"], self.stage_row["pubcomp"])
        refused_at = np.where(refused, self.stage_row["pubrec"], FAR)
        self.done_row = np.minimum(done, refused_at)
        self.is_complete = self.done_row < FAR
        # Each client has rows, in the order of the clients' numbers.
        last_of_client = rows.first_of[rows.connections_of[1:]] - 1
        end = last_of_client[rows.client[self.publish_row]]
        # Or where the same id begins its next message in this session.
        follows = np.flatnonzero(~begins(self.key[first], self.session[first])[1:])
        end[follows] = self.publish_row[follows + 1]
        self.is_reused = marked(count, follows)
        end = np.minimum(end, self.done_row)
        # JSON lines of a subscriber show no acknowledgement, so no end of a message.
        self.is_known = ~gaps.touch(self.publish_row, end) & rows.is_captured[self.publish_row]
        self.is_known &= ~sessions.is_one_way[rows.connection[self.publish_row]]

    def _total(self, mask):
        # -> for each flow, how many of its packets have the mask set.
        return np.bincount(self.flow[np.flatnonzero(mask)], minlength=len(self.first))

    def is_near_publish(self, place):
        """For these packets: does a PUBLISH of their id follow closely, out of order?"""
        publish = np.flatnonzero(self.kind == PUBLISH)
        after = np.append(publish, -1)[np.searchsorted(publish, place)]
        ts = self.rows.ts[self.row]
        near = (after >= 0) & (self.key[after] == self.key[place])
        return near & (ts[after] - ts[place] < SWAPPED_US)

    def states(self, sessions):
        """What became of each flow: index into `STATES`."""
        rows = self.rows
        connection = rows.connection[self.publish_row]
        last = over(np.maximum, len(rows.client_of), rows.client_of, sessions.number, 0)
        is_over = sessions.number[connection] < last[rows.client_of[connection]]
        given_up = (self.is_reused | is_over) & ~self._is_sent_again(sessions)
        return np.select([self.is_complete, ~self.is_known, given_up], [0, 3, 2], 1)

    def _is_sent_again(self, sessions):
        # A client may send it in a later session as a new message, as it keeps what is to be sent.
        rows, row = self.rows, self.publish_row
        again = rows.dup[row]
        if not again.any():
            return again
        same = grouped(*(getattr(rows, name)[row] for name in IDENTITY))
        session = sessions.number[rows.connection[row]]
        last = over(np.maximum, len(row), same[again], session[again], -1)
        return last[same] > session


STATES = ("complete", "open", "abandoned", "unknown")


def _between(mask, before, at):
    count = np.cumsum(mask, dtype=np.int64)
    return count[at] > count[before]


def unanswered(rows):
    """Every PUBLISH that is of no flow: at QoS 0, or such that nobody can answer it (with packet
    id 0, which is none, or at QoS 3)."""
    is_flow = ((rows.qos == 1) | (rows.qos == 2)) & (rows.packet_id > 0)
    return np.flatnonzero((rows.kind == PUBLISH) & ~is_flow)


def messages(rows, sessions, gaps, flows, clock):
    """The `schemas.MESSAGES` table: `flows`, behind them all that are `unanswered`."""
    plain = unanswered(rows)
    at = np.concatenate((flows.publish_row, plain))
    extra = len(plain)
    state = np.concatenate((flows.states(sessions), np.zeros(extra, np.int64)))
    ts = np.append(rows.ts, FAR)  # the last entry is for FAR as a row number
    none, once, never = np.full(extra, FAR), np.ones(extra, np.int64), np.zeros(extra, bool)
    is_plain = np.arange(len(at)) >= len(flows.publish_row)
    stage = {n: _times(ts, np.append(r, none)) for n, r in flows.stage_row.items()}
    sent = ts[at]
    answer = np.minimum(stage["puback"], stage["pubrec"])
    done = _times(ts, np.append(flows.done_row, none))
    twice = clock.is_twice(at)  # it is not known what came first there
    before = np.append(_is_sent_before(rows, sessions, gaps, flows), never)
    columns = {
        "direction": coded(rows.direction[at], schemas.DIRECTIONS),
        "packet_id": pa.array(rows.packet_id[at], pa.int64(), mask=rows.packet_id[at] < 1),
        "retain": rows.flags[at] & 1 != 0,
        "times_sent": np.append(flows.sent, once),
        "times_dup": np.append(flows.dups, rows.dup[plain]),
        "connections": np.append(flows.moves + 1, once),
        **{"answer_ms": _milliseconds(sent, answer), "complete_ms": _milliseconds(sent, done)},
        "is_complete": pa.array(np.append(flows.is_complete, never), mask=is_plain),
        "state": coded(state, STATES, is_plain),
        "level": pa.array(rows.level[at], pa.int8(), mask=rows.level[at] < 0),
        "session": sessions.number[rows.connection[at]],
        **{"position": at, "first_sent": sent},
        "gaps": gaps.before(rows, at),
        "is_refused": np.append(flows.is_refused, never),
        "is_early": is_early(rows, sessions, at) | twice,
        "is_known": sessions.is_known[rows.connection[at]],
        "is_sent_before": before | twice,
        "expiry_s": expiries(rows, at),
    }
    # At QoS 0 the broker accepts a message when it is sent.  At QoS 2 it may wait for PUBREL
    # before it passes the message on, and PUBCOMP proves that it got that.
    released = np.where(flows.is_complete, flows.stage_row["pubrel"], FAR)
    accepted = np.where(flows.qos == 1, flows.stage_row["puback"], released)
    accepted[flows.is_refused] = FAR
    accepted = np.append(accepted, np.where(rows.qos[plain] == 0, plain, FAR))
    accepted[rows.direction[at] == 1] = FAR
    stage["accepted"] = _times(ts, accepted)
    for name, times in stage.items():
        columns[name] = pa.array(times, pa.int64(), mask=times == FAR)
    for name in ("qos", "payload_bytes", "packet_bytes", "payload_hash", "number"):
        columns[name] = getattr(rows, name)[at]
    columns["server"] = sessions.servers_at(at)
    own = ("site", "client_id", "connection", "capture", "offset", "topic", "envelope")
    columns.update(rows.columns(own, at))
    columns.update(envelopes.decode(columns["envelope"]))
    return table(columns, schemas.MESSAGES)


def expiries(rows, at):
    """Message expiry of the PUBLISHes at these rows, as Arrow; few have one, null without."""
    if not (rows.level[at] == 5).any():
        return pa.nulls(len(at), pa.int64())
    codes, said = read(rows.strings("detail", at))
    values = pa.array([one.get("message_expiry_s") for one in said], pa.int64())
    return values.take(pa.array(codes))


def _times(ts, row):
    return ts[np.minimum(row, len(ts) - 1)]


def _milliseconds(begin, end):
    is_open = end == FAR
    # Clocks may jump: a negative time would only mislead.
    value = np.maximum(np.where(is_open, 0, end) - begin, 0) / 1000
    return pa.array(value, mask=is_open)


def may_be_repeat(rows, sessions, gaps, at):
    """Of first PUBLISHes: is it marked as a repeat, of what may have been sent where nothing was
    captured?"""
    connection = rows.connection[at]
    since = sessions.first_rows()[connection]
    is_whole = sessions.is_known[connection] & ~gaps.any_since(since, at)
    # A connection that breaks may take the first PUBLISH with it before it is captured.
    is_whole &= sessions.is_after_goodbye[rows.direction[at], connection]
    return rows.dup[at] & ~is_whole


def _is_sent_before(rows, sessions, gaps, flows):
    # Marked as a repeat of what was not captured, in an earlier session either, where it would
    # have been left open.
    row = flows.publish_row
    mask = may_be_repeat(rows, sessions, gaps, row)
    is_open = ~mask & ~flows.is_complete
    payload = rows.payload_hash[row]
    some = np.flatnonzero(mask | (is_open & np.isin(payload, payload[mask])))
    same = grouped(*(getattr(rows, name)[row[some]] for name in IDENTITY))
    is_open = is_open[some]
    first = over(np.minimum, len(some), same[is_open], row[some[is_open]], FAR)
    return marked(len(row), some[mask[some] & (first[same] > row[some])])


def is_early(rows, sessions, at):
    """Of a client that talked before the capture began: what comes shortly behind its first
    packet (it may be repeated, or overtaken), or is marked as a repeat."""
    first = np.minimum.reduceat(rows.start_of, rows.connections_of[:-1])
    is_close = rows.ts[at] - first[rows.client[at]] < GRACE_US
    may_be = (is_close & rows.is_captured[at]) | rows.dup[at]
    return may_be & ~sessions.is_known[rows.connection[at]]
