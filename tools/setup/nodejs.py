"""The Node.js packages of the broker aedes, under `.tools/node`, as its lock file says.

Without Node.js everything but the tests against aedes works.
"""

import shutil
import subprocess

from tools.micropython import ROOT

from .system import find

FOLDER = ROOT / ".tools" / "node"
_LISTS = ("package.json", "package-lock.json")
_SOURCE = ROOT / "tools" / "brokers" / "node"
_INSTALLED = "installed.json"


def install() -> bool:
    """Make `.tools/node` hold what the lock file names; returns whether there was work."""
    wanted = (_SOURCE / "package-lock.json").read_text()
    installed = FOLDER / _INSTALLED
    if installed.exists() and installed.read_text() == wanted:
        return False
    npm = find("npm")
    if npm is None:
        return False  # the step before this one has warned
    print("setup: installing the broker aedes", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in _LISTS:
        shutil.copyfile(_SOURCE / name, FOLDER / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=FOLDER).returncode:
        print("setup: npm failed (tests against aedes will not work; all else does)", flush=True)
        return True
    installed.write_text(wanted)
    return True
