"""Is a certificate one, and the key its own?  Asked before a board gets them.

A board would only hear from its broker that they do not fit.  Contents are never shown.
"""

import ssl
import tempfile
from pathlib import Path

from .errors import BoardError
from .places import write_private


def check_pair(files, certificate, key):
    """Check the contents of two names in `files`, as far as Python can: PEM only.  BoardError."""
    names = certificate, key
    if not all(b"-----BEGIN " in files[name] for name in names):
        return
    with tempfile.TemporaryDirectory() as folder:
        public, private = Path(folder) / "crt", Path(folder) / "key"
        write_private(public, files[certificate])
        write_private(private, files[key])
        try:
            # No board would ask for the key's password.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(public, private, "")
        except ssl.SSLError as error:
            raise BoardError(f"{certificate}, {key}: {_why(error)}") from None


def _why(error):
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not the certificate's"
    reason = f" ({error.reason})" if error.reason else ""
    return f"not a certificate and its key, without password, as PEM{reason}"
