"""What of the device has failed for good: the journal, so far.

It is said by a retained message, and kept over resets: all that the journal held may have
gone out, and the journal itself cannot say so any more.
"""

TEXT = "journal: stopped, messages wait in RAM"
# What the state keeps.
_FAILED = "failed"
DONE = "done"  # and nothing is left in it that did not go out


class Fault:
    """`store` is the client's, a fallback.Fallback or one that cannot fail; `state` a
    state.State.  `is_told`: on this connection; who opens one sets it to False."""

    def __init__(self, store, state):
        self._store = store
        self._state = state
        self._is_known = False
        self.is_told = False

    @property
    def has_failed(self):
        """Has the journal?"""
        return getattr(self._store, "has_failed", False)

    def look(self, undelivered):
        """See how the journal is; so many messages have not arrived -> has it failed since
        the last look?"""
        if not self.has_failed:
            return False
        known = self._state.journal
        if known != DONE:
            journal = _FAILED if undelivered > self.volatile else DONE
            if journal != known:
                self._state.keep_journal(journal)
        is_new = not self._is_known
        self._is_known = True
        return is_new

    @property
    def text(self):
        """What the retained message is to be; None: as it is."""
        if self.is_told:
            return None
        if self.has_failed:
            return TEXT
        return "" if self._state.journal else None

    def told(self):
        """It was published."""
        self.is_told = True
        if self._state.journal and not self.has_failed:
            self._state.keep_journal(None)

    @property
    def volatile(self):
        """How many messages a sleep would forget, though there is a journal."""
        return self._store.in_ram if self.has_failed else 0
