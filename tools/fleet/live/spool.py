"""The spool: messages from a broker on disk, as JSON lines, until they are processed.

A file is named by the number of its first message; numbers go on for ever.  Beside
them `released` says which QoS 2 packet ids were released after which message, so
that a restart knows the ids that may come again.  A line that a kill or a power cut
damaged was never acknowledged: it is cut off, with all behind it, and the broker
sends these messages again.
"""

import datetime
import json
import os
from pathlib import Path
from typing import BinaryIO

_RELEASED = "released"


class Spool:
    """`count` messages were ever taken, the first of those kept is number `first`."""

    _file: BinaryIO

    def __init__(self, folder, file_bytes=8 << 20):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file_bytes = file_bytes
        self._is_dirty = False
        self._files = {}  # number of the first message: how many
        self.held = {}  # packet id: number of its message
        self._recover()
        self._open_file()

    @property
    def first(self):
        """Number of the first message that is kept."""
        return min(self._files)

    def append(self, topic, payload, qos, retain, packet_id, dup=False):
        """Take a message; it is on disk after `sync()`."""
        if self._file.tell() >= self._file_bytes:
            self.sync()
            self._file.close()
            self._open_file()
        now = datetime.datetime.now(datetime.UTC)
        line = {
            "tst": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "topic": topic.decode("utf-8", "replace"),
            "qos": qos,
            "retain": int(retain),
            "payloadlen": len(payload),
            "payload": payload.hex(),
        }
        if qos:
            line["mid"] = packet_id
        if dup:
            line["dup"] = 1
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        if qos == 2:
            self.held[packet_id] = self.count
        self._files[self._newest] += 1
        self.count += 1
        self._is_dirty = True

    def release(self, packet_id):
        """PUBREL came for a QoS 2 message; on disk after `sync()`."""
        if self.held.pop(packet_id, None) is not None:
            self._released.write(b"%d %d\n" % (packet_id, self.count))
            self._is_dirty = True

    def sync(self):
        """Put everything so far on disk."""
        if self._is_dirty:
            # In this order: a release is never there without the message before it.
            for file in (self._file, self._released):
                file.flush()
                os.fsync(file.fileno())
            self._is_dirty = False
            self._synced_bytes = self._file.tell()

    def synced_bytes(self, path):
        """How much of one of the spool's files is on disk."""
        newest, synced_bytes = self._newest, self._synced_bytes
        return synced_bytes if int(Path(path).stem) >= newest else Path(path).stat().st_size

    def prune(self, number):
        """Delete files whose messages are all before `number`, and not held."""
        held = min(self.held.values(), default=self.count)
        for first in sorted(self._files)[:-1]:
            if first + self._files[first] > min(number, held):
                break
            self._path(first).unlink()
            del self._files[first]

    def close(self):
        """Put everything on disk and close the files."""
        self.sync()
        self._file.close()
        self._released.close()

    def _path(self, first):
        return self._folder / f"{first:016d}.jsonl"

    def _open_file(self):
        # In this order, as another thread asks `synced_bytes`.
        self._synced_bytes = 0
        self._newest = self.count
        self._file = open(self._path(self.count), "ab")
        self._files.setdefault(self.count, 0)
        _sync_folder(self._folder)

    def _recover(self):
        self.count = 0
        taken = []  # (number, packet id) of the QoS 2 messages
        for path, first in spool_files(self._folder):
            found = _repaired(path, _packet_id)
            self._files[first] = len(found)
            self.count = first + len(found)
            taken += [(number, one) for number, one in enumerate(found, first) if one]
        path = self._folder / _RELEASED
        path.touch()
        released = _repaired(path, _release)
        for number, packet_id in taken:
            self.held[packet_id] = number
        for packet_id, before in released:
            if self.held.get(packet_id, before) < before:
                del self.held[packet_id]
        self._rewrite_released(
            [pair for pair in released if pair[1] > min(self._files, default=0)]
        )

    def _rewrite_released(self, pairs):
        path = self._folder / _RELEASED
        fresh = path.with_suffix(".new")
        with open(fresh, "wb") as file:
            for packet_id, before in pairs:
                file.write(b"%d %d\n" % (packet_id, before))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        self._released = open(path, "ab")


def spool_files(folder):
    """[(path, number of its first message)], oldest first."""
    return [(path, int(path.stem)) for path in sorted(Path(folder).glob("*.jsonl"))]


def _repaired(path, read):
    # `read` of all lines; at the first that is not whole the file is cut off.
    found, end = [], 0
    with open(path, "rb") as file:
        for line in file:
            try:
                found.append(read(line))
            except (ValueError, KeyError):
                break
            end += len(line)
    if end < path.stat().st_size:
        os.truncate(path, end)
    with open(path, "rb") as file:
        os.fsync(file.fileno())  # it may be read and used from now on
    return found


def _packet_id(line):
    # Of a message at QoS 2, else 0.
    fields = json.loads(_whole(line))
    return fields["mid"] if fields["qos"] == 2 else 0


def _release(line):
    packet_id, before = map(int, _whole(line).split())
    return packet_id, before


def _whole(line):
    if not line.endswith(b"\n"):
        raise ValueError("line cut short")
    return line


def _sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
