"""Where captures lie and tables go: local files, or what Hadoop's file systems reach.

A place is a `pathlib.Path`, or a `HadoopPath` for an address such as `s3a://bucket/day`.
Local files are read and written as ever; Java has no part in it.
"""

import contextlib
import io
import mmap
import os
import re
import shutil
import tempfile
from pathlib import Path

from .hadoop import HadoopFile, HadoopPath

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCK = ".held"  # Spark, pandas and pyarrow pass over names with a dot
_SCHEME = re.compile(r"(file):/|([A-Za-z][A-Za-z0-9+.-]+)://")


def place(text):
    """The path that a text (or a path) names."""
    if isinstance(text, Path | HadoopPath):
        return text
    found = _SCHEME.match(text)
    if not found:
        return Path(text)
    if "file" in found.groups():
        return Path(re.sub("/+", "/", text.partition(":")[2], count=1))
    return HadoopPath(text)


def is_remote(path):
    """Is Java needed to get there?"""
    return isinstance(path, HadoopPath) or (isinstance(path, str) and "://" in path)


def uri(path):
    """The address of a place for Spark, which may take another file system for granted."""
    return str(path) if is_remote(path) else "file://%s" % path.resolve()


def is_within(path, folder):
    """Does `path` lie in `folder`, or is it the same?"""
    if is_remote(path) != is_remote(folder):
        return False
    return path.resolve().is_relative_to(folder.resolve())


def open_binary(path):
    """The bytes of a file, to be read and sought in."""
    found = place(path)
    return io.BufferedReader(found.open(), 1 << 20) if is_remote(found) else open(found, "rb")


def mapped(stream, begin=0, until=None):
    """A file of `open_binary` as one run of bytes, of which `begin` to `until` are there."""
    if isinstance(stream.raw, HadoopFile):
        return stream.raw.mapped(begin, until)
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def size_and_time(path):
    """-> (bytes, seconds since 1970 of the last change) of a file."""
    found = place(path)
    if is_remote(found):
        return found.size_and_time()
    status = found.stat()
    return status.st_size, status.st_mtime


def files(folder):
    """All files in a folder and below -> [(path, name from there, bytes), …] in order."""
    if is_remote(folder):
        found = folder.files()
    else:
        found = list(_local_files(folder))
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
    if is_remote(path):
        path.remove()
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder):
    """Who else asks for the folder meanwhile gets a BlockingIOError; ends with the process.

    Only local folders are held, and where the system can do it.
    """
    if is_remote(folder) or fcntl is None:
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


def put(fresh, target):
    """Put a file in the place of another one; on one computer at once."""
    if is_remote(target):
        target.remove()  # these rename to where nothing is
    fresh.replace(target)


def replace_text(path, text):
    """Write a file at once: who reads meanwhile sees the old text or the new one."""
    if is_remote(path):
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


@contextlib.contextmanager
def made_here(path):
    """A local path to write the file to that `path` shall be."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        local = Path(folder) / path.name
        yield local
        path.take(local)


@contextlib.contextmanager
def copied_here(path):
    """A local path with what is at `path`; for small folders only."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        path.copy_to(Path(folder) / path.name)
        yield Path(folder) / path.name
