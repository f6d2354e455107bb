"""Names that the device code uses and MicroPython does not have on a port.

mypy reads library and firmware against the stubs of each port in place of CPython's
own.  Only names of modules are of interest here: types are for the host tools.
"""

import re
import subprocess
import sys

from tools.project import ROOT
from tools.setup.environment import STUBS, wanted_stubs

_SETTINGS = "[mypy]\ncheck_untyped_defs = true\nwarn_unused_configs = false\n"
_NAME = re.compile(
    r"error: (Module .*has no attribute|Cannot find implementation|Module .* does not)"
)
# Each board has its own, in boards/; the stubs have mistakes of their own.
_NOT_ASKED = re.compile(r'module named "board"|^\S+\.pyi:')


def missing_names() -> list[str]:
    """What is missing, one line each: for the library on any port, for the firmware on all."""
    found = {port: missing_on(port) for port in wanted_stubs()}
    on_all = set.intersection(*found.values())
    library = {
        f"{port}: {line}"
        for port, lines in found.items()
        for line in lines
        if line.startswith("lib/")
    }
    return sorted(library | {line for line in on_all if not line.startswith("lib/")})


def missing_on(port: str, sources: tuple[str, ...] = ("lib/umqtt31", "firmware")) -> set[str]:
    """mypy's lines about names in `sources` (files or folders) that `port` does not have."""
    stubs = STUBS / port
    cache = ROOT / ".mypy_cache" / port
    cache.mkdir(parents=True, exist_ok=True)
    settings = cache / "ports.ini"
    settings.write_text(f"{_SETTINGS}mypy_path = {stubs}:lib:firmware\n")
    options = ["--config-file", settings, "--cache-dir", cache, "--custom-typeshed-dir", stubs]
    command = [sys.executable, "-m", "mypy", "--no-site-packages", "--explicit-package-bases"]
    done = subprocess.run(
        [*command, *map(str, options), *sources], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        return {f"mypy: {done.stderr.strip() or done.stdout.strip()}"}
    lines = done.stdout.splitlines()
    return {line for line in lines if _NAME.search(line) and not _NOT_ASKED.search(line)}
