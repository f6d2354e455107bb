"""Capture files by their content: pcap or pcapng, plain or compressed; JSON lines by name.

The only place in `capture` that looks for files.  A file is known by its name under
the folder that is audited (`capture`), and by the sub-folder it lies in (`site`).
"""

import re
from dataclasses import dataclass, replace

from .. import places
from . import chunks, pcap, pcapng, unpack
from .frames import CHUNK_BYTES, CaptureError, Tally

_PACKED_SUFFIXES = ("", ".gz", ".zst", ".xz", ".bz2", ".lz4")
JSON_SUFFIXES = tuple(one + more for one in (".jsonl", ".ndjson") for more in _PACKED_SUFFIXES)
CAPTURE_SUFFIXES = tuple(
    one + more for one in (".pcap", ".pcapng", ".cap") for more in _PACKED_SUFFIXES
)
NO_SITE = "default"
_ROTATED = re.compile(r"([-_.][-_.:+\dtz]*\d[tz\d]*)+$")
_ARCHIVES = {b"PK\x03\x04": "zip", b"7z\xbc\xaf": "7-Zip", b"Rar!": "RAR"}


@dataclass(frozen=True)
class Source:
    """One file: `path` to open, `capture` its name in the tables, `site`.

    `problem` says why it cannot be read, None when it can, or when nobody has looked;
    `changed_s` is the time when a local file was last written to.
    """

    path: str
    capture: str
    site: str
    problem: str | None = None
    size_bytes: int = 0
    changed_s: float = 0


def survey(folder):
    """All files under `folder`, or the one that it names, each with its `problem`.

    Sub-folders are sites.  Files with other endings are captures when their first bytes say so.
    """
    return [checked(source) for source in listed(folder)]


def listed(folder):
    """All files under `folder`, or the one that it names; none of them is opened.

    Files and folders that begin with a dot or an underscore are other programs' own.
    """
    root, found = places.place(folder), []
    for path, name, *about in places.files(root):
        if path is root or not any(one.startswith((".", "_")) for one in name.split("/")):
            site = name.rpartition("/")[0] or NO_SITE
            found.append(Source(str(path), name, site, None, *about))
    return found


def checked(source):
    """The source with its `problem`; only a file whose name does not tell is opened."""
    if source.capture.lower().endswith(JSON_SUFFIXES + CAPTURE_SUFFIXES):
        return source
    return replace(source, problem=_problem(source.path))


def is_json(source):
    """Is this `Source` a file of JSON lines?"""
    return source.capture.lower().endswith(JSON_SUFFIXES)


def subscriber(capture):
    """Whose JSON lines they are, by the file's name: rotated files are of one subscriber.

    Numbers, dates and times at the end are left out: `gate-1.jsonl` and `gate.2.jsonl.gz` are
    of `gate`, `gate1.jsonl` is of another one.
    """
    folder, _, name = capture.rpartition("/")
    name = name.lower()
    ending = next(one for one in sorted(JSON_SUFFIXES, key=len)[::-1] if name.endswith(one))
    return folder + "/" + _ROTATED.sub("", "-" + name.removesuffix(ending))


def _problem(path):
    try:
        with open_stream(path, Tally()) as stream:
            start = stream.read(4)
        if pcap.is_pcap(start) or pcapng.is_pcapng(start):
            return None
    except OSError as error:
        return "cannot be opened: %s" % error.strerror
    archive = next((name for magic, name in _ARCHIVES.items() if start.startswith(magic)), None)
    if archive:
        return "%s archive: unpack it first" % archive
    if not start:
        return "empty"
    return "neither a capture nor named %s" % " or ".join(JSON_SUFFIXES[:: len(_PACKED_SUFFIXES)])


def open_stream(path, tally):
    """The file's bytes, unpacked when it is compressed; damage of that is noted in `tally`."""
    return unpack.opened(places.place(path).open("rb"), tally)


def opened(path, tally):
    """As `open_stream`; None where the file cannot be opened (any more), noted in `tally`."""
    try:
        return open_stream(path, tally)
    except OSError as error:
        tally.not_read("cannot be opened: %s" % error.strerror)
        return None


def read_frames(path, tally, begin=0, until=None, known=(), chunk_bytes=CHUNK_BYTES):
    """Yield the `Frames` of a file, or of its records (blocks) from `begin` to `until`.

    `begin` must be where a record starts, as `ranges` finds it, with what is `known` there.  A
    file that is no capture, or cannot be opened, is noted in `tally` and yields nothing.
    """
    stream = opened(path, tally)
    if stream is None:
        return
    with stream:
        start = stream.peek(pcap.HEADER_BYTES)[: pcap.HEADER_BYTES]
        walker: pcap.Walker | pcapng.Walker
        try:
            if pcapng.is_pcapng(start):
                walker, base = pcapng.Walker(tally, *known), begin
            elif pcap.is_pcap(start):
                base = max(begin, pcap.HEADER_BYTES)
                walker = pcap.Walker(pcap.read_header(start), tally)
            else:
                raise CaptureError(0, "not a capture" if start else "empty file")
            # A compressed file has no seek().
            (stream.seek if begin else stream.read)(base)
            yield from chunks.read(stream, walker, tally, base, until, chunk_bytes)
        except CaptureError as error:
            # A file without its whole head may have just been begun.
            is_begun = len(start) < len(pcapng.SECTION_MAGIC) or pcap.is_pcap(start)
            (tally.cut_short if is_begun else tally.error)(*error.args)


def first_ts(path):
    """Time of the first frame in microseconds; None when there is none."""
    for frames in read_frames(path, Tally(), chunk_bytes=1 << 16):
        return int(frames.ts[0])
    return None


def ranges(path, range_bytes):
    """Split a plain pcap or pcapng file into (begin, until, known) of about this size.

    Every `begin` is where a record (block) starts; `known` is what those before tell of it.
    What is compressed, or damaged near a cut, is not cut there.
    """
    path, cuts = places.place(path), [(0, ())]
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        start = stream.read(pcap.HEADER_BYTES)
        if size < range_bytes + range_bytes // 2 or len(start) < pcap.HEADER_BYTES:
            pass
        elif pcap.is_pcap(start):
            records = pcap.Walker(pcap.read_header(start))
            cuts += ((place, ()) for place in _cuts(stream, records, size, range_bytes))
        # This reads the whole file, so not in a store.
        elif pcapng.is_pcapng(start) and not isinstance(path, places.Remote):
            stream.seek(0)
            cuts += pcapng.cuts(stream, size, range_bytes)
    ends = [*(begin for begin, _ in cuts[1:]), None]
    return [(begin, end, known) for (begin, known), end in zip(cuts, ends, strict=True)]


def _cuts(stream, walker, size, range_bytes):
    before = begin = pcap.HEADER_BYTES
    for goal in range(begin + range_bytes, size - range_bytes // 2, range_bytes):
        # A record inside a recorded payload may lead into the true chain.  So the search begins
        # earlier, by more than a false start can last.
        first = max(begin, goal - chunks.SYNC_BYTES)
        stream.seek(first)
        data = stream.read(3 * chunks.SYNC_BYTES)
        is_last = first + len(data) == size
        found = chunks.resync(walker, data, 0, is_last, chunks.SYNC_BYTES)
        place = first + chunks.hop(walker, data, found, goal - first)
        if before < place < size and place >= goal:
            yield place
            before = place
