"""Write an image to a board: esptool for ESP32, a drive or picotool for RP2.

Checked before anything is written: the image is for this chip, the port can be
used.  esptool verifies each region's MD5 after writing.
"""

import shutil
import sys
from pathlib import Path

from .errors import BoardError
from .esp_image import check_chip, check_whole_image
from .places import BUILD, shown
from .port import check_port
from .remote import run_program
from .uf2 import family_name, read_uf2

_INFO = "INFO_UF2.TXT"
_LONGEST_S = 3600


def flash(profile, image, port=None, drive=None, on_text=lambda text: None):
    """Write `image` (a path) to the board; `on_text` hears what the tools print.

    ESP32 needs `port`.  RP2 takes `drive` (a mount point), else looks for the boot
    loader's drive, else uses picotool if it is installed.  Raises BoardError.
    """
    try:
        data = image.read_bytes()
    except OSError as error:
        raise BoardError(f"{shown(image)}: {error.strerror}; make it with make image") from None
    if profile.flash.method == "esptool":
        _flash_esp(profile, image, data, port, on_text)
    elif profile.flash.method == "uf2":
        _flash_rp2(profile, image, data, drive, on_text)
    else:
        raise BoardError(f"{profile.name} has no flash to write; use make deploy")


def newest_image(profile, folder=BUILD):
    """The image that `make image` made last for this board; BoardError if there is none."""
    found = [path for end in ("bin", "uf2") for path in (folder / profile.name).glob(f"*.{end}")]
    if not found:
        raise BoardError(f"no image for {profile.name} yet; make one with make image")
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def _flash_esp(profile, image, data, port, on_text):
    if port is None:
        raise BoardError("an ESP32 is flashed through its serial port: name it with PORT=")
    # Our images begin at offset 0, erased up to the boot loader; upstream's begin at the loader.
    offset = profile.flash.firmware_offset
    is_whole = len(data) == profile.flash.size
    (check_whole_image if is_whole else check_chip)(data, profile, shown(image))
    if len(data) + (0 if is_whole else offset) > profile.flash.size:
        raise BoardError(
            f"{shown(image)}: {len(data):,} bytes, the flash has {profile.flash.size:,}"
        )
    check_port(port)
    words = ["--chip", profile.mcu, "--port", port, "--baud", "460800", "write-flash"]
    words += ["--flash-size", f"{profile.flash.size >> 20}MB"] if is_whole else []
    words += [hex(0 if is_whole else offset), str(image)]
    _run_tool([sys.executable, "-m", "esptool", *words], on_text)


def _flash_rp2(profile, image, data, drive, on_text):
    uf2 = read_uf2(data, shown(image))
    if uf2.family != profile.uf2_family:
        raise BoardError(
            f"{shown(image)}: for {family_name(uf2.family)}, the board has {profile.mcu}"
        )
    target = Path(drive) if drive else find_drive(profile.boot_id)
    if target:
        _copy_to_drive(profile, data, image.name, target)
        on_text(f"copied to {target}; the board restarts by itself")
    elif shutil.which("picotool"):
        _run_tool(["picotool", "load", "-x", str(image)], on_text)
    else:
        raise BoardError(
            "no boot loader drive found: hold BOOTSEL while plugging the board in, "
            "or name the drive with DRIVE="
        )


def find_drive(boot_id, roots=("/media", "/run/media", "/Volumes", "/mnt")):
    """The mount point of a board in its boot loader, or None; BoardError if there are several."""
    # The name of a second drive ends with a number.
    paths = (path for root in roots for depth in ("*", "*/*") for path in Path(root).glob(depth))
    named = (path for path in paths if path.name.startswith(boot_id))
    found = sorted({path.resolve() for path in named if (path / _INFO).is_file()})
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise BoardError(f"several boot loader drives: {names}; name one with DRIVE=")
    return found[0] if found else None


def _copy_to_drive(profile, data, name, drive):
    try:
        info = (drive / _INFO).read_text(errors="replace")
    except OSError:
        raise BoardError(f"{drive}: no boot loader drive: {_INFO} is missing") from None
    if profile.boot_id not in info:
        raise BoardError(f"{drive}: another chip's boot loader; {profile.name} has {profile.mcu}")
    try:
        (drive / name).write_bytes(data)
    except OSError as error:
        raise BoardError(f"{drive}: {error.strerror}; plug the board in again") from None


def _run_tool(command, on_text):
    output, status = run_program(command, _LONGEST_S, on_text)
    if status:
        raise BoardError(_reason([line.rstrip() for line in output.splitlines()]))


def _reason(lines):
    # esptool's fatal lines are good; the rest of its output explains less.
    text = "\n".join(lines)
    if "This chip is" in text or "Wrong --chip" in text:
        wrong = next(line for line in lines if "This chip is" in line or "Wrong --chip" in line)
        return f"another chip: {wrong.strip()}; check BOARD="
    if "No serial data received" in text or "Failed to connect" in text:
        return "no answer: hold BOOT while pressing reset, or try another cable"
    fatal = [line.strip() for line in lines if "error" in line.lower()]
    if any(word in text for word in ("serial exception", "pySerial", "Input/output error")):
        return "the port was lost while writing; plug in and flash again, nothing is broken"
    return fatal[-1] if fatal else (lines or ["the flashing tool failed"])[-1]
