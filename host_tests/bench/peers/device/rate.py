"""Prints the messages a second that are acknowledged at QoS 1.

Usage: micropython -m rate ADAPTER PORT COUNT WINDOW NO_DELAY.
"""

import sys
import time

port, count, window, no_delay = [int(arg) for arg in sys.argv[2:6]]
client = __import__(sys.argv[1]).Adapter(port, window)
client.connect(bool(no_delay))
start = time.ticks_us()
client.publish(b"bench/reading", bytes(64), 1, count, window)
print(count * 1000000 / time.ticks_diff(time.ticks_us(), start))
