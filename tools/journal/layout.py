"""Bytes of a journal image -> groups and records, as docs/reference/journal-format.md has them."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

VERSION = 2
_MAGIC = 0x4A
_HEAD = struct.Struct("<BBHBHIB")
_TITLE = struct.Struct("<4H")
_ENTRY = struct.Struct("<BIHH")
_NOTE = struct.Struct("<BI")
_CRC = struct.Struct("<I")
_RUN = struct.Struct("<HH")
_LENGTH = struct.Struct("<H")
_STATE_BYTES = 34
_CLEAN = 0x80
_STEP_BYTES = 32  # groups lie at multiples of it, whatever the layout
_BLANK = 0xFF

_NOTES = {
    1: "pubrec",
    2: "remove",
    3: "online",
    4: "clear",
    5: "hold",
    6: "release",
    7: "renew",
}


class NotAJournal(Exception):
    """The image holds none; the message is one line that says what was found."""


class Layout(NamedTuple):
    """What a title says."""

    page_bytes: int
    cell_bytes: int
    block_pages: int
    blocks: int
    client_id: bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of an erase block."""
        return self.page_bytes * self.block_pages

    @property
    def pages(self) -> int:
        """Pages of the ring."""
        return self.block_pages * self.blocks


class Record(NamedTuple):
    """A message or a note; `number` is the message's or, of "hold" and "release", the
    received packet id."""

    kind: str
    number: int
    packet_id: int = 0
    qos: int = 0
    has_pubrec: bool = False
    maybe_sent: bool = False
    packet: bytes = b""


@dataclass
class Group:
    """A sealed group: `address` in the image, `page` counted on and on, length in bytes."""

    address: int
    page: int
    length: int
    back: int
    last_id: int
    session: int
    records: list[Record] = field(default_factory=list)


@dataclass
class Log:
    """The whole journal: its groups from the oldest on, and what they add up to."""

    layout: Layout
    oldest: int
    newest: int
    groups: list[Group]
    unreadable: list[int]  # addresses of pages that are neither groups nor blank
    last_id: int = 0
    level: int = 0  # of the protocol
    is_clean: bool = False  # the session ends with its connection
    entries: dict[int, Record] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)  # received QoS 2 ids

    def messages(self) -> list[Record]:
        """The messages that would be recovered, oldest first."""
        return [r for _, r in sorted(self.entries.items())]


def read_group(image: bytes, at: int, room: int) -> Group | None:
    """The group at `at`, at most `room` bytes, without its records; None if there is none."""
    if room < _HEAD.size + _CRC.size or image[at] != _MAGIC:
        return None
    _, _, length, back, last_id, page, session = _HEAD.unpack_from(image, at)
    if not _STEP_BYTES <= length <= room:
        return None
    end = at + length - _CRC.size
    (stored,) = _CRC.unpack_from(image, end)
    # The two highest bits of the last byte are part of what is summed up.
    sealed = image[at:end] + _CRC.pack(stored & 0xC0000000)
    if zlib.crc32(sealed) != stored & 0x3FFFFFFF:
        return None
    return Group(at, page, length, back, last_id, session)


def find_layout(image: bytes) -> Layout:
    """What the first title says; NotAJournal if there is none."""
    for at in range(0, len(image), _STEP_BYTES):
        group = read_group(image, at, len(image) - at)
        if group is None:
            continue
        if image[at + 1] != VERSION:
            raise NotAJournal(f"journal of format version {image[at + 1]}, not {VERSION}")
        title = _title(image, group)
        if len(title) < _TITLE.size + _STATE_BYTES + _LENGTH.size:
            continue
        page, cell, pages, blocks = _TITLE.unpack_from(title)
        client_id = title[_TITLE.size : -_STATE_BYTES - _LENGTH.size]
        layout = Layout(page, cell, pages, blocks, client_id)
        if layout.block_bytes * layout.blocks == len(image) and not at % layout.block_bytes:
            return layout
    raise NotAJournal(f"no journal in these {len(image)} bytes")


