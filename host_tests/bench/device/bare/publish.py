"""Writes COUNT prebuilt packets, at QoS 1 reading each answer: what no client can beat."""

import socket
import sys

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(stream, packet, count, qos):
    write = stream.write
    readinto = stream.readinto
    answer = bytearray(4)
    if qos:
        for _ in range(count):
            write(packet)
            readinto(answer)
    else:
        for _ in range(count):
            write(packet)


port, count, qos = [int(arg) for arg in sys.argv[1:4]]
stream = socket.socket()
stream.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
body = b"\x00\x0d" + TOPIC + (b"\x00\x01" if qos else b"") + PAYLOAD
run(stream, bytes([0x30 | qos << 1, len(body)]) + body, count, qos)
