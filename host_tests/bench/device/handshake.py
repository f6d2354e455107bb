"""Opens TLS connections one after the other and closes each when CONNACK is there.

Usage: micropython handshake.py PORT SUITE COUNT CA [CERT KEY].  Prints the bytes of
Python's heap that one connection holds; what malloc has given out by then goes to
standard error, before the context, with it, and with a connection.
"""

import gc
import socket
import sys
import time

import ffi

from umqtt31.tls import context_of, wrap

CONNECT = b"\x10\x13\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x05bench"
_stats = ffi.open("libc.so.6").func("v", "malloc_stats", "")


def until(step):
    n = step()
    while n is None:
        time.sleep_ms(1)
        n = step()


def open_one(context, address):
    sock = socket.socket()
    sock.setblocking(False)
    try:
        sock.connect(address)
    except OSError as error:
        if error.errno != 115:
            raise
    stream = wrap(sock, context, "localhost")
    answer = bytearray(4)
    until(lambda: stream.write(CONNECT, 0, len(CONNECT)))
    until(lambda: stream.readinto(answer, 4))
    if answer != b"\x20\x02\x00\x00":
        raise RuntimeError("not accepted")
    return stream


port, suite, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
address = socket.getaddrinfo("127.0.0.1", port)[0][-1]
_stats()
if count >= 0:
    context = context_of(dict(zip(("ca", "cert", "key"), sys.argv[4:])))
    context.set_ciphers([suite])
    _stats()
for k in range(count):
    gc.collect()
    before = gc.mem_alloc()
    stream = open_one(context, address)
    if k == 0:
        _stats()
        gc.collect()
        print(gc.mem_alloc() - before)
    stream.close()
