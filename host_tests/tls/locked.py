"""Messages over TLS with a certificate of our own, the heap locked.  MicroPython.

Usage: micropython locked.py FILE; FILE holds JSON: [port, ssl].  Prints what was
received at each QoS, and what is left in flight.
"""

import json
import sys

from host_tests.client import locked_rounds
from host_tests.tls.steps import client_on

with open(sys.argv[1]) as file:
    port, ssl = json.load(file)
locked_rounds.play(client_on(port, ssl, max_inflight=10, queue_bytes=4096, max_awaiting_rel=20))
