"""Where captures lie and tables go: local files, or a store that `pyarrow.fs` reaches.

A place is a `pathlib.Path`, or a `Remote` for an address such as `s3://bucket/day` (`gs`,
`abfs`, `hdfs`).  No Java has a part in it.
"""

import contextlib
import io
import math
import os
import re
import shutil
import time
from pathlib import Path

from pyarrow import ArrowException
from pyarrow import fs as stores

_LOCK = ".held"  # Spark, pandas and pyarrow pass over names with a dot
_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs"}


class NotReached(OSError):
    """The store of an address does not answer; the text says what is missing."""


class Remote:
    """As much of `pathlib.Path` as the pipeline uses; pickled with its file system."""

    def __init__(self, address, store=None, path=None):
        scheme, _, rest = address.partition("://")
        self.address = "%s://%s" % (_HADOOP_NAMES.get(scheme, scheme), rest.rstrip("/"))
        try:
            found = (store, path) if store else stores.FileSystem.from_uri(self.address)
        except (OSError, ArrowException) as error:
            text = (
                "%s is not reached: %s (docs/guides/fleet-cluster.md says what each store needs)"
            )
            raise NotReached(text % (address, error)) from None
        self.store, self.path = found

    def __str__(self):
        return self.address

    def __truediv__(self, name):
        head, mark, query = self.address.partition("?")
        address = "%s/%s%s%s" % (head, name, mark, query)
        return Remote(address, self.store, "%s/%s" % (self.path, name))

    @property
    def name(self):
        """What stands behind the last slash."""
        return self.path.rpartition("/")[2]

    def resolve(self):
        """The place: it is a whole address."""
        return self

    def is_relative_to(self, other):
        """Does it lie in the folder `other`, or is it the same?"""
        return isinstance(other, Remote) and (self.path + "/").startswith(other.path + "/")

    def _is(self, *kinds):
        return self.store.get_file_info(self.path).type in kinds

    def exists(self):
        """Is there a file or a folder?"""
        return not self._is(stores.FileType.NotFound)

    def is_dir(self):
        """Is it a folder?"""
        return self._is(stores.FileType.Directory)

    def is_file(self):
        """Is it a file?"""
        return self._is(stores.FileType.File)

    def mkdir(self, parents=True, exist_ok=True):
        """Make the folder, and those around it."""
        self.store.create_dir(self.path)

    def files(self):
        """All files in the folder and below -> (place, name from here, bytes), …"""
        # A store has no folder of a table without rows.
        within = stores.FileSelector(self.path, recursive=True, allow_not_found=True)
        for one in self.store.get_file_info(within):
            if one.is_file:
                name = one.path.removeprefix(self.path + "/")
                yield self / name, name, one.size

    def replace(self, target):
        """Rename it to `target`, a folder file by file: stores have no folders to rename."""
        for one, name, _ in list(self.files()) if self.is_dir() else [(self, "", 0)]:
            self.store.move(one.path, (target / name).path if name else target.path)

    def unlink(self, missing_ok=True):
        """Delete it, a folder with all it holds."""
        if self.is_dir():
            self.store.delete_dir(self.path)
        elif self.exists():
            self.store.delete_file(self.path)

    def write_text(self, text, encoding="utf-8"):
        """Write the file; stores show it when it is whole."""
        with self.store.open_output_stream(self.path) as stream:
            stream.write(text.encode(encoding))


def place(text):
    """The path that a text (or a path) names."""
    if not isinstance(text, str):
        return text
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) and not text.startswith("file://"):
        return Remote(text)
    return Path(re.sub("^file:/+", "/", text))


def is_within(path, folder):
    """Does `path` lie in `folder`, or is it the same?"""
    return type(path) is type(folder) and path.resolve().is_relative_to(folder.resolve())


def open_binary(path):
    """The bytes of a file, to be read and sought in."""
    found = place(path)
    if isinstance(found, Remote):
        return io.BufferedReader(found.store.open_input_file(found.path), 1 << 20)
    return open(found, "rb")


def size(path):
    """How many bytes a file has."""
    with open_binary(path) as stream:
        return stream.seek(0, io.SEEK_END)


def age_s(path):
    """Seconds since a local file was written to; of others nobody asks."""
    found = place(path)
    with contextlib.suppress(OSError):
        return time.time() - found.stat().st_mtime if isinstance(found, Path) else math.inf
    return math.inf


def writable(path):
    """-> (where, filesystem), as pyarrow's writers take them."""
    return (path.path, path.store) if isinstance(path, Remote) else (path, None)


def files(folder):
    """All files in a folder and below -> [(path, name from there, bytes), …] in order."""
    found = folder.files() if isinstance(folder, Remote) else _local_files(folder)
    return sorted(found, key=lambda one: one[1].split("/"))


def _local_files(folder):
    for parent, below, names in os.walk(folder, onerror=_unless_deleted, followlinks=True):
        below[:] = [name for name in below if not _leads_back(parent, name)]
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # deleted since the folder was read
                if path.is_file():
                    yield path, path.relative_to(folder).as_posix(), path.stat().st_size
                elif path.is_symlink() and not path.exists():  # opening it says so
                    yield path, path.relative_to(folder).as_posix(), 0


def _unless_deleted(error):
    if not isinstance(error, FileNotFoundError):
        raise error


def _leads_back(parent, name):
    # A link to a folder that it lies in would never end.
    path = Path(parent, name)
    return path.is_symlink() and Path(parent).resolve().is_relative_to(path.resolve())


def remove(path):
    """Delete a file, or a folder with all it holds; nothing happens when it is not there."""
    if isinstance(path, Path) and path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder):
    """Who else asks for the folder meanwhile gets a BlockingIOError; ends with the process.

    Only local folders are held, and where the system can do it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        fcntl = None  # type: ignore[assignment]
    if isinstance(folder, Remote) or fcntl is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _LOCK, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # a network's file system without locks
            pass
        yield


def replace_text(path, text):
    """Write a file at once: who reads meanwhile sees the old text or the new one."""
    if isinstance(path, Remote):
        path.write_text(text)
        return
    fresh = path.with_name("." + path.name + ".new")
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)  # a disk that is full
        raise
