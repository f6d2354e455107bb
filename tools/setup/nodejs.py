"""Packages of Node.js under `.tools/`, as their lock files say: aedes, and scripts of the site.

A lock file holds what `npm ci` reads: versions, hashes, and who needs whom.  Without Node.js
everything but the tests against aedes works; the site's pictures stay text.
"""

import shutil
import subprocess
from pathlib import Path

from tools.project import ROOT

from .system import find

FOLDER = ROOT / ".tools" / "node"
_SITE = ROOT / ".tools" / "site"
MERMAID = _SITE / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"
IFRAME_WORKER = _SITE / "node_modules" / "iframe-worker" / "shim" / "index.js"

# (folder of the lists, where they are installed, what for)
_PACKAGES = (
    (ROOT / "host_tests" / "brokers" / "node", FOLDER, "the broker aedes"),
    (ROOT / "tools" / "docs" / "node", _SITE, "scripts of the documentation site"),
)
_LISTS = ("package.json", "package-lock.json")
_INSTALLED = "installed.json"


def install() -> bool:
    """Make the folders hold what the lock files name; returns whether there was work."""
    npm = find("npm")
    if npm is None:
        return False  # the step before this one has warned
    did = [_install(npm, *one) for one in _PACKAGES]
    return any(did)


def _install(npm: str, source: Path, folder: Path, title: str) -> bool:
    wanted = (source / "package-lock.json").read_text()
    installed = folder / _INSTALLED
    if installed.exists() and installed.read_text() == wanted:
        return False
    print(f"setup: installing {title}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in _LISTS:
        shutil.copyfile(source / name, folder / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=folder).returncode:
        print(f"setup: npm failed ({title} will not work; all else does)", flush=True)
        return True
    installed.write_text(wanted)
    return True
