"""Where captures lie and tables go: a `pathlib.Path`, or a `Remote` that `pyarrow.fs` reaches."""

import contextlib
import io
import os
import re
from pathlib import Path

from pyarrow import ArrowException, fs

_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs"}
_NOT_REACHED = "%s is not reached: %s (docs/guides/fleet-cluster.md says what each store needs)"


class NotReached(OSError):
    """The store of an address does not answer; the text says what is missing."""


class Remote:
    """As much of `pathlib.Path` as the pipeline uses; pickled with its file system."""

    def __init__(self, address, found=None):
        scheme, _, rest = address.partition("://")
        self.address = "%s://%s" % (_HADOOP_NAMES.get(scheme, scheme), rest.rstrip("/"))
        try:
            self.store, self.path = found or fs.FileSystem.from_uri(self.address)
        except (OSError, ArrowException) as error:
            raise NotReached(_NOT_REACHED % (address, error)) from None

    def __str__(self):
        return self.address

    def __truediv__(self, name):
        head, mark, query = self.address.partition("?")
        address = "%s/%s%s%s" % (head, name, mark, query)
        return Remote(address, (self.store, "%s/%s" % (self.path, name)))

    def resolve(self):
        """The place: it is a whole address."""
        return self

    def mkdir(self, parents=True, exist_ok=True):
        """Make the folder, and those around it."""
        self.store.create_dir(self.path)

    def open(self, mode):
        """The bytes, to be read and sought in ("rb"), or to be written ("wb")."""
        if mode == "wb":
            return self.store.open_output_stream(self.path)
        return io.BufferedReader(self.store.open_input_file(self.path), 1 << 20)


def place(text):
    """The path that a text (or a path) names."""
    if not isinstance(text, str):
        return text
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) and not text.startswith("file://"):
        return Remote(text)
    return Path(re.sub("^file:/+", "/", text))


def is_within(path, folder):
    """Does `path` lie in `folder`, or is it the same?"""
    one, other = (str(getattr(end, "path", end.resolve())).rstrip("/") for end in (path, folder))
    return type(path) is type(folder) and (one + "/").startswith(other + "/")


def files(root):
    """The file, or all files in a folder and below -> [(path, name from there, bytes, time)] in
    order; the time of the last change in seconds, 0 in a store, where all files are whole."""
    found = list(_remote(root) if isinstance(root, Remote) else _local(root))
    return sorted(found, key=lambda one: one[1].split("/"))


def _remote(root):
    # A store has no folder for a table without rows.
    below = fs.FileSelector(root.path, recursive=True, allow_not_found=True)
    for one in (root.store.get_file_info(root.path), *root.store.get_file_info(below)):
        name = one.path.removeprefix(root.path).lstrip("/")
        if one.is_file:
            yield root / name if name else root, name or Path(one.path).name, one.size, 0


def _local(root):
    if root.is_file():
        yield root, root.name, root.stat().st_size, root.stat().st_mtime
        return
    for parent, below, names in os.walk(root, onerror=_unless_deleted, followlinks=True):
        # A link to a folder that it lies in would never end.
        below[:] = [one for one in below if not is_within(Path(parent), Path(parent, one))]
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # deleted since the folder was read
                about = path.stat() if path.exists() else path.lstat()
                if path.is_file() or not path.exists():  # a broken link fails when it is opened
                    # A file system may hold any bytes, a table only UTF-8.
                    raw = os.fsencode(path.relative_to(root).as_posix())
                    name = raw.decode("utf-8", "backslashreplace")
                    yield path, name, about.st_size, about.st_mtime


def _unless_deleted(error):
    if not isinstance(error, FileNotFoundError):
        raise error
