"""Sends COUNT messages at QoS 1 with window 4 and gets all of them back.

Usage: micropython -m main ADAPTER PORT COUNT.
"""

import sys

TOPIC = b"bench/echo"

port, count = int(sys.argv[2]), int(sys.argv[3])
client = __import__(sys.argv[1]).Adapter(port, 4)
client.connect()
client.subscribe(TOPIC, 1)
client.publish(TOPIC, bytes(64), 1, count, 4)
client.receive(count - client.received)
print("done")
