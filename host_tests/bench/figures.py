"""What a measurement yields: figures, each with its budget and the others' figures."""

from dataclasses import dataclass


class BenchError(Exception):
    """Something cannot be measured; the message is one line that says what to do."""


@dataclass(frozen=True)
class Figure:
    """One line of a table, in the unit that the table's title names.

    `peer` and `bare` were measured in the same run; `published` is a known figure of
    the peer's version 1.8, for where only an older one can be had.  `budget` None:
    told for information.
    """

    title: str
    ours: float
    budget: float | None = None
    peer: float | None = None
    published: float | None = None
    bare: float | None = None
    is_more_better: bool = False

    @property
    def is_met(self) -> bool:
        """Is the figure within its budget?  True without one."""
        if self.budget is None:
            return True
        return self.ours >= self.budget if self.is_more_better else self.ours <= self.budget
