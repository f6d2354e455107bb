"""Board profiles: all of the repository are good, and each mistake is one clear line."""

import ast
import os
import re
import subprocess
import sys

import pytest

from host_tests.journal.work import erases_per_message
from tools.boards.compile import board_sources, build_tree
from tools.boards.errors import BoardError
from tools.boards.pins import check_pins
from tools.boards.places import BOARDS, read_toml
from tools.boards.profile import board_names, chip_of, load_profile, read_profile
from tools.project import ROOT

CHIPS = {
    *("esp32", "esp32c2", "esp32c3", "esp32c5", "esp32c6", "esp32h2", "esp32p4", "esp32s2"),
    *("esp32s3", "rp2040", "rp2350", "host"),
}


def test_profiles_cover_every_chip_of_both_ports_and_more_than_a_dozen_boards():
    profiles = [load_profile(name) for name in board_names()]
    assert {profile.mcu for profile in profiles} == CHIPS
    own = [one for one in profiles if "GENERIC" not in one.name and one.mcu != "host"]
    assert len(own) >= 12


@pytest.mark.parametrize("name", ["W5500_EVB_PICO", "OLIMEX_ESP32_POE", "RPI_PICO_W", "desk"])
def test_firmware_is_told_its_boards_name_and_network(built, name):
    data = built(name)["board.mpy"]
    assert name.encode() in data
    assert load_profile(name).network.encode() in data


@pytest.mark.parametrize("name", board_names())
def test_board_of_the_repository_is_valid_complete_and_all_constants(name):
    profile = load_profile(name)
    check_pins(profile)
    _, imported, *rest = ast.parse((profile.folder / "board.py").read_text()).body
    assert ast.unparse(imported) == "from port import *"
    assert all(isinstance(node, ast.Assign) for node in rest)
    has_own_cable = profile.network == "ethernet" and profile.port == "esp32"
    assert ("ETHERNET" in [ast.unparse(node.targets[0]) for node in rest]) == has_own_cable
    sources = {path: source.read_text() for source, path in board_sources(profile)}
    assert {"lib/umqtt31/__init__.py", "main.py"} <= set(sources)
    text = "".join(sources.get(name, "") for name in ("board.py", "port.py", "onchip.py"))
    needed = {"LED_PIN", "WATCHDOG_MS", *(["LED_ON"] if profile.port != "unix" else [])}
    assert needed <= set(re.findall(r"^([A-Z_]+) = ", text, re.MULTILINE))
    journal, filesystem = profile.journal, profile.filesystem
    if journal.place == "partition":
        assert filesystem.offset + filesystem.size <= journal.offset
    # Those of a message of 64 bytes.
    assert journal.erases_per_message == pytest.approx(erases_per_message(97))


def test_journal_life_follows_from_its_figures():
    """32 blocks of 100,000 erases, one for 30 messages: a message in 10 s for 30 years."""
    journal = load_profile("RPI_PICO_W").journal
    assert journal.life_years(10) == pytest.approx(30.4, rel=0.01)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("flash.", 'flash.method = "usb"\nflash.', "flash.method: found 'usb', allowed: 'esp"),
        ("memory.heap = 98304", "", "memory: found nothing, allowed: a table with heap"),
        ("memory.", "journal.size = 5\nmemory.", "journal.size: found 5, allowed: a multiple"),
        ('title = "', 'caption = "', "caption: unknown key, allowed: name, title, mcu"),
        ("heap = 98304", 'heap = "64k"', "memory.heap: found '64k', allowed: a valid integer"),
        ('mcu = "host"', 'mcu = "host"\narch = "z80"', "arch: found 'z80', allowed: 'armv6m', "),
        ('mcu = "host"', 'mcu = "z80"', "mcu: found 'z80', allowed: host, esp32, "),
        ('mcu = "host"', "", "mcu: found nothing, allowed: host, esp32, "),
        ('network = "host"', "", "network: found nothing, allowed: 'wifi' or "),
        ("{ offset", "{ label = 1, offset", "filesystem.label: unknown key, allowed: of"),
        ("memory.", 'journal = { place = "reserved", offset = 0xff000 }\nmemory.',
         "journal ends at"),
        ("flash.", "flash..", "not valid TOML"),
    ],
)  # fmt: skip
def test_read_profile_with_mistake_names_file_key_found_and_allowed(tmp_path, old, new, expected):
    text = (BOARDS / "desk" / "board.toml").read_text()
    assert old in text
    path = tmp_path / "board.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(BoardError) as caught:
        read_profile(path)
    assert str(path) in caught.value.message
    assert expected in caught.value.message
    assert "\n" not in caught.value.message


