"""docs/reference/board-profiles.md: its files, as they stand there, make a board."""

import re
import shutil

import pytest

from host_tests.boards import firmware_images
from host_tests.boards.test_image import flash_content
from tools.boards import compile as compiling
from tools.boards import profile as profiles
from tools.boards.compile import build_tree, tree_files
from tools.boards.deploy import check_itself
from tools.boards.image import make_base
from tools.boards.places import BOARDS
from tools.boards.profile import load_profile
from tools.project import ROOT

SETTINGS = b'{"client_id": "new", "server": "10.0.0.1", "wifi_ssid": "net", "store": "journal"}'


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The code blocks of the page; the tools look for boards in a folder of this test's own."""
    folder = tmp_path / "boards"
    shutil.copytree(BOARDS, folder)
    for module in (profiles, compiling):
        monkeypatch.setattr(module, "BOARDS", folder)
    profiles.shared_facts.cache_clear()
    part = (ROOT / "docs/reference/board-profiles.md").read_text()
    yield (
        folder,
        dict(zip(("board", "chip"), re.findall(r"```toml\n(.*?)```", part, re.DOTALL)))
        | {"python": re.search(r"```python\n(.*?)```", part, re.DOTALL)[1]},
    )
    profiles.shared_facts.cache_clear()


def boots(profile, make_firmware, make_board, tmp_path):
    """The report of the board's own check, from an image of `profile`."""
    files = tree_files(build_tree(profile, tmp_path / "fs"))
    image = make_base(profile, make_firmware(profile), files).image({"settings.json": SETTINGS})
    board = make_board(profile, flash=flash_content(image, profile))
    board.power_on("raw")
    return check_itself(board.port)


def test_board_of_the_page_builds_an_image_that_boots(page, make_firmware, make_board, tmp_path):
    folder, blocks = page
    new = folder / "LILYGO_TTGO_LORA32"
    new.mkdir()
    (new / "board.toml").write_text(blocks["board"])
    (new / "board.py").write_text(blocks["python"])
    profile = load_profile("LILYGO_TTGO_LORA32")
    assert boots(profile, make_firmware, make_board, tmp_path)["board"] == "LILYGO_TTGO_LORA32"


def test_chip_of_the_page_is_one_table_more(
    page, make_firmware, make_board, tmp_path, monkeypatch
):
    folder, blocks = page
    with (folder / "chips.toml").open("a") as file:
        file.write("\n" + blocks["chip"])
    board = folder / "ESP32_GENERIC_C6" / "board.toml"
    board.write_text(board.read_text().replace('mcu = "esp32c6"', 'mcu = "esp32c61"'))
    monkeypatch.setitem(firmware_images.CHIP_IDS, "esp32c61", 20)
    profile = load_profile("ESP32_GENERIC_C6")
    assert profile.chip == "ESP32C61"
    assert boots(profile, make_firmware, make_board, tmp_path)["board"] == "ESP32_GENERIC_C6"
