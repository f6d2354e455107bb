"""Messages through a real broker over a real socket, the heap locked.  MicroPython.

Usage: micropython socket_run.py PORT CLIENT_ID LEVEL.  Prints what was received at
each QoS, and what is left in flight.
"""

import sys

from host_tests.choice import class_for
from host_tests.client import locked_rounds

level = int(sys.argv[3])
client = class_for(level, {})(
    sys.argv[2],
    "127.0.0.1",
    int(sys.argv[1]),
    level=level,
    queue_bytes=4096,
    max_inflight=10,
    max_awaiting_rel=20,
)
client.connect()
locked_rounds.play(client)
