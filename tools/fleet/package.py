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
    code = (_ROOT / "tools/fleet").rglob("*")
    found = [one for one in code if one.is_file() and "__pycache__" not in one.parts]
    found = sorted([_ROOT / "tools/__init__.py", *found])
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in found:
            name = source.relative_to(_ROOT).as_posix()
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), source.read_bytes())
    return len(found)
