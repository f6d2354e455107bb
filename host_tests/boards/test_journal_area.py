"""Where a board keeps its journal, and the command that reads it back."""

import pytest

from host_tests.boards.console import read_until
from tools.boards.deploy import check_itself, deploy, keep_journal_blocks, with_list
from tools.boards.errors import BoardError
from tools.boards.profile import load_profile
from tools.boards.remote import Remote

PUBLISH = """\
import board
from umqtt31 import MQTTClient
client = MQTTClient("hall-1", "127.0.0.1", store=board.journal())
for i in range(3):
    client.publish(b"readings/[/b]\x1b%d" % i, b"value", qos=1)
"""
# A clean session gives up what an earlier life left, and no broker is needed for that.
EMPTY = """\
try:
    client.connect(True)
except OSError:
    pass
client.disconnect()
"""
_JSON = b'{"client_id": "hall-1", "server": "s", "wifi_ssid": "net", "store": "journal"}'
SETTINGS = {"settings.json": _JSON}


def set_up_by_hand(name):
    """-> the profile of this board as it is without a place for the journal."""
    profile = load_profile(name)
    journal = profile.journal.model_copy(update={"place": "file"})
    return profile.model_copy(update={"journal": journal})


@pytest.mark.parametrize("name", ["desk", "RPI_PICO_W", "ESP32_GENERIC"])
def test_journal_command_shows_what_the_board_accepted(run, start_board, built, tmp_path, name):
    board = start_board(load_profile(name), built(name) | SETTINGS, mode="raw")
    out = tmp_path / "journal.img"
    empty = run("journal", "--port", board.port, "--out", out)
    assert "nothing was written yet" in empty
    Remote(board.port).execute(PUBLISH)
    output = run("journal", "--port", board.port, "--out", out)
    assert all(f"topic readings/[/b]\ufffd{i}" in output for i in range(3))
    assert out.stat().st_mode & 0o077 == 0


def test_journal_command_when_board_has_no_journal_says_so_and_starts_it(run, start_board, desk):
    text = b"def journal_area():\n    raise OSError('no journal')\n"
    main = b"while True:\n    print('main is running')\n"
    board = start_board(desk, {"board.py": text, "main.py": main}, mode="raw")
    output = run("journal", "--port", board.port, status=1)
    assert "no journal" in output
    read_until(board.port, "main is running")


def test_deploy_of_another_level_or_client_over_messages_is_refused_and_changes_nothing(
    start_board, desk, built
):
    """The node would not start: level 5 has other packets, and each client its own journal."""
    files = built("desk") | SETTINGS
    board = start_board(desk, with_list(files), mode="raw")
    at_level_4, at_level_5 = (
        files | {"settings.json": files["settings.json"][:-1] + b', "level": %d}' % level}
        for level in (4, 5)
    )
    renamed = files | {"settings.json": files["settings.json"].replace(b"hall-1", b"hall-2")}
    Remote(board.port).execute(PUBLISH)
    for other in (at_level_5, renamed):
        with pytest.raises(BoardError, match="its journal holds 3 messages .* leave both as they"):
            deploy(board.port, other, desk)
    assert check_itself(board.port)["journal"]["queued"] == 3
    assert list(deploy(board.port, at_level_4, desk).changed) == ["settings.json"]
    Remote(board.port).execute(PUBLISH.partition("for")[0] + EMPTY)
    assert list(deploy(board.port, at_level_5, desk).changed) == ["settings.json"]
    deploy(board.port, renamed, desk)
    assert check_itself(board.port)["client_id"] == "hall-2"


def test_deploy_to_pico_set_up_by_hand_keeps_blocks_for_the_journal_once(start_board, built):
    profile = load_profile("RPI_PICO_W")
    files = built("RPI_PICO_W") | SETTINGS | {"my_data": b"mine" * 3000}
    board = start_board(set_up_by_hand("RPI_PICO_W"), files, mode="raw")
    keep_journal_blocks(board.port, profile)
    assert check_itself(board.port)["journal"] == {"inflight": 0, "queued": 0}
    Remote(board.port).execute(PUBLISH)
    keep_journal_blocks(board.port, profile)
    assert check_itself(board.port)["journal"]["queued"] == 3
    assert board.files()["my_data"] == b"mine" * 3000


@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_board_without_journal_area_says_what_to_do(start_board, built, name):
    board = start_board(set_up_by_hand(name), built(name) | SETTINGS, mode="raw")
    with pytest.raises(BoardError, match="make (image|deploy)"):
        check_itself(board.port)
