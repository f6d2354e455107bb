# Runs on the board: the SHA-256 of each file in `paths`, the texts of those in `texts`,
# the free space, and what MicroPython says of itself.  Both lists are set by the sender.
import binascii
import hashlib
import json
import os
import sys

# One buffer for all files: many would fragment the heap and leave no room for the answer.
_buf = bytearray(512)
_view = memoryview(_buf)


def digest(path):
    hash = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            n = file.readinto(_buf)
            if not n:
                return binascii.hexlify(hash.digest()).decode()
            hash.update(_view[:n])


def inventory(paths):
    found = {}
    for path in paths:
        try:
            found[path] = digest(path)
        except OSError:
            pass
    return found


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


_space = os.statvfs("/")
json.dump(
    {
        "texts": {path: read(path) for path in texts},  # first, as each needs one large block
        "files": inventory(paths),
        "machine": getattr(sys.implementation, "_machine", ""),
        "free": _space[0] * _space[3],
        "block": _space[0],
        "mpy": getattr(sys.implementation, "_mpy", 0),
        "version": list(sys.implementation[1][:3]),
    },
    sys.stdout,
)
print()
