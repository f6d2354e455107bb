"""Lines of the documentation that need a board, typed as they stand there.

The boards are virtual: real MicroPython on a flash image; an ESP32's boot loader, an RP2's
drive, and what upstream publishes as firmware are stand-ins.
"""

import re

import pytest

from host_tests.boards.console import drained, read_until
from host_tests.boards.esp_rom import EspRom
from host_tests.boards.test_flash import drive_of
from host_tests.boards.test_image import flash_content
from host_tests.docs import blocks
from host_tests.docs.typed import Project
from tools.boards import profile as profiles
from tools.boards.config import device_files
from tools.boards.deploy import with_list
from tools.boards.profile import load_profile

FIRST_BOARD = "docs/start/board.md"
# So that a reading is there at once, and nobody asks a server of the world for the time.
AT_ONCE = 'interval_ms = 2000\nntp_server = ""\n'


@pytest.fixture
def project(tmp_path, mosquitto):
    own = {"192.168.1.10": mosquitto.host, "/media/you": tmp_path}
    own |= {f"{name}-….": f"{name}-1.27." for name in ("ESP32_GENERIC", "RPI_PICO_W")}
    made = Project(tmp_path / "project", own)
    device = blocks.texts(FIRST_BOARD, "toml")[0].replace("…", "12345678")
    made.write("device.toml", f"{device}port = {mosquitto.port}\n{AT_ONCE}")
    return made


def test_pico_w_of_the_start_page_from_an_image_to_a_change(
    project, make_firmware, start_board, mosquitto, tmp_path
):
    profile = load_profile("RPI_PICO_W")
    make_firmware(profile).rename(project.folder / "RPI_PICO_W-1.27.uf2")
    project.type(FIRST_BOARD, "make image BOARD=RPI")
    drive = drive_of(tmp_path, "RPI-RP2")
    project.type(FIRST_BOARD, "make flash BOARD=RPI", f"DRIVE={drive}")
    flashed = (drive / "hall-1.uf2").read_bytes()
    board = start_board(profile, flash=flash_content(flashed, profile))
    project.own["/dev/ttyACM0"] = board.port
    project.type(FIRST_BOARD, "make monitor", ctrl_c=True)
    project.own["192.168.1.10"] = f"{mosquitto.host}:{mosquitto.port}"

    def reset():
        board.cut_power()
        board.power_on()

    project.type(FIRST_BOARD, "make watch", ctrl_c=True, then=("°C", reset))
    with (project.folder / "firmware" / "ethernet.py").open("a") as changed:
        changed.write("CHANGED = 1\n")
    assert "\n2 of " in project.type(FIRST_BOARD, "make deploy")


def test_esp32_of_the_start_page_from_an_image_to_readings(project, make_firmware, start_board):
    profile = load_profile("ESP32_GENERIC")
    make_firmware(profile).rename(project.folder / "ESP32_GENERIC-1.27.bin")
    project.type(FIRST_BOARD, "make image BOARD=ESP32")
    with EspRom(profile.mcu) as rom:
        project.own["/dev/ttyUSB0"] = rom.port
        project.type(FIRST_BOARD, "make flash BOARD=ESP32")
        board = start_board(profile, flash=bytes(rom.flash))
    project.own |= {"/dev/ttyACM0": board.port, "RPI_PICO_W": profile.name}
    project.type(FIRST_BOARD, "make monitor", ctrl_c=True)


def test_images_for_a_batch_are_made_as_the_guide_says(project, make_firmware):
    page = "docs/guides/updates.md"
    make_firmware(load_profile("RPI_PICO_W")).rename(project.folder / "RPI_PICO_W-1.27.uf2")
    project.write("devices.csv", blocks.texts(page, "csv")[0].replace("…", "secret"))
    project.write("shared.toml", 'wifi_ssid = "workshop"\nwifi_password = "12345678"\n')
    assert "\n2 images" in project.type(page, "make provision")


def test_new_board_of_the_guide_is_asked_tested_and_deployed_to(project, start_board, monkeypatch):
    page, name = "docs/reference/board-profiles.md", "LILYGO_TTGO_LORA32"
    (project.folder / "boards" / name).mkdir()
    project.write(f"boards/{name}/board.toml", blocks.texts(page, "toml")[0])
    project.write(f"boards/{name}/board.py", blocks.texts(page, "python")[0])
    monkeypatch.setattr(profiles, "BOARDS", project.folder / "boards")
    board = start_board(load_profile(name))
    project.own |= {
        "mpremote exec": f"mpremote connect {board.port} exec",
        "/dev/ttyUSB0": board.port,
    }
    project.type(page, ".venv/bin/mpremote exec")
    assert "LILYGO TTGO LoRa32" in project.type(page, "python -m tools boards show")
    assert " passed" in project.type(
        page, "make test TESTS=host_tests/boards", "PYTEST_ARGS=-q -n 0"
    )
    assert f"board        {name}" in project.type(page, "make deploy")


def test_update_over_the_air_goes_as_the_guide_says(project, make_board, mosquitto, built):
    page = "docs/guides/updates.md"
    profile = load_profile("RPI_PICO_W")
    project.type(page, "python -m tools boards key")
    with (project.folder / "device.toml").open("a") as config:
        config.write('commands = "signed"\n')
        config.write(f'update_key = "{(project.folder / "fleet.key").read_text().strip()}"\n')
    files = built(profile.name) | device_files(project.folder / "device.toml", profile)
    board = make_board(profile, with_list(files))
    read_until(board.port, "connected", act=board.power_on)
    with (project.folder / "firmware" / "ethernet.py").open("a") as changed:
        changed.write("CHANGED = 1\n")
    (bundle,) = re.findall(r"release-\d+\.bundle", project.type(page, "make release"))
    project.write("devices.csv", "id\nhall-1\n")
    project.own |= {
        "192.168.1.10": f"{mosquitto.host}:{mosquitto.port}",
        "release-….bundle": bundle,
    }
    with drained(board.port):
        project.type(page, "make rollout")
        project.type("docs/guides/access.md", "python -m tools boards command")
