"""Situations with a known truth, recorded with a real broker and real clients.

`SITUATIONS` has them by name, in the order of these modules.  A function plays its part on a
`Stage`; what it is not said to hold (`Truth`) an audit must not find.  Names of clients: `pub`,
`sub` and what they are.  Quiet time is turned, not waited for, except where the broker's own
clock matters.  `python -m host_tests.fleet.situations FOLDER` records them anew.
"""

from . import brokers, copies, faults, fleets, losses, mixtures, sessions, trouble
from .stage import SITUATIONS, Truth
