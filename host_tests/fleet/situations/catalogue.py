"""All situations: `SITUATIONS` by name, in the order of these modules.

A function plays its part on a `Stage`; what it is not said to hold (`Truth`) an audit must
not find.  Names of clients: `pub`, `sub` and what they are.  Quiet time is turned, not
waited for, except where the broker's own clock matters.
"""

from . import brokers, copies, faults, fleets, losses, mixtures, sessions, trouble
from .stage import SITUATIONS, Situation, Stage, Truth

__all__ = [
    "SITUATIONS",
    "Situation",
    "Stage",
    "Truth",
    "brokers",
    "copies",
    "faults",
    "fleets",
    "losses",
    "mixtures",
    "sessions",
    "trouble",
]
