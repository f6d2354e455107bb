"""Stands in for the module `random` where nothing may be left to chance."""


class Dice:
    """Throws 0: packet ids begin at 1, and nobody pauses before the next attempt."""

    def getrandbits(self, bits: int) -> int:
        return 0