def read_log(image: bytes) -> Log:
    """All of it; NotAJournal if there is none."""
    layout = find_layout(image)
    groups: dict[int, list[Group]] = {}
    for block in range(layout.blocks):
        for group in _groups(image, layout, block, []):
            groups.setdefault(group.page // layout.block_pages, []).append(group)
    newest = max(groups)
    last = groups[newest][-1]
    oldest = newest - last.back
    if last.back == layout.blocks - 1:
        newest -= 1  # nothing but copies of what the oldest block holds
    log = Log(layout, oldest, newest, [], [], last.last_id)
    log.level = last.session & ~_CLEAN
    log.is_clean = bool(last.session & _CLEAN)
    for block in range(oldest, newest + 1):
        for group in _groups(image, layout, block % layout.blocks, log.unreadable):
            if group.page // layout.block_pages == block:
                group.records = [*_records(image, group, layout)]
                log.groups.append(group)
                if group.address % layout.block_bytes == 0:
                    log.held = set(_held(image, group))
                _add_up(log, group.records)
    return log


def _title(image: bytes, group: Group) -> bytes:
    end = group.address + group.length - _CRC.size
    (length,) = _LENGTH.unpack_from(image, end - _LENGTH.size)
    return image[max(group.address, end - length) : end]


def _held(image: bytes, group: Group) -> Iterator[int]:
    state = _title(image, group)[-_STATE_BYTES - _LENGTH.size : -_LENGTH.size]
    for at in range(0, _STATE_BYTES - _RUN.size + 1, _RUN.size):
        first, last = _RUN.unpack_from(state, at)
        if not first:
            break
        yield from range(first, last + 1)


def _groups(image: bytes, layout: Layout, block: int, unreadable: list[int]) -> Iterator[Group]:
    at = block * layout.block_bytes
    stop = at + layout.block_bytes
    while at < stop:
        group = read_group(image, at, stop - at)
        place = at // layout.page_bytes
        if group is not None and group.page % layout.pages == place:
            yield group
            at += group.length
            if group.length > layout.page_bytes:  # what follows begins on a new page
                at += -at % layout.page_bytes
            continue
        page = place * layout.page_bytes
        if any(b != _BLANK for b in image[at : at + layout.cell_bytes]) and page not in unreadable:
            unreadable.append(page)
        at += layout.cell_bytes


def _records(image: bytes, group: Group, layout: Layout) -> Iterator[Record]:
    at = group.address + _HEAD.size
    end = group.address + group.length - _CRC.size
    if group.address % layout.block_bytes == 0:
        end -= len(_title(image, group))
    while at < end and image[at] != _BLANK:
        kind, number = _NOTE.unpack_from(image, at)
        if not kind & 0x80:
            yield Record(_NOTES.get(kind, f"unknown {kind}"), number)
            at += _NOTE.size
            continue
        _, _, packet_id, n = _ENTRY.unpack_from(image, at)
        at += _ENTRY.size
        yield Record(
            "message",
            number,
            packet_id,
            kind & 3,
            bool(kind & 8),
            bool(kind & 16),
            image[at : at + n],
        )
        at += n


def _add_up(log: Log, records: list[Record]) -> None:
    entries = log.entries
    for record in records:
        if record.kind == "message":
            entries[record.number] = record
        elif record.kind == "clear":
            entries.clear()
            log.held.clear()
        elif record.kind == "remove":
            entries.pop(record.number, None)
        elif record.kind == "hold":
            log.held.add(record.number)
        elif record.kind == "release":
            log.held.discard(record.number)
        elif record.kind == "online":
            for number, entry in entries.items():
                entries[number] = entry._replace(maybe_sent=True)
        elif record.kind == "renew":
            log.held.clear()
            for number, entry in entries.items():
                entries[number] = entry._replace(maybe_sent=False, has_pubrec=False)
        elif record.kind == "pubrec" and record.number in entries:
            entries[record.number] = entries[record.number]._replace(has_pubrec=True)
