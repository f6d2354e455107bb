"""Topics that aliases of level 5 stand for, by stream.

An alias may be given another topic at any time, so behind missing bytes nobody knows what
those from before them stand for.
"""

import bisect


class Aliases:
    """What was defined so far, and where bytes were missing; places are ordinals of segments."""

    def __init__(self):
        self._topics = {}
        self._missing = {}

    def miss(self, stream, ordinal):
        """Bytes of the stream are missing before this place."""
        bisect.insort(self._missing.setdefault(stream, []), ordinal)

    def define(self, stream, alias, ordinal, topic):
        """From here on the alias stands for the topic."""
        self._topics[stream, alias] = ordinal, topic

    def topic(self, stream, alias, ordinal):
        """What the alias stands for at this place; None where that is not known."""
        defined, topic = self._topics.get((stream, alias), (ordinal, None))
        missing = self._missing.get(stream, ())
        if bisect.bisect_right(missing, ordinal) > bisect.bisect_right(missing, defined):
            return None
        return topic
