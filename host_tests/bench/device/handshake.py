"""Opens TLS connections one after the other and closes each when CONNACK is there.

Usage: micropython handshake.py PORT SUITE COUNT CA [CERT KEY].  Prints the bytes of
Python's heap that one connection holds; what malloc has given out by then goes to
standard error, before the context, with it, and with a connection.
"""

import gc
import sys

import ffi

from host_tests.tls import steps
from umqtt31.tls import context_of

_stats = ffi.open("libc.so.6").func("v", "malloc_stats", "")
port, suite, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
_stats()
if count >= 0:
    context = context_of(dict(zip(("ca", "cert", "key"), sys.argv[4:])))
    context.set_ciphers([suite])
    _stats()
for k in range(count):
    gc.collect()
    before = gc.mem_alloc()
    stream, _ = steps.open_stream(port, "localhost", context)
    if steps.shake(stream) != b"\x20\x02\x00\x00":
        raise RuntimeError("not accepted")
    if k == 0:
        _stats()
        gc.collect()
        print(gc.mem_alloc() - before)
    stream.close()
