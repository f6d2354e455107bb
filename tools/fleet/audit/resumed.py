"""What a session that goes on has to send again, and did not.

At levels 4 and 5 both sides send again what has no answer when the server says that it kept
the session (MQTT-4.4.0-1).  Level 3 has no way to say so, and is not judged.
"""

import numpy as np

from ..columns import over
from .messages import GRACE_US, IDENTITY, PUBLISH, expiries
from .rows import FAR, TYPES, grouped
from .traffic import flags

_FIN = TYPES["TCP_FIN"]


def not_repeated(rows, sessions, flows):
    """Rows of PUBLISHes whose message was open when their connection ended, and of which the
    sender says nothing in five seconds and more of the next one."""
    if not len(flows.publish_row):
        return flows.publish_row
    ended = rows.connection[flows.last_row]
    behind = _next_of_session(rows, sessions)[ended]
    direction = rows.direction[flows.publish_row]
    missing = ~flows.is_complete & flows.is_known & (behind >= 0)
    # If another message took its id, that is another breach.
    missing &= ~flows.is_reused
    # The next connection was long enough to send open messages again.
    answer = np.append(rows.ts, FAR)[sessions.answer.row]
    is_heard = (sessions.answer.row >= 0) & (sessions.end - answer >= GRACE_US)
    missing &= is_heard[behind]
    # A peer that acknowledges nothing gets nothing more.
    is_open = (flows.flow >= 0) & (flows.kind == PUBLISH)
    is_open &= ~flows.is_complete[flows.flow] & ~missing[flows.flow]
    row = flows.row[is_open]
    is_stuck = np.zeros((2, len(rows.client_of)), bool)
    is_stuck[rows.direction[row], rows.connection[row]] = True
    missing &= ~is_stuck[direction, behind]
    # A broker that closes the connection may have refused the message.
    missing &= (direction == 1) | ~sessions.ended("closed_by_server")[ended]
    at = flows.publish_row[missing]
    expires = flags(expiries(rows, at).is_valid())
    return at[(rows.direction[at] == 0) | ~expires]


def is_answer_seen(rows, direction, row):
    """Would an answer to these packets of this direction be in the capture?

    Bytes that are missing at the very end of a stream leave no gap: only what the other side
    says behind the packet, on its connection, tells that nothing is missing before.
    """
    tells = np.flatnonzero(rows.is_packet | (rows.kind == _FIN))
    of = rows.direction[tells], rows.connection[tells]
    heard = over(np.maximum, (2, len(rows.client_of)), of, tells, -1)
    return heard[1 - direction, rows.connection[row]] > row


def is_renumbered(rows, sessions, flows, at):
    """For these PUBLISHes: does the same message come later in the session with DUP, as one of
    another packet id?"""
    again = flows.publish_row[rows.dup[flows.publish_row]]
    both = np.concatenate((at, again))
    session = sessions.number[rows.connection[both]]
    same = grouped(session, *(getattr(rows, name)[both] for name in IDENTITY))
    last = over(np.maximum, len(both), same[len(at) :], again, -1)
    return last[same[: len(at)]] > at


def _next_of_session(rows, sessions):
    # -> for each connection the one on which the server goes on with its session; else -1.
    found = np.full(len(rows.client_of), -1)
    keep = np.flatnonzero(~sessions.is_refused)
    same = np.diff(rows.client_of[keep]) == 0
    same &= np.diff(sessions.number[keep]) == 0
    is_present = sessions.answer.flags("session_present")
    is_present &= (sessions.level > 3) & ~sessions.is_one_way
    at = np.flatnonzero(same & is_present[keep[1:]])
    found[keep[at]] = keep[at + 1]
    return found
