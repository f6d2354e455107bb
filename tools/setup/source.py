"""MicroPython's source under `.tools/source`, to build a firmware that has the library frozen in.

It is that of Debian 13, whose version stays the same, and comes through Debian's package
of it; elsewhere there is none, and only the tests of such a firmware are not there.
"""

import shutil
import tarfile
from collections.abc import Iterator

from tools import archives
from tools.project import ROOT

from . import SetupError, debian

FOLDER = ROOT / ".tools" / "source"
_SUITE = "trixie"
_LISTS = ROOT / ".tools" / "apt-source"
# Folders that the unix port does not need.
_LEFT_OUT = ("docs", "logo", "tests")


def install() -> bool:
    """Fetch it if it is missing; returns whether there was anything to do.

    Without it all else works, so that a failure is only told.
    """
    uri = None if FOLDER.exists() else debian.mirror()
    if uri is None:
        return False
    print("setup: fetching MicroPython's source", flush=True)
    try:
        _fetch(uri)
    except SetupError as error:
        print(f"setup: {error} (building a firmware will not work; all else does)", flush=True)
    finally:
        shutil.rmtree(_LISTS, ignore_errors=True)
    return True


def _fetch(uri: str) -> None:
    suite = debian.Suite(_LISTS, uri, _SUITE, debian.architecture(), is_source=True)
    suite.update()
    unpacked = _LISTS / "unpacked"
    with tarfile.open(suite.fetch_source("micropython")) as archive:
        archives.unpack(archive, unpacked, _wanted(archive))
    (top,) = unpacked.iterdir()
    # Renamed last: that the folder exists says that it is complete.
    top.rename(FOLDER)


def _wanted(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        below = member.name.split("/")[1:]
        if below[:1] == ["ports"] and below[1:2] != ["unix"]:
            continue
        if below and below[0] not in _LEFT_OUT:
            yield member
