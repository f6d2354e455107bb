"""Prints the messages a second that the program is handed.

Usage: micropython -m receiving ADAPTER PORT COUNT.  The clock starts when the first is there.
"""

import sys
import time

port, count = [int(arg) for arg in sys.argv[2:4]]
client = __import__(sys.argv[1]).Adapter(port)
client.connect()
client.publish(b"bench/give", b"all", 0, 1, 1)
client.receive(1)
before = client.received
start = time.ticks_us()
client.receive(count - before)
print((count - before) * 1000000 / time.ticks_diff(time.ticks_us(), start))
