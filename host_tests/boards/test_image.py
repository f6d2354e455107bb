"""Images opened again with other tools, and by real MicroPython; also ROMFS, and new boards."""

import hashlib
import shutil
import struct
import subprocess
import sys

import pytest

from host_tests.boards import firmware_images
from host_tests.docs import blocks
from tools.boards import compile as compiling
from tools.boards import profile as profiles
from tools.boards.compile import build_tree, make_romfs, tree_files
from tools.boards.deploy import check_itself
from tools.boards.errors import BoardError
from tools.boards.filesystem import Filesystem
from tools.boards.image import make_base
from tools.boards.partitions import read_table
from tools.boards.places import BOARDS
from tools.boards.profile import Memory, board_names, load_profile
from tools.boards.uf2 import read_uf2
from tools.micropython import choose

FLASHED = [name for name in board_names() if load_profile(name).flash.method != "none"]
# One of each layout: what differs beside it are constants.
LAYOUTS = list(
    {
        (one.mcu, one.flash.size, one.filesystem.offset): one.name
        for one in map(load_profile, FLASHED)
    }.values()
)
SMALL = ["ESP32_GENERIC_C2"]
ESP = [name for name in LAYOUTS if load_profile(name).port == "esp32"]
RP2 = [name for name in LAYOUTS if load_profile(name).port == "rp2"]
SETTINGS = b'{"client_id": "hall-1", "server": "10.0.0.1", "wifi_ssid": "net", "store": "journal"}'


def flash_content(image, profile, stale=0xFF):
    """What the flash holds after `image` was written over `stale` bytes; own UF2 reader."""
    if profile.flash.method == "esptool":
        assert len(image) == profile.flash.size
        return image
    flash = bytearray([stale]) * profile.flash.size
    for start in range(0, len(image), 512):
        first, _, _, address, size, _, _, family = struct.unpack_from("<8I", image, start)
        assert first == 0x0A324655
        if family != firmware_images.ABSOLUTE:
            offset = address - firmware_images.XIP
            flash[offset : offset + size] = image[start + 32 : start + 32 + size]
    return bytes(flash)


def files_on(flash, layout):
    """{path: bytes} of the filesystem of this `layout` in a flash."""
    return Filesystem(layout, flash[layout.offset :][: layout.size]).files()


@pytest.fixture
def boot(make_firmware, start_board):
    """boot(profile, files) -> the report of the board's own check, from an image with them."""

    def from_image(profile, files):
        image = make_base(profile, make_firmware(profile), files).image(
            {"settings.json": SETTINGS}
        )
        board = start_board(profile, flash=flash_content(image, profile), mode="raw")
        return check_itself(board.port)

    return from_image


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name not in SMALL])
def test_image_boots_on_virtual_board_and_passes_its_own_check(name, boot, built):
    """Real MicroPython mounts the image's littlefs with VfsLfs2 and imports umqtt31 from it."""
    report = boot(load_profile(name), built(name))
    assert report["client_id"] == "hall-1"
    assert report["board"] == name
    assert report["journal"] == {"inflight": 0, "queued": 0}


def test_board_and_chip_of_the_page_build_an_image_that_boots(boot, tmp_path, monkeypatch):
    """The board with the chip, which is one table more; with its own chip: test_typed.py."""
    page, name = "docs/reference/board-profiles.md", "LILYGO_TTGO_LORA32"
    facts, chip = blocks.texts(page, "toml")
    (pins,) = blocks.texts(page, "python")
    folder = tmp_path / "boards"
    shutil.copytree(BOARDS, folder)
    for module in (profiles, compiling):
        monkeypatch.setattr(module, "BOARDS", folder)
    monkeypatch.setattr(profiles, "shared_facts", profiles.shared_facts.__wrapped__)  # no cache
    with (folder / "chips.toml").open("a") as file:
        file.write(chip)
    (folder / name).mkdir()
    (folder / name / "board.toml").write_text(facts.replace('"esp32"', '"esp32c61"'))
    (folder / name / "board.py").write_text(pins)
    monkeypatch.setitem(firmware_images.CHIP_IDS, "esp32c61", 20)
    profile = load_profile(name)
    assert profile.chip == "ESP32C61"
    report = boot(profile, tree_files(build_tree(profile, tmp_path / "fs")))
    assert report["board"] == name


