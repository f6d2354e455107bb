"""TLS: a stream over a socket.

Loaded only when `ssl` is given.  Never waits: the handshake goes on inside `readinto()`
and `write()`.  Certificate and host name are checked, unless a context that the program
made says otherwise.  `context_of()` and `text_of()` are in `handshake`, which does not
stay.  docs/guides/tls.md.
"""

import sys

import tls


class TLSStream:
    """A TLS stream over `sock`, which may still be connecting.  Allocates.

    `readinto(buf, n)`, `write(buf, off, n)` and `close()` as sockets have them; after a
    `write()` that returned None the next one must be given the same bytes.  `raw` is what
    asyncio or select may wait for.  Raises OSError.
    """

    def __init__(self, sock, context, server):
        self.raw = raw = context.wrap_socket(
            sock, server_hostname=server, do_handshake_on_connect=False
        )
        self._sock = sock
        self.readinto = raw.readinto
        self.write = raw.write

    def close(self):
        """Close both."""
        self.raw.close()
        # After a failed handshake MicroPython (all versions) forgets the socket instead of
        # closing it.
        self._sock.close()


wrap = getattr(tls, "wrap", TLSStream)  # a computer has its own


def __getattr__(name):
    # What is called once for a client, or never, does not stay.
    import umqtt31

    from . import handshake

    del umqtt31.handshake, sys.modules["umqtt31.handshake"]
    return getattr(handshake, name)
