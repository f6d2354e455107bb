"""Unpacking of tar archives, also with the Pythons that know no filters."""

import tarfile
from collections.abc import Iterable
from pathlib import Path


def unpack(
    archive: tarfile.TarFile, folder: Path | str, members: Iterable[tarfile.TarInfo] | None = None
) -> None:
    """Unpack `members`, or all, into `folder`; nothing lands outside it where filters are."""
    # Python 3.11.2 of Debian 12 refuses `filter=`, which came with 3.11.4.
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder, members)
