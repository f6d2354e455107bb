"""The commands that look at a device: journal, monitor, advise, size, romfs."""

import pytest

from tools.boards import advise as advice
from tools.boards.compile import build_tree, tree_files
from tools.boards.config import keys
from tools.boards.deploy import check_itself, keep_journal_blocks
from tools.boards.errors import BoardError
from tools.boards.filesystem import Filesystem
from tools.boards.profile import board_names, load_profile
from tools.boards.remote import Remote
from tools.boards.romfs import make_romfs
from tools.boards.size import (
    BUDGETS,
    BUILT_BUDGETS,
    groups,
    measure_built,
    measure_heap,
    measure_modules,
    over_budget,
)
from tools.journal.life import erases_per_message

PUBLISH = """\
import board
from umqtt31 import MQTTClient
client = MQTTClient("hall-1", "127.0.0.1", store=board.journal())
for i in range(3):
    client.publish(b"readings/%d" % i, b"value", qos=1)
"""
SETTINGS = b'{"client_id": "hall-1", "server": "s", "wifi_ssid": "net", "store": "journal"}'


@pytest.mark.parametrize("name", ["desk", "RPI_PICO_W", "ESP32_GENERIC"])
def test_journal_command_shows_what_the_board_accepted(run, make_board, tmp_path, name):
    profile = load_profile(name)
    files = tree_files(build_tree(profile, tmp_path / "fs")) | {"settings.json": SETTINGS}
    board = make_board(profile, files)
    board.power_on("raw")
    out = tmp_path / "journal.img"
    empty = run("journal", "--port", board.port, "--out", out)
    assert empty.exit_code == 0, empty.output
    assert "nothing was written yet" in empty.output
    Remote(board.port).execute(PUBLISH)
    result = run("journal", "--port", board.port, "--out", out)
    assert result.exit_code == 0, result.output
    assert all(f"topic readings/{i}" in result.output for i in range(3))
    assert out.stat().st_mode & 0o077 == 0


def test_journal_command_when_board_has_no_journal_says_so(run, make_board, desk):
    board = make_board(
        desk, {"board.py": b"def journal_area():\n    raise OSError('no journal')\n"}
    )
    board.power_on("raw")
    result = run("journal", "--port", board.port)
    assert result.exit_code == 1
    assert "no journal" in result.output


def test_deploy_to_pico_set_up_by_hand_keeps_blocks_for_the_journal_once(make_board, tmp_path):
    profile = load_profile("RPI_PICO_W")
    by_hand = profile.model_copy(
        update={"journal": profile.journal.model_copy(update={"place": "file"})}
    )
    files = tree_files(build_tree(profile, tmp_path / "fs")) | {"settings.json": SETTINGS}
    board = make_board(by_hand, files | {"my_data": b"mine" * 3000})
    board.power_on("raw")
    keep_journal_blocks(board.port, profile)
    assert check_itself(board.port)["journal"] == {"inflight": 0, "queued": 0}
    Remote(board.port).execute(PUBLISH)
    keep_journal_blocks(board.port, profile)
    assert check_itself(board.port)["journal"]["queued"] == 3
    board.cut_power()
    start = profile.filesystem.offset
    area = board.image.read_bytes()[start : start + profile.filesystem.size]
    assert Filesystem(profile.filesystem, area).files()["my_data"] == b"mine" * 3000


def test_monitor_command_of_missing_port_exits_1(run):
    result = run("monitor", "--port", "/dev/does-not-exist")
    assert result.exit_code == 1
    assert "no such port" in result.output


@pytest.mark.parametrize("name", board_names())
def test_profile_erases_are_those_of_a_64_byte_message(name):
    journal = load_profile(name).journal
    assert journal.erases_per_message == pytest.approx(erases_per_message(97))


def settings_of(**changes):
    return keys.complete({"client_id": "d", "server": "s"} | changes)


