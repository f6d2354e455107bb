"""Unpacking of tar archives, also with the Pythons that know no filters."""

import tarfile
from collections.abc import Iterable
from pathlib import Path


def unpack(
    archive: tarfile.TarFile, folder: Path | str, members: Iterable[tarfile.TarInfo] | None = None
) -> None:
    """Unpack `members`, or all, into `folder`; nothing lands outside it where filters are."""
    # Debian 12 has Python 3.11.2, which refuses `filter=`: that came with 3.11.4.
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder, members)
