"""HMAC-SHA256 (RFC 2104) with the fleet's key, for bundles, answers and commands.

Each kind of text begins with a magic of its own, so that no signature fits another kind.
Allocates.
"""

import binascii
import hashlib

BUNDLE = b"u31b\x01"
ANSWER = b"u31a\x01"
COMMAND = b"u31c\x01"
_PROOF_BYTES = 16


class Signature:
    """Of what update() gets, piece by piece; `key` has 64 bytes at most."""

    def __init__(self, key):
        pad = key + bytes(64 - len(key))
        self._outer = hashlib.sha256(bytes([one ^ 0x5C for one in pad]))
        self._inner = hashlib.sha256(bytes([one ^ 0x36 for one in pad]))
        self.update = self._inner.update

    def digest(self):
        """The 32 bytes; nothing can be added any more."""
        self._outer.update(self._inner.digest())
        return self._outer.digest()


def proof(key, magic, *parts):
    """What proves that who holds `key` said `parts`, bytes: 32 hex digits, as bytes.

    Each part goes in behind its length, so that none can take bytes of the next one.
    """
    signature = Signature(key)
    signature.update(magic)
    for part in parts:
        signature.update(len(part).to_bytes(2, "big"))
        signature.update(part)
    return binascii.hexlify(signature.digest()[:_PROOF_BYTES])


def is_same(one, other):
    """Are these bytes the same?  Takes as long where they are not."""
    difference = len(one) ^ len(other)
    for mine, theirs in zip(one, other):
        difference |= mine ^ theirs
    return not difference
