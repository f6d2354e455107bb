"""Capture files by their content: pcap or pcapng, plain or gzip; JSON lines by name.

The only place in `capture` that opens files.  A file is known by its name under
the folder that is audited (`capture`), and by the sub-folder it lies in (`site`).
"""

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

from . import pcap, pcapng
from .frames import CHUNK_BYTES, CaptureError, Tally

JSON_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz")
NO_SITE = "default"


@dataclass(frozen=True)
class Source:
    """One file: `path` to open, `capture` its name in the tables, `site`."""

    path: str
    capture: str
    site: str


def find(folder):
    """All captures (and JSON lines) under `folder`, or the one file it names.

    Sub-folders are sites.  Files with other endings are taken when their first
    bytes say that they are captures.
    """
    root = Path(folder)
    if root.is_file():
        return [Source(str(root), root.name, NO_SITE)]
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            name = path.relative_to(root).as_posix()
            if name.lower().endswith(JSON_SUFFIXES + CAPTURE_SUFFIXES) or _looks_right(path):
                site = "/".join(name.split("/")[:-1]) or NO_SITE
                found.append(Source(str(path), name, site))
    return found


def is_json(source):
    """Is this `Source` a file of JSON lines?"""
    return source.capture.lower().endswith(JSON_SUFFIXES)


def _looks_right(path):
    with open(path, "rb") as stream:
        start = stream.read(4)
    return pcap.is_pcap(start) or pcapng.is_pcapng(start)


def open_stream(path):
    """The file's bytes, unpacked when it is gzip."""
    stream = open(path, "rb")
    start = stream.read(2)
    stream.seek(0)
    return gzip.GzipFile(fileobj=stream) if start == b"\x1f\x8b" else stream


def open_lines(path, tally):
    """A file of lines, unpacked when it is gzip; damage is noted in `tally` and ends it."""
    stream = open_stream(path)
    is_packed = isinstance(stream, gzip.GzipFile)
    return io.BufferedReader(_Forgiving(stream, tally)) if is_packed else stream


class _Forgiving(io.RawIOBase):
    # A gzip file that is cut short or damaged yields what can be unpacked.
    def __init__(self, stream, tally):
        self._stream, self._tally, self._count, self._is_done = stream, tally, 0, False

    def readable(self):
        return True

    def readinto(self, view):
        got = 0
        while got < len(view) and not self._is_done:
            # read1 keeps what was unpacked before the damage; read would lose it.
            try:
                part = self._stream.read1(min(len(view) - got, 1 << 20))
            except (EOFError, OSError, zlib.error) as error:
                self._tally.error(self._count + got, "gzip: %s" % error)
                part = b""
            view[got : got + len(part)] = part
            got += len(part)
            self._is_done = not part
        self._count += got
        return got


def read_frames(path, tally, begin=0, until=None, chunk_bytes=CHUNK_BYTES):
    """Yield the `Frames` of a file, or of its pcap records from `begin` to `until`.

    `begin` must be where a record starts, as `ranges` finds it.  A file that is no
    capture is noted in `tally` and yields nothing.
    """
    with open_stream(path) as raw:
        stream = _Forgiving(raw, tally) if isinstance(raw, gzip.GzipFile) else raw
        start = stream.read(pcap.HEADER_BYTES)
        try:
            if pcapng.is_pcapng(start):
                yield from pcapng.frames(_Rejoined(start, stream), tally, chunk_bytes)
            elif pcap.is_pcap(start):
                header = pcap.read_header(start)
                if begin > pcap.HEADER_BYTES:
                    stream.seek(begin)
                base = max(begin, pcap.HEADER_BYTES)
                yield from pcap.frames(stream, header, tally, base, until, chunk_bytes)
            else:
                raise CaptureError(0, "not a capture" if start else "empty file")
        except CaptureError as error:
            tally.error(*error.args)


class _Rejoined:
    # A stream of which the first bytes were read already.
    def __init__(self, start, stream):
        self._start, self._stream = start, stream

    def readinto(self, view):
        start, self._start = self._start, b""
        view[: len(start)] = start
        return len(start) + self._stream.readinto(view[len(start) :])


def first_ts(path):
    """Time of the first frame in microseconds; None when there is none."""
    for frames in read_frames(path, Tally(), chunk_bytes=1 << 16):
        return int(frames.ts[0])
    return None


def ranges(path, range_bytes):
    """Split a plain pcap file into (begin, until) at record starts, about this large.

    Anything else (gzip, pcapng, damaged near a cut) is one range, (0, None).
    """
    with open(path, "rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        start = stream.read(pcap.HEADER_BYTES)
        if not pcap.is_pcap(start) or len(start) < pcap.HEADER_BYTES:
            return [(0, None)]
        header = pcap.read_header(start)
        cuts = [0]
        for goal in range(range_bytes, size - range_bytes // 2, range_bytes):
            # A record inside a recorded payload may lead into the true chain, so the
            # search begins farther ahead than a false start can last.
            begin = max(pcap.HEADER_BYTES, goal - pcap.SYNC_BYTES)
            stream.seek(begin)
            data = stream.read(3 * pcap.SYNC_BYTES)
            found = pcap.resync(data, header, 0, begin + len(data) == size, pcap.SYNC_BYTES)
            if found >= 0:
                _, place, is_bad = pcap.walk(data, goal - begin, header, found)
                if not is_bad and begin + place > cuts[-1]:
                    cuts.append(begin + place)
    return list(zip(cuts, [*cuts[1:], None]))
