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
        paths = [path for path in folder.rglob("*") if path.is_file()]
        found = [(one, one.relative_to(folder).as_posix(), one.stat().st_size) for one in paths]
    return sorted(found, key=lambda one: one[1].split("/"))


def remove(path):
    """Delete a file, or a folder with all it holds; nothing happens when it is not there."""
    if is_remote(path):
        path.remove()
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def replace_text(path, text):
    """Write a file at once: who reads meanwhile sees the old text or the new one."""
    if is_remote(path):
        path.write_text(text)
        return
    fresh = path.with_name("." + path.name + ".new")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


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
