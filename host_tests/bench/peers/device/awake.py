"""Prints the milliseconds from the import of a client until its first message is acknowledged.

Usage: micropython -m awake ADAPTER PORT.
"""

import sys
import time

start = time.ticks_us()
client = __import__(sys.argv[1]).Adapter(int(sys.argv[2]))
client.connect()
client.publish(b"bench/reading", bytes(64), 1, 1, 1)
print(time.ticks_diff(time.ticks_us(), start) / 1000)