@pytest.mark.parametrize(
    ("settings", "client", "order", "rules"),
    [
        ({"streams": [0]}, {}, "gaps", {"SIB-RELIABILITY"}),
        ({"streams": [1]}, {}, "resent", {"MQTT-4.6-RM1", "SIB-RELIABILITY"}),
        ({"streams": [1], "max_inflight": 1}, {}, "strict", {"SIB-RELIABILITY"}),
        ({"streams": [1]}, {"ordered": True}, "strict", {"SIB-RELIABILITY"}),
        ({"streams": [2]}, {}, "once", set()),
        ({"streams": [2]}, {"overflow": "latest"}, "gaps", {"SIB-NOEXC"}),
        ({"streams": [2]}, {"has_max_age": True}, "gaps", {"SIB-NOEXC"}),
        ({"streams": [2]}, {"clean_session": True}, "gaps", {"SIB-NONDURABLE"}),
        ({"streams": [2]}, {"tasks": 2}, "none", {"SIB-SINGLE"}),
    ],
)
def test_advise_names_order_and_each_broken_rule(settings, client, order, rules):
    """SIB-ADVISE"""
    one = advice.advise(settings_of(**settings), advice.Client(**client))[0]
    assert one.order == order
    assert {rule for rule, _ in one.broken} == rules


@pytest.mark.parametrize("change", [{"overflow": "latest"}, {"has_max_age": True}])
def test_advise_refusals_when_ordered_are_the_client_own(change):
    """SIB-ADVISE"""
    client = advice.Client(ordered=True, **change)
    assert advice.refusals(settings_of(streams=[1]), client)
    assert advice.refusals(settings_of(streams=[0, 1]), advice.Client(ordered=True))
    assert not advice.refusals(settings_of(streams=[2, 2]), advice.Client(ordered=True))


def test_advise_command_prints_order_rules_and_load(run, tmp_path):
    """SIB-ADVISE"""
    path = tmp_path / "device.toml"
    path.write_text('client_id = "d"\nserver = "s"\nstreams = [1, 2]\nstore = "journal"\n')
    result = run("advise", "--board", "desk", "--config", path)
    assert result.exit_code == 0, result.output
    for text in ("1,2,3,2,3,4", "1,2,3,4", "MQTT-4.6-RM1", "SIB-ROUTE", "lasts", "bridges"):
        assert text in result.output
    assert run("advise", "--board", "desk", "--config", path, "--ordered").exit_code == 1


def test_size_groups_client_journal_and_options_apart():
    group = groups()
    assert {group[name] for name in ("packet", "topic", "protocol", "framing", "client")} == {
        "core"
    }
    assert group["journal"] == group["opening"] == "journal"
    assert group["simple"] == "extra"


def test_over_budget_names_group_and_figures():
    modules = measure_modules()
    assert all(module.bytes > 0 for module in modules)
    totals = {name: sum(m.bytes for m in modules if m.group == name) for name in BUDGETS}
    assert len(over_budget(modules, {})) == sum(totals[name] > BUDGETS[name] for name in BUDGETS)


def test_over_budget_names_what_boards_get():
    limit = BUILT_BUDGETS["core"]
    assert over_budget([], {"core": limit}) == []
    assert over_budget([], {"core": limit + 1}) == [
        f"core as boards get it: {limit + 1:,} bytes, budget {limit:,}"
    ]
    assert 0 < measure_built()["journal"] < measure_built()["core"]


def test_heap_after_import_from_romfs_is_the_smallest_and_that_of_boards_smaller():
    heap = measure_heap()
    assert 0 < heap["ROMFS"] < heap[".mpy"] <= heap[".py"]
    built = measure_heap(is_built=True)
    assert all(0 < built[form] < 0.8 * heap[form] for form in ("ROMFS", ".mpy"))


@pytest.mark.parametrize("name", ["RPI_PICO2_W", "ESP32_GENERIC"])
def test_romfs_is_mounted_by_micropython_and_runs_in_place(micropython, tmp_path, name):
    image = tmp_path / "image.romfs"
    image.write_bytes(make_romfs(tree_files(build_tree(load_profile(name), tmp_path / "fs"))))
    done = micropython.run(ROMFS, args=[image], micropypath=[])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["/rom/lib/umqtt31/__init__.mpy", "True"]


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


@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_board_without_journal_area_says_what_to_do(make_board, tmp_path, name):
    profile = load_profile(name)
    files = tree_files(build_tree(profile, tmp_path / "fs")) | {"settings.json": SETTINGS}
    nowhere = profile.journal.model_copy(update={"place": "file"})
    board = make_board(profile.model_copy(update={"journal": nowhere}), files)
    board.power_on("raw")
    with pytest.raises(BoardError, match="make (image|deploy)"):
        check_itself(board.port)
