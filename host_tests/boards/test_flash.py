"""Flashing: esptool run for real against a stand-in ROM, RP2 through its drive."""

import os
import stat

import pytest

from host_tests.boards.esp_rom import DEFL_DATA, MD5, EspRom
from host_tests.boards.test_image import SETTINGS
from tools.boards import flash as flashing
from tools.boards.errors import BoardError
from tools.boards.flash import find_drive, flash
from tools.boards.image import make_base
from tools.boards.profile import load_profile


@pytest.fixture
def make_image(make_firmware, tmp_path):
    def make(board):
        profile = load_profile(board)
        base = make_base(profile, make_firmware(profile), {"main.py": b"pass"})
        path = tmp_path / f"{board}{base.suffix}"
        path.write_bytes(base.image({"settings.json": SETTINGS}))
        return path

    return make


@pytest.mark.parametrize("board", ["ESP32_GENERIC", "ESP32_GENERIC_C3"])
def test_flash_command_writes_whole_image_and_verifies(run, make_image, board):
    image = make_image(board)
    with EspRom(load_profile(board).mcu) as rom:
        run("flash", "--board", board, "--port", rom.port, "--image", image)
        assert rom.flash == image.read_bytes()
        assert {DEFL_DATA, MD5} <= set(rom.commands)


def test_flash_of_upstream_firmware_goes_behind_the_boot_offset(make_firmware):
    profile = load_profile("ESP32_GENERIC")
    firmware = make_firmware(profile)
    with EspRom("esp32") as rom:
        flash(profile, firmware, rom.port)
        data = firmware.read_bytes()
        assert rom.flash[0x1000 : 0x1000 + len(data)] == data


@pytest.mark.parametrize(
    ("chip", "lost_after", "told"),
    [("esp32c3", None, "another chip: .*ESP32-C3"),
     ("esp32", 100_000, "the port was lost while writing; plug in and flash again")],
)  # fmt: skip
def test_flash_that_fails_at_the_chip_says_why(make_image, chip, lost_after, told):
    with EspRom(chip, lost_after) as rom:
        with pytest.raises(BoardError, match=told):
            flash(load_profile("ESP32_GENERIC"), make_image("ESP32_GENERIC"), rom.port)
        assert lost_after or set(rom.flash) == {0xFF}, "it wrote to another chip"


@pytest.mark.parametrize(
    ("board", "other"),
    [("ESP32_GENERIC_C3", "ESP32_GENERIC"), ("ESP32_GENERIC", "ESP32_GENERIC_C3"),
     ("ESP32_GENERIC_P4", "ESP32_GENERIC_S2")],
)  # fmt: skip
def test_flash_of_whole_image_for_another_esp32_names_its_chip(make_image, board, other):
    """Chips have their boot loader at different places."""
    profile, chip = load_profile(board), load_profile(other).mcu
    sized = profile.model_copy(update={"flash": load_profile(other).flash.model_copy(
        update={"firmware_offset": profile.flash.firmware_offset}
    )})  # fmt: skip
    with pytest.raises(BoardError, match=f"firmware for {chip}, {board} has {profile.mcu}"):
        flash(sized, make_image(other), "/dev/none")


def drive_of(folder, board_id):
    drive = folder / "RPI-RP2"
    drive.mkdir(parents=True)
    (drive / "INFO_UF2.TXT").write_text(f"UF2 Bootloader v3.0\nBoard-ID: {board_id}\n")
    return drive


@pytest.mark.parametrize(
    ("board", "image", "where", "told"),
    [
        ("ESP32_GENERIC_C6", "ESP32_GENERIC_C3", {"port": "/dev/none"},
         "for esp32c3, .* has esp32c6"),
        ("ESP32_GENERIC", "ESP32_GENERIC", {}, "PORT="),
        ("ESP32_GENERIC", None, {"port": "/dev/none"}, "make image"),
        ("RPI_PICO_W", "RPI_PICO_W", {"drive": "RPI-RP2"}, "another chip's boot loader"),
        ("RPI_PICO_W", "RPI_PICO_W", {"drive": ""}, "no boot loader drive"),
        ("RPI_PICO_W", "RPI_PICO_W", {}, "hold BOOTSEL"),
        ("desk", "RPI_PICO_W", {}, "make deploy"),
    ],
)  # fmt: skip
def test_flash_that_cannot_be_says_why_and_what_to_do(
    make_image, tmp_path, monkeypatch, board, image, where, told
):
    drive_of(tmp_path, "RP2350")
    monkeypatch.setattr(flashing, "find_drive", lambda name: None)
    monkeypatch.setattr(flashing.shutil, "which", lambda name: None)
    where = {"drive": tmp_path / where["drive"]} if "drive" in where else where
    path = make_image(image) if image else tmp_path / "none.bin"
    with pytest.raises(BoardError, match=told):
        flash(load_profile(board), path, **where)


def test_flash_rp2_copies_uf2_to_the_drive(run, make_image, tmp_path):
    image = make_image("RPI_PICO_W")
    drive = drive_of(tmp_path / "media", "RPI-RP2")
    run("flash", "--board", "RPI_PICO_W", "--drive", drive, "--image", image)
    assert (drive / image.name).read_bytes() == image.read_bytes()


def test_find_drive_looks_two_levels_deep(tmp_path):
    drive = drive_of(tmp_path / "person", "RPI-RP2")
    assert find_drive("RPI-RP2", [tmp_path]) == drive
    assert find_drive("RPI-RP2", [tmp_path / "other"]) is None
    # Of two, the first one got the image, with the other one's client id.
    second = drive_of(tmp_path / "other", "RPI-RP2").rename(drive.with_name("RPI-RP21"))
    with pytest.raises(BoardError, match=f"{drive}, {second}; name one with DRIVE="):
        find_drive("RPI-RP2", [tmp_path, tmp_path / "person"])


def test_flash_rp2_without_drive_uses_picotool_where_installed(make_image, tmp_path, monkeypatch):
    tool = tmp_path / "bin" / "picotool"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "picotool $*"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    monkeypatch.setattr(flashing, "find_drive", lambda name: None)
    lines = []
    image = make_image("RPI_PICO2_W")
    flash(load_profile("RPI_PICO2_W"), image, on_text=lines.append)
    assert lines == [f"picotool load -x {image}"]


def test_newest_image_is_the_last_one_made(tmp_path):
    profile = load_profile("RPI_PICO_W")
    with pytest.raises(BoardError, match="make image"):
        flashing.newest_image(profile, tmp_path)
    folder = tmp_path / profile.name
    folder.mkdir()
    for age, name in enumerate(["new.uf2", "old.uf2"]):
        (folder / name).touch()
        os.utime(folder / name, ns=(0, 10**9 * (10 - age)))
    assert flashing.newest_image(profile, tmp_path).name == "new.uf2"
