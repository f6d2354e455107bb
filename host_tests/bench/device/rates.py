"""How fast a client is.  Usage: micropython -m main ADAPTER PORT WHAT ….

"awake": milliseconds from its import until its first message is acknowledged.
"rate COUNT WINDOW NO_DELAY": messages a second that are acknowledged at QoS 1.
"receiving COUNT": those that the program is handed, from the first one on.
"""

import sys
import time

TOPIC = b"bench/reading"
what, port = sys.argv[3], int(sys.argv[2])
count, window, no_delay = [int(arg) for arg in sys.argv[4:] + ["1", "1", "1"]][:3]
start = time.ticks_us()
client = __import__(sys.argv[1]).Adapter(port, window)
client.connect(bool(no_delay))
if what == "rate":
    start = time.ticks_us()
if what == "receiving":
    client.publish(b"bench/give", b"all", 0, 1, 1)
    client.receive(1)
    count -= client.received
    start = time.ticks_us()
    client.receive(count)
else:
    client.publish(TOPIC, bytes(64), 1, count, window)
us = time.ticks_diff(time.ticks_us(), start)
print(us / 1000 if what == "awake" else count * 1000000 / us)
