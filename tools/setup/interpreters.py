"""Further versions of MicroPython for tests: on Debian two, each with 64 and with 32 bits.

The desk, the demo and most tests use the one from PyPI.  For 32-bit heap figures and the oldest
supported version packages of newer suites are unpacked, and started through the C library that
comes with them.  `.tools/bin/micropython-<version>-<bits>` are for people.
"""

import json
import shutil
from pathlib import Path

from tools import micropython
from tools.project import ROOT

from . import SetupError, debian, system

# Debian 13 has the oldest version that is supported; sid has the newest packaged one.
_SUITES = ("trixie", "sid")
_SMALLER = {"amd64": "i386", "arm64": "armhf"}
_LISTS = ROOT / ".tools" / "apt"

# What tests and virtual board use of an interpreter: prints nothing, or fails.
_SELF_CHECK = """\
import ffi, select, socket, tls, vfs, micropython
vfs.VfsLfs2, vfs.VfsRom
socket.socket().close()
micropython.heap_lock()
micropython.heap_unlock()
"""

_WRAPPER = """\
# MicroPython {release}, {bits} bits, on the C library it was built for.
root=$(dirname "$(readlink -f "$0")")/../micropython/{name}
exec "$root/{loader}" --library-path "$root/{libraries}" "$root/{program}" "$@"
"""


def install() -> bool:
    """Fetch what is missing; returns whether there was anything to do.  Raises SetupError.

    A version that cannot be had today is warned about, as long as one is there.
    """
    lacking = missing()
    uri = debian.mirror() if lacking else None
    did = uri is not None and _fetch(uri, lacking)
    micropython.interpreters.cache_clear()
    return did


def missing() -> list[tuple[str, str]]:
    """(suite, architecture) that are not unpacked yet; none where there is no Debian."""
    if shutil.which("dpkg") is None:
        return []
    native = debian.architecture()
    architectures = [native, *filter(None, [_SMALLER.get(native)])]
    return [
        (suite, architecture)
        for suite in _SUITES
        for architecture in architectures
        if not (_folder(suite, architecture) / micropython.MANIFEST).exists()
    ]


def _folder(suite: str, architecture: str) -> Path:
    return micropython.UNPACKED / f"{suite}-{architecture}"


def _fetch(uri: str, missing: list[tuple[str, str]]) -> bool:
    print("setup: fetching MicroPython", flush=True)
    did = False
    for name, architecture in missing:
        suite = debian.Suite(_LISTS / f"{name}-{architecture}", uri, name, architecture)
        try:
            suite.update()
            _unpack(suite)
            did = True
        except SetupError as error:
            print(f"setup: {error}", flush=True)
    shutil.rmtree(_LISTS)
    return did


def _unpack(suite: debian.Suite) -> None:
    folder = _folder(suite.name, suite.architecture)
    print(f"setup:   of {suite.title}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    suite.unpack(["micropython"], folder)
    loader = debian.loader_of(folder)
    program = folder / "usr/bin/micropython"
    command = (str(loader), "--library-path", str(loader.parent), str(program))
    interpreter = _checked(command, suite.title)
    found = {"loader": loader, "libraries": loader.parent, "program": program}
    places = {name: str(path.relative_to(folder)) for name, path in found.items()}
    about = {"release": interpreter.release, "bits": interpreter.bits, **places}
    wrapper = _WRAPPER.format(name=folder.name, **about)
    debian.write_script(system.BIN / f"micropython-{interpreter.id}", wrapper)
    # Made last: that it exists says that all of the above is done.
    (folder / micropython.MANIFEST).write_text(json.dumps(about, indent=1) + "\n")


def _checked(command: tuple[str, ...], title: str) -> micropython.Interpreter:
    try:
        interpreter = micropython.probe(command)
    except micropython.MicroPythonError as error:
        raise SetupError(f"MicroPython of {title} does not run on this machine") from error
    done = interpreter.run(_SELF_CHECK)
    if done.returncode:
        reason = (done.stdout + done.stderr).strip().splitlines()[-1]
        raise SetupError(f"MicroPython of {title} lacks something: {reason}")
    return interpreter
