"""package.json, package-full.json and manifest.py: which files a board installs.

mip takes the first two (client and faces, and with journal and the other extras),
MicroPython's build the third, for freezing.  They are written from the library's
folder, so that a new module cannot be forgotten.
"""

import ast
import json

from tools.project import ROOT

from .compile import library_sources
from .places import LIBRARY

_CLIENT = ("__init__", "errors", "wifi")

_MANIFEST = '''\
"""Freezes umqtt31 into firmware: `include("path/to/manifest.py")` in the board's manifest.

`package-full.json` is the same for mip, `package.json` the client without extras.
Written by `python -m tools boards package`.
"""
# ruff: noqa: F821 - both are names of MicroPython's build

metadata(description="{description}", version="{version}")
package(
    "umqtt31",
    (
{files}
    ),
    base_path="lib",
)
'''
_DESCRIPTION = "MQTT 3.1 client: no allocation, QoS 2, survives resets"


def version():
    """The library's version, from its `__init__.py`."""
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return ast.literal_eval(node.value)
    raise ValueError("umqtt31 has no __version__")


def package_files():
    """{file name in the project: content} of the three."""
    lines = "\n".join(f'        "{name}.py",' for name in everything())
    manifest = _MANIFEST.format(description=_DESCRIPTION, version=version(), files=lines)
    return {
        "package.json": _package(for_the_client()),
        "package-full.json": _package(everything()),
        "manifest.py": manifest,
    }


def everything():
    """The modules that belong on a board, sorted."""
    return [path.stem for path in library_sources()]


def for_the_client():
    """Those that a program needs that imports MQTTClient, without options but Wi-Fi."""
    return [name for name in everything() if name in _CLIENT]


def write_packages():
    """Write the three files -> their names."""
    files = package_files()
    for name, content in files.items():
        (ROOT / name).write_text(content)
    return list(files)


def _package(names):
    urls = [[f"umqtt31/{name}.py", f"lib/umqtt31/{name}.py"] for name in names]
    return json.dumps({"version": version(), "deps": [], "urls": urls}, indent=1) + "\n"
