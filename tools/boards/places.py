"""Where things lie in the project: the only module here that knows the folders."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOARDS = ROOT / "boards"
LIBRARY = ROOT / "lib" / "umqtt31"
FIRMWARE = ROOT / "firmware"
BUILD = ROOT / "build"


def shown(path):
    """`path` as a person wants to read it: relative to the project where it lies inside."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
