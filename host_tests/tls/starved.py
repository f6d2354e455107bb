"""A TLS connection with next to no memory left to malloc.  MicroPython's unix port.

Usage: micropython starved.py PORT CA KILOBYTES.  What Mbed TLS needs comes from
malloc there, as on ESP32.  Prints what the handshake ended in.
"""

import struct
import sys

import ffi

from host_tests.tls.steps import open_stream, shake
from umqtt31.tls import context_of, text_of

_RLIMIT_AS = 9

libc = ffi.open("libc.so.6")
setrlimit = libc.func("i", "setrlimit", "iP")
malloc = libc.func("p", "malloc", "L")
free = libc.func("v", "free", "p")


def leave(kilobytes):
    """Take all that malloc can give but so many pieces of 1 KB, most of them side by side."""
    pieces = [malloc(1024) for _ in range(kilobytes)]
    barrier = malloc(1024)
    if setrlimit(_RLIMIT_AS, struct.pack("LL", 1, 1)):  # no more from the system
        raise OSError("setrlimit")
    size = 1 << 24
    while size >= 16:
        if not malloc(size):
            size >>= 1
    for piece in pieces:
        free(piece)
    return barrier


port, ca, kilobytes = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
context = context_of({"ca": ca})
leave(kilobytes)
try:
    print(shake(open_stream(port, "localhost", context)[0]))
except (OSError, ValueError) as error:
    print(text_of(error, "localhost"))
