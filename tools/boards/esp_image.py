"""ESP32 images: is the firmware for this chip, and the merge into one flashable file.

The merge is esptool's own, which also writes the flash size into the boot
loader's header.  Header layout: ESP-IDF, "App Image Format".
"""

import struct

import esptool

from .errors import BoardError
from .partitions import APP, TABLE_BYTES, TABLE_OFFSET, read_table, with_journal, write_table
from .profile import shared_facts

_MAGIC = 0xE9
_CHIP_AT = 12


def check_chip(data, profile, where):
    """Raise BoardError unless the image header in `data` is for the chip of `profile`."""
    if len(data) < 24 or data[0] != _MAGIC:
        raise BoardError(f"{where}: not an ESP32 firmware; download the board's .bin")
    number = struct.unpack_from("<H", data, _CHIP_AT)[0]
    if number != profile.image_id:
        raise BoardError(
            f"{where}: firmware for {_chip_name(number)}, {profile.name} has {profile.mcu}"
        )


def check_whole_image(data, profile, where):
    """The same for a whole flash content, which begins where its own chip has the loader."""
    starts = {chip["flash"]["firmware_offset"] for chip in _chips().values()}
    for start in sorted(starts, key=lambda one: one != profile.flash.firmware_offset):
        if data[start : start + 1] == bytes([_MAGIC]):
            check_chip(data[start:], profile, where)
            return
    raise BoardError(f"{where}: no image of an ESP32; make one with make image")


def _chips():
    return {name: one for name, one in shared_facts()["chip"].items() if "image_id" in one}


def _chip_name(number):
    names = [name for name, chip in _chips().items() if chip["image_id"] == number]
    return names[0] if names else f"chip {number}"


def plan_partitions(firmware, profile, where):
    """The image's partitions, journal included, for the complete upstream `firmware`."""
    base = profile.flash.firmware_offset
    table = firmware[TABLE_OFFSET - base : TABLE_OFFSET - base + TABLE_BYTES]
    partitions = read_table(table, where)
    app = next(p for p in partitions if p.kind == APP)
    check_chip(firmware[app.offset - base :], profile, f"{where}: application")
    if base + len(firmware) > app.end:
        raise BoardError(f"{where}: {len(firmware):,} bytes do not fit before {app.end:#x}")
    return with_journal(partitions, profile.flash.size, profile.journal, where)


def merge(firmware, partitions, filesystem, profile):
    """One image from flash offset 0 to the flash's end, as `esptool merge-bin` makes it.

    `filesystem` is the littlefs for "vfs"; everything not named is erased (0xFF).
    """
    base = profile.flash.firmware_offset
    vfs = next(p for p in partitions if p.label == "vfs")
    end = vfs.offset - base
    parts = [
        (base, firmware[: TABLE_OFFSET - base]),
        (TABLE_OFFSET, write_table(partitions)),
        (TABLE_OFFSET + 0x1000, firmware[TABLE_OFFSET + 0x1000 - base : end]),
        (vfs.offset, bytes(filesystem)),
    ]
    megabytes = f"{profile.flash.size >> 20}MB"
    esptool.log.set_verbosity("silent")
    try:
        return esptool.merge_bin(parts, profile.mcu, flash_size=megabytes, pad_to_size=megabytes)
    except esptool.FatalError as error:
        raise BoardError(f"esptool: {error}") from None
