"""Bytes of a journal image -> groups and records, as docs/reference/journal-format.md has them."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

VERSION = 3
_MAGIC = 0x4A
_HEAD = struct.Struct("<BBHII")
_TITLE = struct.Struct("<B4HBBHIII")
_ENTRY = struct.Struct(">BHH")
_NOTE = struct.Struct("<BI")
_CRC = struct.Struct("<I")
_TITLE_KIND = 11
_CLEAN = 0x80
_STEP_BYTES = 32  # groups lie at multiples of it, whatever the layout
_BLANK = 0xFF
_IDS = 30  # of a set

_NUMBER = 1
_NOTES = "unknown 0/number/done/pubrec/online/hold/release/renew/set/bits/oldest".split("/")


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


class Record(NamedTuple):
    """A message, a note or a title; `number` is the message's or what the note says."""

    kind: str
    number: int
    packet_id: int = 0
    qos: int = 0
    has_pubrec: bool = False
    maybe_sent: bool = False
    packet: bytes = b""


class Title(NamedTuple):
    """What a title says beyond the layout: how it was when its block was begun."""

    back: int
    session: int
    last_id: int
    first: int
    next: int
    sent: int


@dataclass
class Group:
    """A sealed group: `address` in the image, `page` counted on and on, length in bytes;
    `number` is that of its first message."""

    address: int
    page: int
    length: int
    number: int
    title: Title | None = None
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
    end: int = 0  # number of the next message
    sent: int = 0  # messages before this number may have been sent
    set_number: int = 0  # of the bits that follow
    level: int = 0  # of the protocol
    is_clean: bool = False  # the session ends with its connection
    entries: dict[int, Record] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)  # received QoS 2 ids

    def messages(self) -> list[Record]:
        """The messages that would be recovered, oldest first."""
        return [
            record._replace(maybe_sent=number < self.sent)
            for number, record in sorted(self.entries.items())
        ]


def read_group(image: bytes, at: int, room: int) -> Group | None:
    """The group at `at`, at most `room` bytes, without its records; None if there is none."""
    if room < _HEAD.size + _CRC.size or image[at] != _MAGIC:
        return None
    _, _, length, number, page = _HEAD.unpack_from(image, at)
    if not _STEP_BYTES <= length <= room:
        return None
    end = at + length - _CRC.size
    (stored,) = _CRC.unpack_from(image, end)
    # The CRC covers the two highest bits of its own last byte.
    sealed = image[at:end] + _CRC.pack(stored & 0xC0000000)
    if zlib.crc32(sealed) != stored & 0x3FFFFFFF:
        return None
    group = Group(at, page, length, number)
    if image[at + 1] == VERSION and image[at + _HEAD.size] == _TITLE_KIND:
        group.title = Title(*_TITLE.unpack_from(image, at + _HEAD.size)[5:])
    return group


def find_layout(image: bytes) -> Layout:
    """What the first title says; NotAJournal if there is none."""
    for at in range(0, len(image), _STEP_BYTES):
        group = read_group(image, at, len(image) - at)
        if group is None:
            continue
        if image[at + 1] != VERSION:
            raise NotAJournal(f"journal of format version {image[at + 1]}, not {VERSION}")
        if group.title is None:
            continue
        _, page, cell, pages, blocks = _TITLE.unpack_from(image, at + _HEAD.size)[:5]
        begin = at + _HEAD.size + _TITLE.size
        client_id = image[begin : at + group.length - _CRC.size].rstrip(b"\xff")
        layout = Layout(page, cell, pages, blocks, client_id)
        if layout.block_bytes * layout.blocks == len(image) and not at % layout.page_bytes:
            return layout
    raise NotAJournal(f"no journal in these {len(image)} bytes")


