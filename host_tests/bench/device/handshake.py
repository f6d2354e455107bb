"""Opens a TLS connection and closes it when CONNACK is there.

Usage: micropython handshake.py SUITE [PORT CA [CERT KEY]].  What malloc has given out goes to
standard error, at the start and with the connection; without PORT there is none.
"""

import sys

import ffi

from host_tests.tls import steps
from umqtt31.tls import context_of

_stats = ffi.open("libc.so.6").func("v", "malloc_stats", "")
suite, *words = sys.argv[1:]
_stats()
if words:
    context = context_of(dict(zip(("ca", "cert", "key"), words[1:])))
    context.set_ciphers([suite])
    stream, _ = steps.open_stream(int(words[0]), "localhost", context)
    if steps.shake(stream) != b"\x20\x02\x00\x00":
        raise RuntimeError("not accepted")
    _stats()
    stream.close()