# Mounts the image and makes a client of what is in it.
ROMFS = """\
import sys, vfs
with open(sys.argv[1], "rb") as file:
    image = memoryview(file.read())
vfs.mount(vfs.VfsRom(image), "/rom")
sys.path[:] = ["/rom", "/rom/lib"]
import umqtt31
from umqtt31 import Journal, MQTTClient
import settings, reading
print(umqtt31.__file__, bool(MQTTClient("id", "server")))
"""


@pytest.mark.parametrize("name", ["RPI_PICO2_W", "ESP32_GENERIC"])
def test_romfs_is_mounted_by_micropython_and_runs_in_place(micropython, tmp_path, name):
    image = tmp_path / "image.romfs"
    image.write_bytes(make_romfs(build_tree(load_profile(name), tmp_path / "fs")))
    done = micropython.run(ROMFS, args=[image], micropypath=[])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["/rom/lib/umqtt31/__init__.mpy", "True"]


@pytest.mark.parametrize("name", SMALL)
def test_image_for_a_board_with_too_little_memory_is_told_at_once_and_by_the_check(
    name, run, make_firmware, start_board, tmp_path, device_toml
):
    profile = load_profile(name)
    out = tmp_path / "out.bin"
    words = ("--firmware", make_firmware(profile), "--config", device_toml, "--out", out)
    output = run("image", "--board", name, *words)
    assert f"{name} has about 50,000 bytes of heap" in output
    # The virtual board's heap is about the chip's: less of it, so that the check fails for sure.
    less = profile.model_copy(update={"memory": Memory(heap=40_000)})
    board = start_board(less, flash=flash_content(out.read_bytes(), profile), mode="raw")
    with pytest.raises(BoardError, match="own check failed: MemoryError"):
        check_itself(board.port)


@pytest.mark.parametrize("name", LAYOUTS)
def test_image_holds_files_and_erased_journal(name, make_firmware):
    profile = load_profile(name)
    files = {"lib/umqtt31/a.mpy": b"M\x06" * 2000, "main.py": b"pass\n"}
    base = make_base(profile, make_firmware(profile), files)
    # Stale zeros show which bytes the image itself brings.
    flash = flash_content(base.image({"settings.json": SETTINGS}), profile, stale=0)
    assert files_on(flash, profile.filesystem) == files | {"settings.json": SETTINGS}
    journal = profile.journal
    start = journal.offset + (profile.filesystem.offset if journal.place == "reserved" else 0)
    assert set(flash[start : start + journal.size]) == {0xFF}


@pytest.mark.parametrize("name", ESP)
def test_esp_image_is_valid_for_esptool_with_checksum_and_flash_size(
    name, make_firmware, tmp_path
):
    profile = load_profile(name)
    image = make_base(profile, make_firmware(profile), {}).image({})
    for offset in (profile.flash.firmware_offset, 0x10000):
        path = tmp_path / "part.bin"
        path.write_bytes(image[offset:])
        command = [sys.executable, "-m", "esptool", "--chip", profile.mcu, "image-info", str(path)]
        output = subprocess.run(command, capture_output=True, text=True).stdout
        assert output.count("(valid)") == 2, output
    boot = image[profile.flash.firmware_offset :]
    assert boot[3] >> 4 == {4: 2, 8: 3, 16: 4}[profile.flash.size >> 20]


@pytest.mark.parametrize("table", [firmware_images.TODAY, firmware_images.WITH_VFS])
def test_esp_partition_table_gets_journal_behind_vfs(make_firmware, table):
    profile = load_profile("ESP32_GENERIC")
    firmware = make_firmware(profile, table=table)
    image = make_base(profile, firmware, {}).image({})
    found = {p.label: (p.offset, p.end) for p in read_table(image[0x8000:], "image")}
    end_of_app = table[2][3] + table[2][4]
    assert found["vfs"] == (end_of_app, profile.journal.offset)
    assert found["journal"] == (profile.journal.offset, profile.flash.size)
    assert found["nvs"] == (0x9000, 0xF000)
    entries = image[0x8000 : 0x8000 + 5 * 32]
    assert image[0x8000 + 5 * 32 + 16 :][:16] == hashlib.md5(entries).digest()


