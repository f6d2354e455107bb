"""Board profiles: all of the repository are good, and each mistake is one clear line."""

import pytest

from tools.boards.compile import board_sources
from tools.boards.errors import BoardError
from tools.boards.places import BOARDS
from tools.boards.profile import board_names, load_profile, read_profile

REQUIRED = {
    "ESP32_GENERIC",
    "ESP32_GENERIC_S3",
    "ESP32_GENERIC_C3",
    "ESP32_GENERIC_C6",
    "RPI_PICO_W",
    "RPI_PICO2_W",
    "desk",
}


def test_board_names_include_all_promised():
    assert set(board_names()) >= REQUIRED


@pytest.mark.parametrize("name", board_names())
def test_profile_of_repository_is_valid_and_complete(name):
    profile = load_profile(name)
    assert profile.name == name
    assert (profile.folder / "board.py").is_file()
    assert {"lib/umqtt31/client.py", "main.py", "board.py"} <= {
        path for _, path in board_sources(profile)
    }


@pytest.mark.parametrize("name", board_names())
def test_profile_expected_life_is_what_its_figures_give(name):
    journal = load_profile(name).journal
    assert journal.expected_life_years == pytest.approx(journal.life_years(10), rel=0.02)


@pytest.mark.parametrize("name", board_names())
def test_profile_areas_do_not_overlap(name):
    profile = load_profile(name)
    if profile.journal.place == "partition":
        assert profile.filesystem.offset + profile.filesystem.size <= profile.journal.offset


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('method = "none"', 'method = "usb"', "flash.method: found 'usb', allowed: 'esptool', "),
        ("[memory]\nheap = 98304", "", "memory: found nothing, allowed: a table with heap"),
        ("size = 0x10000\n", "size = 5\n", "journal.size: found 5, allowed: a multiple of 4096"),
        ('title = "', 'caption = "', "caption: unknown key, allowed: name, title, mcu"),
        ("heap = 98304", 'heap = "64k"', "memory.heap: found '64k', allowed: a valid integer"),
        ('arch = "x64"', 'arch = "z80"', "arch: found 'z80', allowed: 'armv6m', "),
        ('arch = "x64"', "", "arch: found nothing, allowed: 'armv6m' or "),
        ("[filesystem]", "[filesystem]\nlabel = 1", "filesystem.label: unknown key, allowed: of"),
        (
            'place = "file"\noffset = 0x0',
            'place = "reserved"\noffset = 0xff000',
            "journal ends at",
        ),
        ("[flash]", "[flash", "not valid TOML"),
    ],
)
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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rpi_pico_w", "RPI_PICO_W"), ("PICO2_W", "RPI_PICO2_W"), ("ESP32_GENERIC_C5", "ESP32_GENE")],
)
def test_load_profile_with_unknown_name_suggests_nearest(typed, meant):
    with pytest.raises(BoardError, match=f"did you mean {meant}"):
        load_profile(typed)


def test_build_with_unknown_board_exits_1_in_one_line(run):
    result = run("build", "--board", "PICOW")
    assert result.exit_code == 1
    assert result.output.startswith("Error: no board 'PICOW'")
    assert result.output.count("\n") == 1


def test_build_without_board_exits_2(run):
    assert run("build").exit_code == 2


@pytest.mark.parametrize(
    "command", ["build", "size", "romfs", "image", "flash", "deploy", "provision", "monitor"]
)
def test_help_is_there_for_every_command(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output