def test_read_toml_takes_the_byte_order_mark_of_windows_and_names_other_encodings(tmp_path):
    path = tmp_path / "device.toml"
    path.write_text('wifi_ssid = "Büro"\n', encoding="utf-8-sig")
    assert read_toml(path) == {"wifi_ssid": "Büro"}
    for other in ("cp1252", "utf-16"):
        path.write_text('wifi_ssid = "Büro"\n', encoding=other)
        with pytest.raises(BoardError, match=r"device\.toml: not in UTF-8"):
            read_toml(path)


def test_read_toml_asks_no_locale_for_the_encoding(tmp_path):
    """As on Windows, where Python reads files in the system's code page."""
    path = tmp_path / "device.toml"
    path.write_text('wifi_ssid = "Büro"\n', encoding="utf-8")
    program = "import pathlib, sys; from tools.boards.places import read_toml;"
    program += "print(ascii(read_toml(pathlib.Path(sys.argv[1]))))"
    command = [sys.executable, "-X", "utf8=0", "-c", program, path]
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout == "{'wifi_ssid': 'B\\xfcro'}\n", done.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rpi_pico_w", "RPI_PICO_W"), ("PICO2_W", "RPI_PICO2_W"),
     ("ESP32_GENERIC_C61", "ESP32_GENERIC_C6")],
)  # fmt: skip
def test_load_profile_with_unknown_name_suggests_nearest(typed, meant):
    with pytest.raises(BoardError, match=f"did you mean {meant}"):
        load_profile(typed)


def test_build_with_unknown_board_exits_1_in_one_line_and_with_none_lists_them(run):
    output = run("build", "--board", "PICOW", status=1)
    assert output.startswith("Error: no board 'PICOW'")
    assert output.count("\n") == 1
    for words in (["build"], ["build", "--board", ""]):
        output = run(*words, status=2)
        assert all(name in output for name in board_names())


@pytest.mark.parametrize(
    ("machine", "chip"),
    [
        ("Generic ESP32 module with ESP32", "ESP32"),
        ("TinyPICO with ESP32-PICO-D4", "ESP32"),
        ("LOLIN_C3_MINI with ESP32-C3FH4", "ESP32C3"),
        ("ESP32C3 module with ESP32C3", "ESP32C3"),
        ("Generic ESP32P4 module with ESP32-P4", "ESP32P4"),
        ("Raspberry Pi Pico 2 W with RP2350", "RP2350"),
        ("linux [GCC 14.2.0] version", ""),
    ],
)
def test_chip_of_machine_is_the_longest_name_that_fits(machine, chip):
    assert chip_of(machine) == chip


PICO, ESP32, OLIMEX = "RPI_PICO_W", "ESP32_GENERIC", "OLIMEX_ESP32_EVB"


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (PICO, "LED", "LED_ON = True + 2\nLED", "LED_ON: found True + 2, allowed: 0 or 1"),
        (PICO, "SDA_PIN = 4", "SDAPIN = 4", "SDA_PIN: found nothing, allowed: a number, not neg"),
        (PICO, "SCL_PIN = 5", "SCL_PIN = -5", "SCL_PIN: found -5, allowed: a number, not negati"),
        (PICO, "from port import *", "", "found no line `from port import *`"),
        (PICO, "LED_PIN = ", "LED_PIN = =", "line 5: invalid syntax"),
        (ESP32, "SDA_PIN = 19", 'SDA_PIN = "x"', "SDA_PIN: found 'x', allowed: a number, not neg"),
        (OLIMEX, "ETHERNET", "CABLE", "ETHERNET: found nothing, allowed: a dict of the cable's"),
    ],
)
def test_build_with_mistake_in_board_py_names_file_name_found_and_allowed(
    tmp_path, monkeypatch, name, old, new, expected
):
    """Wrong pins were found on the board, or by nobody."""
    profile = load_profile(name)
    text = (profile.folder / "board.py").read_text()
    assert re.search(f"^{re.escape(old)}", text, re.M)
    monkeypatch.setattr("tools.boards.profile.BOARDS", tmp_path)
    path = profile.folder / "board.py"
    path.parent.mkdir()
    with pytest.raises(BoardError, match=re.escape(f"{path}: found nothing, allowed: constants")):
        build_tree(profile)
    path.write_text(re.sub(f"^{re.escape(old)}", new, text, count=1, flags=re.M))
    with pytest.raises(BoardError) as caught:
        build_tree(profile)
    assert f"{path}: {expected}" in caught.value.message
    assert "\n" not in caught.value.message


def test_show_prints_facts_in_columns_and_addresses_as_data_sheets_do(run):
    output = run("show", "--board", "RPI_PICO_W")
    facts = [line for line in output.splitlines() if not line.startswith("journal lasts")]
    assert {line[30] for line in facts} == {" "}
    assert all(line[29:31] == "  " and line[31] != " " for line in facts)
    shown = dict(line.split(maxsplit=1) for line in facts)
    assert (shown["uf2_family"], shown["filesystem.offset"]) == ("0xe48bff56", "0x12c000")
