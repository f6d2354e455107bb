"""Bundles for updates over the air: what changed, signed with the fleet's key.

Layout: docs/guides/updates.md.  `firmware/ota.py` reads them, with code of its own.
"""

import ast
import hashlib
from functools import cache
from hmac import compare_digest

from .deploy import DEPLOYED, SETTINGS, digest, numbered, with_list
from .errors import BoardError
from .fleetkey import signature
from .places import FIRMWARE

MAGIC = b"u31b\x01"
# An update must not change what takes it back.
KEPT = ("boot.py", "main.py", "update.mpy", SETTINGS)


def make_bundle(board, files, key, release, base=None):
    """The bundle that brings `files` {path: bytes} to boards named `board`.

    `base`: {path: SHA-256} of what these boards run; files that are equal stay at home.
    `release` is a number that grows.  BoardError when it cannot be done over the air.
    """
    files = with_list(numbered(files, release))
    base = base or {}
    if taken := [path for path in files if path not in KEPT and _shadows(path)]:
        raise BoardError(
            f"{taken[0]}: boot.py would import it in place of MicroPython's: rename it"
        )
    if kept := [path for path in KEPT if path in base and digest(files[path]) != base[path]]:
        raise BoardError(f"{', '.join(kept)} changed: only make deploy brings that")
    lines = [f"board {board}", f"release {release}"]
    bodies = []
    for path, data in sorted(files.items()):
        if path in KEPT or base.get(path) == digest(data):
            lines.append(f"= {digest(data)} {path}")
        else:
            lines.append(f"+ {len(data)} {path}")
            bodies.append(data)
    lines += [f"- 0 {path}" for path in sorted(base.keys() - files.keys())]
    manifest = "\n".join(lines).encode()
    body = MAGIC + len(manifest).to_bytes(4, "big") + manifest + b"".join(bodies)
    return body + signature(key, body)


@cache
def _shadows(path):
    # Would the board import it in place of a module that boot.py and main.py need?
    # firmware/ota.py refuses the same paths.
    names = {path.partition(".")[0] for path in KEPT if path != SETTINGS}
    for node in ast.walk(ast.parse((FIRMWARE / "update.py").read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return path.removeprefix("lib/").partition("/")[0].partition(".")[0] in names


def check_key(bundle, where, key):
    """Is `bundle` signed with `key`?  BoardError."""
    size = hashlib.sha256().digest_size
    if not compare_digest(signature(key, bundle[:-size]), bundle[-size:]):
        raise BoardError(f"{where}: signed with another key than that of KEY=")


def read_base(bundle, where):
    """{path: SHA-256} of what a board runs that took `bundle`.  BoardError."""
    try:
        files = dict(_bodies(bundle))
        lines = files[DEPLOYED].decode().splitlines()
    except (KeyError, ValueError, IndexError):
        raise BoardError(f"{where}: no whole bundle; make one with make release") from None
    base = {path: found for found, _, path in (line.partition(" ") for line in lines)}
    return base | {DEPLOYED: digest(files[DEPLOYED])}


def check_base(bundle, where, board, number):
    """Could a board named `board` that runs this bundle take release `number`?  BoardError."""
    about = dict(line.split(" ", 1) for line in manifest_of(bundle)[:2])
    if about["board"] != board:
        raise BoardError(f"{where}: made for {about['board']}, not for {board}")
    if int(about["release"]) >= number:
        raise BoardError(f"{where}: its release {about['release']} is not older than {number}")


def manifest_of(bundle):
    """The manifest's lines.  ValueError when it is no bundle."""
    if not bundle.startswith(MAGIC):
        raise ValueError
    start = len(MAGIC) + 4
    return bundle[start : start + _length(bundle)].decode().split("\n")


def _bodies(bundle):
    at = len(MAGIC) + 4 + _length(bundle)
    for line in manifest_of(bundle):
        kind, _, rest = line.partition(" ")
        if kind == "+":
            size, _, path = rest.partition(" ")
            yield path, bundle[at : at + int(size)]
            at += int(size)
    if at + hashlib.sha256().digest_size != len(bundle):
        raise ValueError


def _length(bundle):
    return int.from_bytes(bundle[len(MAGIC) : len(MAGIC) + 4], "big")
