"""Where things lie in the project, how settings are read and how secrets are written.

The only module here that knows the folders.
"""

import json
import os
import tomllib
from pathlib import Path

from tools.project import ROOT

from .errors import BoardError

BOARDS = ROOT / "boards"
LIBRARY = ROOT / "lib" / "umqtt31"
FIRMWARE = ROOT / "firmware"
# Installed tools build in the current folder, as nobody looks into their own.
BUILD = ROOT / "build" if (ROOT / "Makefile").exists() else Path("build")


def shown(path):
    """`path` as a person wants to read it: relative to the project where it lies inside."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def read_text(path):
    """A file in UTF-8, whatever the system's own encoding is.  OSError, BoardError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BoardError(f"{shown(path)}: not in UTF-8; save it as that") from None


def read_toml(path):
    """The tables of a TOML file.  Raises OSError, and BoardError that names the file."""
    try:
        found = tomllib.loads(read_text(path))
        json.dumps(found)  # as they go to a board
    except tomllib.TOMLDecodeError as error:
        raise BoardError(f"{shown(path)}: not valid TOML: {error}") from None
    except TypeError:
        raise BoardError(f"{shown(path)}: a date or a time has to stand in quotes") from None
    return found


def write_private(path, data):
    """Write a file that only its owner may read, whoever might read the one before."""
    Path(path).unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
