"""Runs under MicroPython: each QoS out and back through a broker, 40 messages at a time.

Arguments: port, client id, highest QoS, messages in flight, level, user name.  Prints
one line per QoS: messages received, whether in order, lowest and highest QoS seen.
"""

import gc
import sys
import time

COUNT = 40
DEADLINE_MS = 30000


def run(client, topic, qos):
    received = []
    client.on_message = lambda message: received.append((int(message.payload), message.qos))
    client.subscribe(topic, qos)
    start = time.ticks_ms()
    sent = 0
    while len(received) < COUNT and time.ticks_diff(time.ticks_ms(), start) < DEADLINE_MS:
        if sent < COUNT and client.queued < 4:
            client.publish(topic, b"%d" % sent, qos=qos)
            sent += 1
        client.poll(0 if sent < COUNT else 20)
    client.flush(DEADLINE_MS)
    levels = [level for _, level in received]
    in_order = [number for number, _ in received] == list(range(COUNT))
    print(qos, len(received), in_order, min(levels), max(levels))


port, client_id, highest = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
window, level, user = int(sys.argv[4]), int(sys.argv[5]), sys.argv[6] or None
if level == 5:
    from umqtt31.v5 import MQTTClient
else:
    from umqtt31 import MQTTClient
options = {"level": level, "max_inflight": window, "max_awaiting_rel": COUNT}
client = MQTTClient(client_id, "127.0.0.1", port, user, user, **options)
client.connect()
for qos in range(highest + 1):
    run(client, client_id + "/%d" % qos, qos)
    gc.collect()
client.disconnect()
