"""An array that grows with the numbers it is asked for."""

import numpy as np


class Growing:
    """A numpy array that is long enough for every index asked for."""

    def __init__(self, fill, dtype):
        self._fill = fill
        self.array = np.full(1024, fill, dtype)

    def reserve(self, count):
        """Make room for indices below `count`."""
        if count > len(self.array):
            grown = np.full(max(count, 2 * len(self.array)), self._fill, self.array.dtype)
            grown[: len(self.array)] = self.array
            self.array = grown
