"""The fleet's key: its file, and what it proves (docs/guides/updates.md).

`firmware/signature.py` does the same with code of its own.
"""

import hashlib
import hmac
import secrets

from .errors import BoardError
from .places import shown, write_private

ANSWER = b"u31a\x01"
COMMAND = b"u31c\x01"
PROOF_LENGTH = 32  # hex digits


def make_key(path):
    """Write a new key, hex, into the file `path`, which must not exist, for its owner only."""
    if path.exists():
        raise BoardError(f"{shown(path)} is there already; a fleet that has it needs it")
    write_private(path, f"{secrets.token_hex(32)}\n".encode())


def read_key(path):
    """The bytes of a key file.  BoardError."""
    try:
        key = bytes.fromhex(path.read_text().strip())
    except ValueError:
        key = b""
    if not 16 <= len(key) <= 64:
        raise BoardError(f"{shown(path)}: no key: 32 to 128 hex digits")
    return key


def proof(key, magic, *parts):
    """What proves that who holds `key` said `parts`, bytes: 32 hex digits, as bytes."""
    signed = magic + b"".join(len(part).to_bytes(2, "big") + part for part in parts)
    return hmac.new(key, signed, hashlib.sha256).hexdigest()[:PROOF_LENGTH].encode()


def signature(key, data):
    """The 32 bytes that end a bundle which is otherwise `data`."""
    return hmac.new(key, data, hashlib.sha256).digest()
