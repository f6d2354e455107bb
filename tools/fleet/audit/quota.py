"""How many messages were under way at once, and how many the receiver had said it takes.

At level 5 CONNECT says how many messages above QoS 0 the client takes unanswered, CONNACK
the server (receive maximum, §3.1.2.11.3, §3.2.2.3.3); 65,535 where they do not say.  Each
connection begins with the whole of it.
"""

import numpy as np

from ..columns import begins, ranked
from .messages import PUBLISH, SWAPPED_US
from .rows import FAR


def at_once(who, begin, end):
    """Of how many entries with the same `who` has the time begun and not ended, at the
    `begin` of each (itself included)?"""
    count = len(who)
    when = np.concatenate((begin, end))
    step = np.repeat(np.array([1, -1]), count)
    order = np.lexsort((step, when, np.tile(who, 2)))
    # Whatever has begun has ended behind the last entry of its group.
    return np.cumsum(step[order])[ranked(order)[:count]]


class Quota:
    """Messages as one connection after the other saw them.

    `row` is the PUBLISH that began it there, `end` the time of its last answer there (FAR
    without one): a little earlier, as the capture may show the two in the wrong order.
    """

    def __init__(self, rows, flows):
        sent = np.flatnonzero((flows.kind == PUBLISH) & (flows.flow >= 0))
        flow, connection = flows.flow[sent], rows.connection[flows.row[sent]]
        is_first = begins(flow, connection)
        flow, self.connection = flow[is_first], connection[is_first]
        self.row = flows.row[sent[is_first]]
        self.direction = rows.direction[self.row]
        self.begin = rows.ts[self.row]
        # An id that is used anew ends what it was used for before.
        key = flows.key[flows.first]
        same = np.flatnonzero(key[1:] == key[:-1])
        end = flows.done_row.copy()
        end[same] = np.minimum(end[same], flows.publish_row[same + 1])
        end = end[flow]
        known = np.flatnonzero(end < FAR)
        known = known[rows.connection[end[known]] == self.connection[known]]
        self._answer_row, self.end = np.full((2, len(flow)), FAR)
        self._answer_row[known] = end[known]
        self.end[known] = np.maximum(rows.ts[end[known]] - SWAPPED_US, self.begin[known] + 1)

    def over(self, rows, sessions, gaps):
        """Rows of PUBLISHes beyond what the receiver takes, where no bytes are missing."""
        limit = sessions.receive_max[self.connection, 1 - self.direction]
        # Begins and ends in their order; of one time the rows tell what came first.
        times = np.append(self.begin, self.end - 1)
        order = np.lexsort((np.append(self.row, self._answer_row), times))
        count = at_once(self.connection * 2 + self.direction, *np.split(ranked(order), 2))
        at = np.flatnonzero((limit > 0) & (count > limit) & ~sessions.is_one_way[self.connection])
        row, connection = self.row[at], self.connection[at]
        return row[~gaps.any_since(rows.first_of[connection], row)]
