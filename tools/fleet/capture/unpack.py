"""Compressed files: known by their first bytes, unpacked while they are read.

gzip, zstd, xz, bzip2 and lz4.  A file that is cut short or damaged yields what can be
unpacked; where that ends is noted.
"""

import gzip
import io
import lzma
import zlib

import pyarrow as pa

_READ_BYTES = 1 << 16  # at a damaged place at most so many unpacked bytes are lost
_FORMATS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
}


def opened(file, tally):
    """The bytes of a file, unpacked when it is compressed; damage is noted in `tally`."""
    start = file.peek(max(map(len, _FORMATS)))
    name = next((name for magic, name in _FORMATS.items() if start.startswith(magic)), None)
    if name is None:
        return file
    if name == "gzip":
        read = gzip.GzipFile(fileobj=file).read1
    elif name == "xz":
        read = lzma.LZMAFile(file).read1
    else:
        read = pa.CompressedInputStream(pa.PythonFile(file, "r"), name).read
    return io.BufferedReader(_Forgiving(read, name, tally), 1 << 20)


class _Forgiving(io.RawIOBase):
    def __init__(self, read, name, tally):
        self._read, self._name, self._tally = read, name, tally
        self._count, self._is_done = 0, False

    def readable(self):
        return True

    def readinto(self, view):
        got = 0
        while got < len(view) and not self._is_done:
            # Small steps keep what was unpacked before the damage.
            try:
                part = self._read(min(len(view) - got, _READ_BYTES))
            except EOFError as error:
                self._tally.cut_short(self._count + got, "%s: %s" % (self._name, error))
                part = b""
            except (OSError, zlib.error, lzma.LZMAError) as error:
                self._tally.error(self._count + got, "%s: %s" % (self._name, error))
                self._tally.is_cut = True
                part = b""
            view[got : got + len(part)] = part
            got += len(part)
            self._is_done = not part
        self._count += got
        return got
