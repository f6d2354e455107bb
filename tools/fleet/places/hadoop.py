"""A path in a file system of Hadoop's: `hdfs://`, `s3a://`, `abfss://` and what else has jars.

`HadoopPath` is as much of `pathlib.Path` as the pipeline uses.  Bytes do not pass through
Python's connection to Java: Java copies what is asked for into a local file without a name
(`HadoopFile`), and local files into the store.
"""

import functools
import io
import mmap
import os
import tempfile

from .java import java, want

_BLOCK_BYTES = 1 << 20


def _told(function):
    # Java's exceptions as Python's.
    @functools.wraps(function)
    def run(*args, **more):
        from py4j.protocol import Py4JJavaError

        try:
            return function(*args, **more)
        except Py4JJavaError as error:
            text = str(error.java_exception.toString()).splitlines()[0]
            kind = FileNotFoundError if "FileNotFoundException" in text else OSError
            raise kind(text) from None

    return run


class HadoopPath:
    """One path, named by its whole address; pickled as that."""

    def __init__(self, text):
        want()
        head, tail = text.split("://", 1)
        self._text = head + "://" + (tail.rstrip("/") if "/" in tail.rstrip("/") else tail)

    def __str__(self):
        return self._text

    def __repr__(self):
        return "HadoopPath(%r)" % self._text

    def __eq__(self, other):
        return str(self) == str(other)

    def __lt__(self, other):
        return str(self) < str(other)

    def __hash__(self):
        return hash(self._text)

    def __truediv__(self, name):
        return HadoopPath(self._text.rstrip("/") + "/" + str(name))

    @property
    def name(self):
        """What stands behind the last slash."""
        return self._text.rpartition("/")[2]

    @property
    def parent(self):
        """The folder it lies in."""
        return HadoopPath(self._text.rpartition("/")[0])

    def with_name(self, name):
        """Another path in the same folder."""
        return self.parent / name

    def is_relative_to(self, other):
        """Does it lie in the folder `other`, or is it the same?"""
        return (self._text + "/").startswith(str(other).rstrip("/") + "/")

    def resolve(self):
        """The path: it is a whole address."""
        return self

    @_told
    def exists(self):
        """Is there a file or a folder?"""
        return self._system().exists(self._path())

    def is_dir(self):
        """Is it a folder?"""
        found = self._status()
        return found is not None and found.isDirectory()

    def is_file(self):
        """Is it a file?"""
        found = self._status()
        return found is not None and found.isFile()

    @_told
    def size_and_time(self):
        """-> (bytes, seconds since 1970 of the last change) of the file."""
        found = self._system().getFileStatus(self._path())
        return found.getLen(), found.getModificationTime() / 1000

    @_told
    def iterdir(self):
        """What the folder holds -> [path, …]."""
        return [self / one.getPath().getName() for one in self._system().listStatus(self._path())]

    @_told
    def files(self):
        """All files in the folder and below -> [(path, name from here, bytes), …]."""
        system = self._system()
        root = system.makeQualified(self._path()).toUri().getPath().rstrip("/") + "/"
        found, rest = [], system.listFiles(self._path(), True)
        while rest.hasNext():
            one = rest.next()
            name = one.getPath().toUri().getPath().removeprefix(root)
            found.append((self / name, name, one.getLen()))
        return found

    @_told
    def mkdir(self, parents=True, exist_ok=True):
        """Make the folder, and those around it."""
        if not self._system().mkdirs(self._path()):
            raise OSError("%s cannot be made a folder" % self)

    @_told
    def replace(self, target):
        """Rename it to `target`, where nothing may be."""
        if not self._system().rename(self._path(), target._path()):
            raise OSError("%s cannot be renamed to %s" % (self, target))

    @_told
    def remove(self):
        """Delete it, a folder with all it holds; nothing happens when it is not there."""
        self._system().delete(self._path(), True)

    @_told
    def read_text(self):
        """What the file says."""
        stream = self._system().open(self._path())
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    @_told
    def write_text(self, text, encoding="utf-8"):
        """Write the file, at once: who reads meanwhile sees the old text or the new one.

        In the way that Spark's checkpoints are written, which knows what stores can do.
        """
        spark = java().jvm.org.apache.spark.sql.execution.streaming.checkpointing
        manager = spark.CheckpointFileManager.create(self.parent._path(), java().configuration)
        stream = manager.createAtomic(self._path(), True)
        try:
            stream.write(text.encode(encoding))
        except BaseException:
            stream.cancel()
            raise
        stream.close()

    @_told
    def take(self, local):
        """Move the local file `local` here."""
        source = java().jvm.org.apache.hadoop.fs.Path("file://" + str(local))
        self._system().copyFromLocalFile(True, True, source, self._path())

    @_told
    def copy_to(self, local):
        """Copy the file or folder to the local path `local`."""
        target = java().jvm.org.apache.hadoop.fs.Path("file://" + str(local))
        self._system().copyToLocalFile(False, self._path(), target, True)

    @_told
    def open(self):
        """-> `HadoopFile`"""
        return HadoopFile(self, self._system().open(self._path()))

    @_told
    def _status(self):
        try:
            return self._system().getFileStatus(self._path())
        except Exception as error:
            if "FileNotFoundException" in str(error):
                return None
            raise

    def _path(self):
        return java().jvm.org.apache.hadoop.fs.Path(self._text)

    def _system(self):
        return self._path().getFileSystem(java().configuration)


