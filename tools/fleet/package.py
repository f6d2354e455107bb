"""The pipeline as one zip file, for the Python of a cluster's workers.

Holds `tools.fleet`; what it imports beside (numpy, pyarrow, pyspark) has to be there.
The same code gives the same file, byte by byte.
"""

import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write(path):
    """Write the zip file -> number of files in it."""
    found = sorted(_members())
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in found:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), source.read_bytes())
    return len(found)


def _members():
    yield "tools/__init__.py", _ROOT / "tools" / "__init__.py"
    for source in (_ROOT / "tools/fleet").rglob("*"):
        if source.is_file() and "__pycache__" not in source.parts:
            yield source.relative_to(_ROOT).as_posix(), source