@pytest.mark.parametrize("name", RP2)
def test_uf2_blocks_are_numbered_whole_sectors_and_keep_the_firmware(name, make_firmware):
    profile = load_profile(name)
    firmware = make_firmware(profile)
    image = make_base(profile, firmware, {"main.py": b"pass"}).image({})
    uf2 = read_uf2(image, "image")
    for offset, page in read_uf2(firmware.read_bytes(), "firmware").pages.items():
        assert uf2.pages[offset] == page
    blocks = [struct.unpack_from("<8I", image, at) for at in range(0, len(image), 512)]
    own = [block for block in blocks if block[7] == uf2.family]
    assert [block[5] for block in own] == list(range(len(own)))
    assert {block[6] for block in own} == {len(own)}
    area = [o for o in uf2.pages if o >= profile.filesystem.offset]
    assert all(o - o % 4096 + at in uf2.pages for o in area for at in range(0, 4096, 256))
    foreign = [block for block in blocks if block[7] != uf2.family]
    assert len(foreign) == (1 if profile.mcu == "rp2350" else 0)


def test_littlefs_never_touches_the_reserved_journal(tmp_path):
    """Files come and go until every free block was written; the journal stays as it is."""
    profile = load_profile("RPI_PICO_W")
    filesystem = Filesystem(profile.filesystem)
    journal = profile.journal
    filesystem.reserve_journal(journal.offset, journal.size)
    kept = bytes(range(256)) * (journal.size // 256)
    filesystem.data[journal.offset : journal.offset + journal.size] = kept
    path = tmp_path / "area.img"
    path.write_bytes(filesystem.data)
    done = choose(bits=32).run(FILL, args=[path], micropypath=["host_tests/virtual"])
    assert done.returncode == 0, done.stderr
    after = path.read_bytes()
    assert after[journal.offset : journal.offset + journal.size] == kept
    changed = sum(
        after[at : at + 4096] != filesystem.data[at : at + 4096]
        for at in range(0, len(after), 4096)
    )
    assert changed > 0.95 * (len(after) - journal.size) / 4096


FILL = """\
import os, sys, vfs
from chips import FlashArea
size = os.stat(sys.argv[1])[6]
vfs.mount(vfs.VfsLfs2(FlashArea(open(sys.argv[1], "r+b"), 0, size), progsize=256), "/flash")
os.mkdir("/flash/d")
data = b"free" * 1024
for turn in range(2):
    count = 0
    try:
        while True:
            with open("/flash/d/%d" % count, "w") as file:
                for i in range(8):
                    file.write(data)
            count += 1
    except OSError as error:
        assert error.errno == 28, error
    assert count > 10
    for name in os.listdir("/flash/d"):
        os.remove("/flash/d/" + name)
assert len(os.listdir("/flash/journal")) > 2
"""


@pytest.mark.parametrize(
    ("board", "changes", "expected"),
    [
        ("ESP32_GENERIC", {"mcu": "esp32c3"}, "not an ESP32 firmware|firmware for"),
        ("ESP32_GENERIC_C3", {"mcu": "esp32c6"}, "for esp32c6, ESP32_GENERIC_C3 has esp32c3"),
        ("RPI_PICO_W", {"family": firmware_images.RP2350_ARM},
         r"for RP2350 \(Arm\), .* needs RP2040"),
        ("RPI_PICO2_W", {"family": firmware_images.RP2350_RISCV}, r"for RP2350 \(RISC-V\)"),
        ("RPI_PICO_W", {"storage": (0xA0000, 0x160000), "machine": b""}, "another board's"),
        ("W5500_EVB_PICO", {"machine": b"W5100S-EVB-Pico with RP2040"},
         "firmware for W5100S-EVB-Pico; W5500_EVB_PICO takes the one for W5500-EVB-Pico: http"),
        ("ESP32_GENERIC",
         {"machine": b"MicroPython v1.27.0 on 2026-01-01; M5Stack ATOM with ESP32-PICO-D4"},
         "firmware for M5Stack ATOM; ESP32_GENERIC takes"),
        ("RPI_PICO_W", {"pages": 0x12C100 // 256 + 1}, "behind the filesystem's start"),
        ("ESP32_GENERIC",
         {"table": [*firmware_images.TODAY, (b"big", 1, 6, 0x220000, 0x1D0000)]},
         "partitions reach to 0x3f0000, the journal needs"),
        ("ESP32_GENERIC", {"table": []}, "no partition table"),
        ("ESP32_GENERIC_S3", {"damaged_at": 0x8008}, "checksum is wrong; download it again"),
        ("RPI_PICO_W", {"damaged_at": 15}, "block 0 does not go to flash"),  # of its address
    ],
)  # fmt: skip
def test_make_base_with_wrong_firmware_says_why(make_firmware, board, changes, expected):
    profile = load_profile(board)
    with pytest.raises(BoardError, match=expected) as caught:
        make_base(profile, make_firmware(profile, **changes), {})
    assert "\n" not in caught.value.message


def test_rp2_filesystem_lies_where_this_boards_firmware_says(make_firmware, make_board):
    """A build of one's own, or upstream's next: only that another board's is refused."""
    profile = load_profile("RPI_PICO_W")
    place = {"offset": 0x140000, "size": 0xC0000}
    firmware = make_firmware(profile, storage=(place["offset"], place["size"]))
    image = make_base(profile, firmware, {"main.py": b"pass"}).image({})
    layout = profile.filesystem.model_copy(update=place)
    assert files_on(flash_content(image, profile), layout) == {"main.py": b"pass"}


@pytest.mark.parametrize("board", ["ESP32_GENERIC", "RPI_PICO_W"])
@pytest.mark.parametrize("data", [b"", b"no firmware at all" * 100])
def test_make_base_with_no_firmware_says_so(tmp_path, board, data):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(BoardError, match="not a"):
        make_base(load_profile(board), tmp_path / "file", {})


def test_make_base_with_a_download_that_broke_off_says_what_to_do(make_firmware):
    profile = load_profile("RPI_PICO_W")
    firmware = make_firmware(profile)
    data = bytearray(firmware.read_bytes())
    for broken in (data[:-100], data[:600] + b"<html>" + data[606:-2] + b"xx"):
        firmware.write_bytes(broken)
        with pytest.raises(
            BoardError, match=r"not a whole UF2 file.*; download \(or make\) it again"
        ):
            make_base(profile, firmware, {})


def test_image_with_files_too_large_says_filesystem_full(make_firmware):
    profile = load_profile("RPI_PICO_W")
    with pytest.raises(BoardError, match="filesystem full at /big"):
        make_base(profile, make_firmware(profile), {"big": b"x" * 800_000})


def test_image_command_writes_private_file_and_prints_no_secret(
    run, make_firmware, device_toml, tmp_path
):
    firmware = make_firmware(load_profile("RPI_PICO_W"))
    out = tmp_path / "out" / "image.uf2"
    words = ("--firmware", firmware, "--config", device_toml, "--out", out)
    output = run("image", "--board", "RPI_PICO_W", *words)
    assert out.stat().st_mode & 0o077 == 0
    assert b"secret-word" in out.read_bytes()
    assert "secret" not in output


def test_image_command_without_its_files_says_what_is_wanted(run, tmp_path, device_toml):
    words = ("image", "--board", "ESP32_GENERIC", "--firmware", tmp_path / "none.bin")
    assert "CONFIG=device.toml" in run(*words, status=2)
    output = run(*words, "--config", device_toml, status=1)
    assert "https://micropython.org/download/ESP32_GENERIC/" in output


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('client_id = ""', "client_id"),
        ('client_id = "x23456789012345678901234"', "1 to 23"),
        ('colour = "red"', "colour"),
        ('servr = "x"', "did you mean server?"),
        ("port = 99999", "port"),
        ('tls = "ca.pem"', "ca.pem"),
        ("client_id = ", "not valid TOML"),
        ("client_id = 2026-01-01", "a date or a time has to stand in quotes"),
        ("streams = [10:00:00]", "a date or a time has to stand in quotes"),
    ],
)
def test_image_command_with_wrong_config_names_the_key(
    run, make_firmware, device_toml, change, expected
):
    key = change.split(" ")[0]
    lines = [x for x in device_toml.read_text().splitlines() if not x.startswith(key + " ")]
    device_toml.write_text("\n".join([*lines, change, ""]))
    firmware = make_firmware(load_profile("RPI_PICO_W"))
    output = run(
        "image", "--board", "RPI_PICO_W", "--firmware", firmware, "--config", device_toml, status=1
    )
    assert expected in output
    assert "secret" not in output
    assert output.count("\n") == 1