class HadoopFile(io.RawIOBase):
    """The bytes of a file, for reading anywhere: what is asked for is fetched once.

    It lies in a local file, with holes where nothing was asked for.
    """

    def __init__(self, path, stream):
        super().__init__()
        self.size, _ = path.size_and_time()
        self._stream = stream
        self._has = bytearray(-(-self.size // _BLOCK_BYTES))
        self._at = 0
        number, name = tempfile.mkstemp(prefix="fleet-", dir=_scratch())
        try:
            self._local = os.fdopen(number, "rb", buffering=0)
            self._inward = java().jvm.java.io.RandomAccessFile(name, "rw")
            self._inward.setLength(self.size)
        finally:
            os.unlink(name)  # both sides hold it open; nothing is left after a kill
        channel = self._inward.getChannel()
        self._outlet = java().jvm.java.nio.channels.Channels.newOutputStream(channel)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def tell(self):
        return self._at

    def fileno(self):
        return self._local.fileno()

    def readinto(self, view):
        view = memoryview(view).cast("B")
        until = min(self.size, self._at + len(view))
        if until <= self._at:
            return 0
        self.fetch(self._at, until)
        self._local.seek(self._at)
        got = self._local.readinto(view[: until - self._at])
        self._at += got
        return got

    def close(self):
        if not self.closed:
            self._local.close()
            for one in (self._stream, self._inward):
                one.close()
        super().close()

    @_told
    def fetch(self, begin, until):
        """Have the bytes from `begin` to `until` in the local file."""
        first, behind = begin // _BLOCK_BYTES, -(-min(until, self.size) // _BLOCK_BYTES)
        while (first := self._has.find(0, first, behind)) >= 0:
            end = self._has.find(1, first, behind)
            end = behind if end < 0 else end
            self._copy(first * _BLOCK_BYTES, min(end * _BLOCK_BYTES, self.size))
            self._has[first:end] = b"\1" * (end - first)
            first = end

    def _copy(self, begin, until):
        self._stream.seek(begin)
        self._inward.seek(begin)
        copy = java().jvm.org.apache.commons.io.IOUtils.copyLarge
        if copy(self._stream, self._outlet, 0, until - begin) != until - begin:
            raise OSError("the file is shorter than its folder says")

    def mapped(self, begin=0, until=None):
        """The whole file in memory's addresses, with the bytes of this part in it."""
        self.fetch(begin, self.size if until is None else until)
        return mmap.mmap(self.fileno(), 0, access=mmap.ACCESS_READ)


def _scratch():
    # Where Spark keeps what it needs for a while.
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return folders[0] if os.path.isdir(folders[0]) else None
