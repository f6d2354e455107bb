"""TLS for programs that hand in a stream; others give `ssl` to the client (docs/guides/tls.md)."""

from typing import Any

from ._types import Stream

def context_of(ssl: Any, is_checked: bool = True) -> Any:
    """-> the SSLContext that `ssl` (True, a dict of ca, cert and key, a context) stands for.

    Not `is_checked`: whoever answers is believed.  Raises TypeError, ValueError.
    """

def wrap(sock: Any, context: Any, server: str) -> Stream:
    """-> a stream over `sock`, a non-blocking socket that may still be connecting.

    After a `write()` that returned None the next one has to be given the same bytes.
    Raises OSError.
    """
