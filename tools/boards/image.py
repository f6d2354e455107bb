"""One flashable file: MicroPython, a littlefs with our files, an erased journal.

`Base` holds what all devices of a batch share, checked once; `Base.image()` adds
one device's files.  ESP32: a merged .bin for flash offset 0; RP2: one UF2.
"""

import re
from dataclasses import dataclass, field

from .errors import BoardError
from .esp_image import check_chip, merge, plan_partitions
from .filesystem import Filesystem, make_filesystem
from .places import shown
from .profile import Profile, chip_of
from .uf2 import PAYLOAD_BYTES, Uf2, family_name, find_filesystem, read_uf2, write_uf2

_SECTOR = 4096
# What MicroPython says of its board: "BOARD with CHIP", a C string.
_MACHINE = re.compile(rb"([\x20-\x7e]{1,60}) with ([A-Za-z0-9-]{3,20})\0")


@dataclass
class EspBase:
    """An ESP32 image with the files that all devices share."""

    profile: Profile
    merged: bytes
    offset: int
    shared: Filesystem = field(repr=False)

    suffix = ".bin"

    def image(self, files):
        """The whole flash content with one device's `files` {path: bytes} added."""
        data = _with_files(self.shared, files).data
        return b"".join((self.merged[: self.offset], data, self.merged[self.offset + len(data) :]))


@dataclass
class Rp2Base:
    """A UF2 image with the files that all devices share."""

    profile: Profile
    uf2: Uf2
    shared: Filesystem = field(repr=False)

    suffix = ".uf2"

    def image(self, files):
        """One UF2: firmware, the filesystem's blocks in use, the erased journal."""
        filesystem = _with_files(self.shared, files)
        pages = dict(self.uf2.pages)
        journal = self.profile.journal
        kept = range(journal.offset // _SECTOR, (journal.offset + journal.size) // _SECTOR)
        # littlefs never reads unused blocks, so these keep what is on the flash.
        for block in sorted(filesystem.used_blocks() | set(kept)):
            for at in range(block * _SECTOR, (block + 1) * _SECTOR, PAYLOAD_BYTES):
                page = bytes(filesystem.data[at : at + PAYLOAD_BYTES])
                pages[self.profile.filesystem.offset + at] = page
        return write_uf2(Uf2(self.uf2.family, pages, self.uf2.prelude))


def make_base(profile, firmware_path, files):
    """Check the firmware for the board and put the shared `files` into its filesystem.

    Raises BoardError: another chip, damaged, or too large.
    """
    where = shown(firmware_path)
    try:
        firmware = firmware_path.read_bytes()
    except OSError as error:
        raise BoardError(
            f"{where}: {error.strerror}; download it from {profile.firmware.download}"
        ) from None
    if profile.flash.method == "esptool":
        return _esp_base(profile, firmware, files, where)
    if profile.flash.method == "uf2":
        return _rp2_base(profile, firmware, files, where)
    raise BoardError(f"{profile.name} needs no image; use `make deploy` or run the firmware as is")


def check_machine(firmware, profile, where):
    """Raise BoardError if `firmware` names itself as another board -> does it as this one?"""
    found = {
        one.rpartition(b"; ")[2].decode() + " with " + chip.decode()
        for one, chip in _MACHINE.findall(firmware)
    }
    names = {one.rpartition(" with ")[0] for one in found if chip_of(one)}
    if names and profile.firmware.machine not in names:
        raise BoardError(
            f"{where}: firmware for {' or '.join(sorted(names))}; {profile.name} takes the one "
            f"for {profile.firmware.machine}: {profile.firmware.download}"
        )
    return bool(names)


def _esp_base(profile, firmware, files, where):
    check_chip(firmware, profile, where)
    check_machine(firmware, profile, where)
    partitions = plan_partitions(firmware, profile, where)
    vfs = next(p for p in partitions if p.label == "vfs")
    layout = profile.filesystem.model_copy(update={"offset": vfs.offset, "size": vfs.size})
    shared = make_filesystem(profile.model_copy(update={"filesystem": layout}), files)
    merged = merge(firmware, partitions, shared.data, profile)
    return EspBase(profile, merged, vfs.offset, shared)


def _rp2_base(profile, firmware, files, where):
    uf2 = read_uf2(firmware, where)
    if uf2.family != profile.uf2_family:
        raise BoardError(
            f"{where}: firmware for {family_name(uf2.family)}, "
            f"the board needs {family_name(profile.uf2_family)}"
        )
    memory = bytes(uf2.memory())
    is_this_board = check_machine(memory, profile, where)
    layout = profile.filesystem
    offset, size = find_filesystem(memory) or (layout.offset, layout.size)
    if (offset, size) != (layout.offset, layout.size):
        if not is_this_board or offset + size > profile.flash.size or size % _SECTOR:
            raise BoardError(
                f"{where}: its filesystem lies at {offset:#x}, {size:,} bytes; {profile.name} "
                f"has it at {layout.offset:#x}, {layout.size:,} bytes: another board's?"
            )
        layout = layout.model_copy(update={"offset": offset, "size": size})
    if uf2.end > layout.offset:
        raise BoardError(
            f"{where}: firmware ends at {uf2.end:#x}, behind the filesystem's start "
            f"{layout.offset:#x}; use the standard firmware of {profile.name}"
        )
    profile = profile.model_copy(update={"filesystem": layout})
    return Rp2Base(profile, uf2, make_filesystem(profile, files))


def _with_files(shared, files):
    filesystem = Filesystem(shared.layout, shared.data)
    for path, data in files.items():
        filesystem.write("/" + path, data)
    return filesystem
