"""Prints the messages a second of prebuilt packets with a window: the link's limit."""

import socket
import sys
import time

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(stream, packet, count, window):
    answer = bytearray(4 * window)
    sent = acknowledged = 0
    while acknowledged < count:
        while sent < count and sent - acknowledged < window:
            stream.write(packet)
            sent += 1
        # Waits for one answer and takes what else is there, as answers are 4 bytes each.
        stream.readinto(answer, 4)
        acknowledged += 1
        stream.setblocking(False)
        acknowledged += (stream.readinto(answer) or 0) // 4
        stream.setblocking(True)


port, count, window = [int(arg) for arg in sys.argv[1:4]]
stream = socket.socket()
stream.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
stream.setsockopt(6, 1, 1)  # TCP_NODELAY, which the unix port has no name for
body = b"\x00\x0d" + TOPIC + b"\x00\x01" + PAYLOAD
packet = bytes([0x32, len(body)]) + body
start = time.ticks_us()
run(stream, packet, count, window)
print(count * 1000000 / time.ticks_diff(time.ticks_us(), start))
