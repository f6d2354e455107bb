"""The index that `mip` and `mpremote mip` read: plain files, for any web server.

Below it `package/<mpy version or py>/<name>/<version>.json` names the files of a
package by their hashes, and `file/<first two>/<hash>` holds them.
"""

import hashlib
import json
from pathlib import Path

from tools.boards.packaging import everything, for_the_client, version
from tools.boards.places import LIBRARY

# Name in the index -> the library's modules that belong to it.
PACKAGES = {"umqtt31": for_the_client, "umqtt31-full": everything}
_HASH_DIGITS = 16
_MPY_VERSION_AT = 1  # of the header of .mpy


def write_index(out: Path, compiled: Path) -> None:
    """Fill `out`; `compiled` is a folder with the library as .mpy."""
    listed = []
    for name, choose in PACKAGES.items():
        modules = choose()
        forms: dict[str, list[Path]] = {"py": [LIBRARY / f"{module}.py" for module in modules]}
        for path in (compiled / f"{module}.mpy" for module in modules):
            forms.setdefault(str(path.read_bytes()[_MPY_VERSION_AT]), []).append(path)
        for form, paths in forms.items():
            _write_package(out, form, name, paths)
        versions = {form: [version()] for form in sorted(forms)}
        listed.append({"name": name, "version": version(), "versions": versions})
    _write(out / "index.json", _json({"v": 2, "packages": listed}))


def _write_package(out: Path, form: str, name: str, paths: list[Path]) -> None:
    hashes = []
    for path in paths:
        data = path.read_bytes()
        digits = hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]
        _write(out / "file" / digits[:2] / digits, data)
        hashes.append([f"umqtt31/{path.name}", digits])
    about = _json({"v": 1, "version": version(), "hashes": hashes, "deps": []})
    for file in (version(), "latest"):
        _write(out / "package" / form / name / f"{file}.json", about)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _json(content: object) -> bytes:
    return json.dumps(content, indent=1).encode() + b"\n"