def read_log(image: bytes) -> Log:
    """All of it; NotAJournal if there is none."""
    layout = find_layout(image)
    blocks: dict[int, tuple[list[Group], list[int]]] = {}  # groups, addresses of unreadable pages
    for place in range(layout.blocks):
        unreadable: list[int] = []
        groups = [*_groups(image, layout, place, unreadable)]
        titles = [group for group in groups if group.title]
        if titles:
            block = titles[0].page // layout.block_pages
            own = [group for group in groups if group.page // layout.block_pages == block]
            blocks[block] = own, unreadable
    newest = oldest = max(blocks)
    for group in blocks[newest][0]:
        if group.title:
            oldest = newest - group.title.back
        for record in group.records:
            if record.kind == "oldest":
                oldest = record.number
    if newest - oldest + 1 >= layout.blocks:
        newest -= 1  # it holds only copies from the oldest block
    log = Log(layout, oldest, newest, [], [])
    for block in range(oldest, newest + 1):
        groups, unreadable = blocks.get(block, ([], []))
        log.unreadable += unreadable
        log.groups += groups
        for group in groups:
            _add_up(log, group)
    return log


def _groups(image: bytes, layout: Layout, place: int, unreadable: list[int]) -> Iterator[Group]:
    at = place * layout.block_bytes
    stop = at + layout.block_bytes
    while at < stop:
        group = read_group(image, at, stop - at)
        page = at // layout.page_bytes
        if group is not None and group.page % (layout.block_pages * layout.blocks) == page:
            group.records = [*_records(image, group)]
            yield group
            at += group.length
            continue
        page *= layout.page_bytes
        if any(b != _BLANK for b in image[at : at + layout.cell_bytes]) and page not in unreadable:
            unreadable.append(page)
        at += layout.cell_bytes


def _records(image: bytes, group: Group) -> Iterator[Record]:
    at = group.address + _HEAD.size
    end = group.address + group.length - _CRC.size
    number = group.number
    while at < end and image[at] != _BLANK and group.title is None:
        kind, value = _NOTE.unpack_from(image, at)
        if kind < 0x40:
            at += _NOTE.size
            if kind == _NUMBER:
                number = value
            else:
                yield Record(_NOTES[kind] if kind < len(_NOTES) else f"unknown {kind}", value)
            continue
        state, n, packet_id = _ENTRY.unpack_from(image, at)
        at += _ENTRY.size
        yield Record(
            "message",
            number,
            packet_id,
            1 if state & 0xF0 == 0x40 else 2,
            state & 0xF0 == 0x70,
            bool(state & 8),
            image[at : at + n],
        )
        number += 1
        at += n


def _add_up(log: Log, group: Group) -> None:
    entries = log.entries
    title = group.title
    if title:
        log.level, log.is_clean = title.session & ~_CLEAN, bool(title.session & _CLEAN)
        log.last_id, log.sent = title.last_id, title.sent
        log.end = max(log.end, group.number)
        for number in [number for number in entries if number < title.first]:
            del entries[number]
    for record in group.records:
        if record.kind == "message":
            if record.number >= log.end:
                log.end = record.number + 1
                log.last_id = record.packet_id
            if record.maybe_sent:
                log.sent = record.number + 1
            entries[record.number] = record
        elif record.kind == "done":
            entries.pop(record.number, None)
        elif record.kind == "online":
            log.sent = record.number
        elif record.kind == "renew":
            _renew(log, record.number)
        elif record.kind == "pubrec" and record.number in entries:
            entries[record.number] = entries[record.number]._replace(has_pubrec=True)
        else:
            _hold(log, record)


def _renew(log: Log, session: int) -> None:
    log.held.clear()
    log.sent = 0
    log.level, log.is_clean = session & ~_CLEAN, bool(session & _CLEAN)
    for number, entry in log.entries.items():
        log.entries[number] = entry._replace(has_pubrec=False)


def _hold(log: Log, record: Record) -> None:
    if record.kind == "hold":
        log.held.add(record.number)
    elif record.kind == "release":
        log.held.discard(record.number)
    elif record.kind == "set":
        log.set_number = record.number
    elif record.kind == "bits":
        log.held.update(log.set_number * _IDS + k for k in range(_IDS) if record.number >> k & 1)
