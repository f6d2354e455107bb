"""Where things lie in the project, and how what is private is written there.

The only module here that knows the folders.
"""

import os
from pathlib import Path

from tools.project import ROOT

BOARDS = ROOT / "boards"
LIBRARY = ROOT / "lib" / "umqtt31"
TYPINGS = ROOT / "typings" / "umqtt31"
FIRMWARE = ROOT / "firmware"
# Where the tools are installed, nobody looks for what they made.
BUILD = ROOT / "build" if (ROOT / "Makefile").exists() else Path("build")


def shown(path):
    """`path` as a person wants to read it: relative to the project where it lies inside."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def write_private(path, data):
    """Write a file that only its owner may read, whoever might read the one before."""
    Path(path).unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
