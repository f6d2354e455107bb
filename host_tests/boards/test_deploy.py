"""Deployment on a virtual board through the real mpremote, unplugged at bad moments too."""

import errno
import fcntl
import hashlib
import os
import pty
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import serial

from host_tests.boards.console import read_until
from tools.boards import device, remote
from tools.boards import port as port_module
from tools.boards.compile import newest_source
from tools.boards.deploy import check_itself, deploy, numbered, other_board, with_list
from tools.boards.errors import BoardError
from tools.boards.port import check_port
from tools.boards.profile import load_profile
from tools.demo.desk import HEAP_BYTES
from tools.project import ROOT

SETTINGS = b'{"client_id": "x", "server": "s"}'
MAIN = b"import a, b\nprint('versions', a.V, b.V, V, 'end')\n"


@pytest.fixture
def firmware_files(built):
    """boot.py and update.mpy, as every deployment brings them."""
    files = built("desk")
    return {name: files[name] for name in ("boot.py", "update.mpy")} | {"settings.json": SETTINGS}


def version(number, firmware_files):
    text = b"V = %d\n" % number
    padding = b"# " + b"x" * 600 + b"\n"
    files = {"lib/a.py": text + padding, "lib/b.py": text, "main.py": text + MAIN}
    return firmware_files | files


def test_deploy_command_on_fresh_board_copies_all_checks_and_starts(
    run, start_board, desk, device_toml
):
    board = start_board(desk)
    output = run("deploy", "--board", "desk", "--port", board.port, "--config", device_toml)
    assert "hall-1" in output
    assert "free_heap" in output
    assert "secret" not in output
    again = run("deploy", "--board", "desk", "--port", board.port, "--config", device_toml)
    assert "0 of" in again
    assert int(board.files()["release.txt"]) == newest_source(desk)


OVER_THE_AIR = {
    "update_id": b"00", "incoming/01": b"b", "previous/id": b"00", "previous/trial": b"1"
}  # fmt: skip


@pytest.mark.parametrize("left", [{}, OVER_THE_AIR], ids=["by cable", "over the air"])
def test_deploy_when_one_file_differs_copies_only_that_and_ends_what_came_over_the_air(
    start_board, desk, firmware_files, left
):
    """A rollout of that bundle got the answer "running" although something else ran."""
    files = version(1, firmware_files)
    board = start_board(desk, with_list(files) | left)
    newer = files | {"lib/b.py": b"V = 7\n"}
    plan = deploy(board.port, newer, desk)
    assert list(plan.changed) == ["lib/b.py", "deployed.txt"]
    assert plan.foreign == []
    assert board.files() == with_list(newer)


def test_board_lists_its_files_in_the_heap_that_it_has(micropython, tmp_path):
    """With a buffer for each file the heap was in pieces, and had no room for the answer."""
    paths = [f"module_{number}.mpy" for number in range(90)]
    for path in paths:
        (tmp_path / path).write_bytes(path.encode() * 100)
    (tmp_path / "deployed.txt").write_text("x" * 8000)
    script = device.source("inventory", paths=paths, texts=["deployed.txt"])
    done = micropython.run(script, heap_bytes=HEAP_BYTES[micropython.bits] // 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = device.answer(done.stdout)
    assert found["files"] == {
        path: hashlib.sha256((tmp_path / path).read_bytes()).hexdigest() for path in paths
    }


@pytest.mark.parametrize(("before", "number", "after"), [(5, 6, 6), (6, 5, 6)])
def test_deploy_gives_a_number_that_never_falls(
    start_board, desk, firmware_files, before, number, after
):
    """A board that came to its firmware by cable took any release, old ones, too."""
    files = version(1, firmware_files)
    board = start_board(desk, with_list(numbered(files, before)))
    plan = deploy(board.port, numbered(files, number), desk)
    assert plan.foreign == []
    assert board.files() == with_list(numbered(files, after))


def test_deploy_of_mpy_removes_the_source_that_would_hide_it(start_board, desk, firmware_files):
    board = start_board(desk, {"lib/a.py": b"V = 'old source'\n"})
    plan = deploy(board.port, firmware_files | {"lib/a.mpy": b"not run here"}, desk)
    assert plan.removed == plan.foreign == ["lib/a.py"]
    on_board = board.files()
    assert "lib/a.py" not in on_board
    assert "lib/a.mpy" in on_board
    assert on_board["backup/lib_a.py"] == b"V = 'old source'\n"


def test_deploy_keeps_copies_of_what_somebody_else_wrote_and_of_nothing_of_ours(
    start_board, desk, firmware_files
):
    theirs = {"main.py": b"print('mine')\n", "boot.py": b"# mine\n", "notes.txt": b"n"}
    board = start_board(desk, theirs)
    for number, foreign in ((1, ["boot.py", "main.py"]), (2, [])):
        assert sorted(deploy(board.port, version(number, firmware_files), desk).foreign) == foreign
    on_board = board.files()
    backup = {name: data for name, data in on_board.items() if name.startswith("backup/")}
    assert backup == {f"backup/{name}": theirs[name] for name in ("main.py", "boot.py")}
    assert on_board["notes.txt"] == b"n"


def test_deploy_command_brings_certificates_and_a_newer_key_leaves_no_copy(
    run, start_board, desk, device_certificates, make_config
):
    """The board's own check reads them; a key in /backup would outlive its use."""
    files = {"tls": "ca.crt", "tls_cert": "one.crt", "tls_key": "one.key"}
    config = make_config(device_certificates, client_id="one", server="b", **files)
    board = start_board(desk)
    words = ("--board", "desk", "--port", board.port, "--config", config, "--no-start")
    for name in ("one", "two"):
        for kind in ("crt", "key"):
            content = (device_certificates / f"{name}.{kind}").read_bytes()
            (device_certificates / f"one.{kind}").write_bytes(content)
        output = run("deploy", *words)
        assert "backup" not in output
        assert "PRIVATE" not in output
    on_board = board.files()
    for kind in ("crt", "key"):
        assert on_board[f"one.{kind}"] == (device_certificates / f"two.{kind}").read_bytes()
    assert not any(name.startswith("backup/") for name in on_board)
    assert b"one.key" not in on_board["deployed.txt"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "the board has no settings yet: add CONFIG=device.toml"),
        ({"settings.json": b"[]"}, "on the board is damaged: add CONFIG=device.toml"),
        ({"settings.json": b'{"client_id": "x"}'}, "on the board: server is missing"),
    ],
)
def test_deploy_without_good_settings_anywhere_changes_nothing(start_board, desk, settings, text):
    theirs = {"main.py": b"print('mine')\n", "boot.py": b"# mine\n"} | settings
    board = start_board(desk, theirs)
    with pytest.raises(BoardError, match=text):
        deploy(board.port, {"main.py": b"new\n"}, desk)
    assert board.files() == theirs


@pytest.mark.parametrize(
    ("there", "told"),
    [("ESP32_GENERIC_C3", "RPI_PICO_W"), ("RPI_PICO_W", "ESP32_GENERIC"), ("desk", "RPI_PICO_W"),
     ("ESP32_GENERIC", "desk"), ("ESP32_GENERIC_S3", "ESP32_GENERIC")],
)  # fmt: skip
def test_deploy_to_another_chip_changes_nothing_and_names_both(
    run, start_board, device_toml, there, told
):
    """The board's own program runs again: a node that had to stop sent nothing any more."""
    profile = load_profile(there)
    files = {"main.py": b"while True:\n    print('main is running')\n"}
    board = start_board(profile, files)
    output = run(
        "deploy", "--board", told, "--port", board.port, "--config", device_toml, status=1
    )
    assert profile.firmware.machine in output
    assert f"{told} has {load_profile(told).mcu}" in output
    read_until(board.port, "main is running")
    assert board.files() == files


def test_deploy_to_board_of_the_same_chip_is_taken(start_board, firmware_files):
    """Generic firmware runs on many boards; its name is no reason to refuse."""
    board = start_board(load_profile("ESP32_GENERIC"))
    settings = b'{"client_id": "x", "server": "s", "wifi_ssid": "net"}'
    plan = deploy(
        board.port, firmware_files | {"settings.json": settings}, load_profile("UM_TINYPICO")
    )
    assert "boot.py" in plan.changed


def test_deploy_to_full_filesystem_names_bytes_and_changes_nothing(
    start_board, desk, firmware_files
):
    files = version(1, firmware_files)
    board = start_board(desk, files | {"ballast": os.urandom(960_000)})
    with pytest.raises(BoardError, match="filesystem full: .* bytes needed"):
        deploy(board.port, version(2, firmware_files) | {"big": os.urandom(40_000)}, desk)
    assert board.files()["main.py"] == files["main.py"]


def test_check_itself_with_wrong_settings_names_the_key(start_board, desk, built):
    board = start_board(desk, built("desk") | {"settings.json": b'{"client_id": "x"}'})
    with pytest.raises(BoardError, match="server is missing"):
        check_itself(board.port)


def test_deploy_first_removes_what_decides_an_update_over_the_air(monkeypatch):
    """A cut left a trial without the way back, or a half of the old files to go back to."""
    removed = []
    monkeypatch.setattr(os, "listdir", lambda folder: ["0", "list", "ready", "id", "trial"])
    monkeypatch.setattr(os, "remove", removed.append)
    for name in ("mkdir", "rmdir"):
        monkeypatch.setattr(os, name, lambda path: None)
    exec(device.source("stage", folders=[], foreign=[]), {})
    assert removed[0] == "/staged/ready"
    of_the_last = [path for path in removed if path.startswith("/previous/")]
    assert of_the_last[:3] == ["/previous/trial", "/previous/ready", "/previous/list"]


@pytest.fixture
def updated(start_board, desk, firmware_files):
    """updated(…) -> what runs after an update of version 1 to 2 whose plug was pulled."""

    def update(sent=0, cut_at_operation=0):
        files = with_list(version(1, firmware_files))
        board = start_board(desk, files, cut_at_operation=cut_at_operation)
        if sent:
            board.unplug_after(sent)
        try:
            deploy(board.port, version(2, firmware_files), desk)
        except BoardError as error:
            assert "\n" not in error.message
        board.unplug()
        again = start_board(desk, flash=board.image.read_bytes())
        # Its Ctrl-C meets boot.py, which is at work on the update.
        output = read_until(again.port, "end", restart=True)
        old, new = "versions 1 1 1" in output, "versions 2 2 2" in output
        assert old != new, output
        return new

    return update


@pytest.mark.parametrize("sent", [60, 700, 1500, 2500, 3500, 4500])
def test_deploy_unplugged_while_sending_leaves_old_or_new_version(updated, sent):
    updated(sent=sent)


def test_deploy_power_cut_at_any_flash_operation_leaves_old_or_new_version(updated):
    """Every write and erase of an update, until one is so late that all was done before."""
    seen = []
    while seen[-4:] != [True] * 4:
        seen.append(updated(cut_at_operation=len(seen) + 1))
        assert len(seen) < 200
    assert seen[0] is False
    assert seen == sorted(seen), "once decided, an update is never taken back"


@pytest.mark.parametrize(
    ("name", "machine", "other"),
    [
        ("W5500_EVB_PICO", "Raspberry Pi Pico W with RP2040", "RPI_PICO_W"),
        ("RPI_PICO_W", "W5500-EVB-Pico with RP2040", "W5500_EVB_PICO"),
        ("OLIMEX_ESP32_POE", "Generic ESP32 module with ESP32", "ESP32_GENERIC"),
        ("RPI_PICO_W", "Raspberry Pi Pico W with RP2040", None),
        # The same network, so at worst another LED.
        ("M5STACK_ATOM", "Generic ESP32 module with ESP32", None),
        ("RPI_PICO_W", "My own board with RP2040", None),
        ("desk", "", None),
    ],
)
def test_board_of_another_network_is_doubted(name, machine, other):
    """Ethernet on a Pico W was deployed without a word, and then it reset for ever."""
    found = other_board(load_profile(name), machine)
    assert (found and found.name) == other


@pytest.mark.parametrize(
    ("system", "error", "expected"),
    [
        ("posix", OSError(errno.ENOENT, ""), "no such port"),
        ("posix", OSError(errno.EACCES, ""), "no permission; add yourself to the group"),
        ("posix", OSError(errno.EBUSY, ""), "busy; close the other program"),
        ("posix", OSError(errno.EIO, ""), "no such port"),
        # On Windows pyserial has words for it.
        ("nt", serial.SerialException("FileNotFoundError(2, 'no file', None, 2)"), "no such port"),
        ("nt", serial.SerialException("PermissionError(13, 'Denied', None, 5)"), "busy"),
    ],
)
def test_check_port_when_open_fails_says_what_to_do(monkeypatch, system, error, expected):
    fail = Mock(side_effect=error)
    monkeypatch.setattr(port_module.os, "name", system)
    if system == "nt":
        monkeypatch.setattr(port_module.serial, "Serial", fail)
    else:
        monkeypatch.setattr("serial.serialposix.os.open", fail)
    with pytest.raises(BoardError, match=f"ttyUSB0: {expected}"):
        check_port("/dev/ttyUSB0")


@pytest.mark.parametrize(
    ("usb", "text"),
    [
        ([0x2E8A, 0x303A], "no such port; there are: /dev/ttyACM0, /dev/ttyACM1"),
        ([], "no such port, nor one of any board; plug it in"),
    ],
)
def test_check_port_that_is_not_there_names_those_that_are(monkeypatch, tmp_path, usb, text):
    """It named a program that nobody had on the path.  A computer's own lines are no boards."""
    found = [SimpleNamespace(device="/dev/ttyS0", vid=None)]
    found += [SimpleNamespace(device=f"/dev/ttyACM{i}", vid=vid) for i, vid in enumerate(usb)]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: found)
    with pytest.raises(BoardError) as caught:
        check_port(str(tmp_path / "ttyACM9"))
    assert text in caught.value.message


@pytest.fixture
def line():
    """The descriptor of a serial port at which nobody is."""
    master, slave = pty.openpty()
    yield slave
    os.close(master)
    os.close(slave)


def test_check_port_when_in_use_says_busy(line):
    fcntl.flock(line, fcntl.LOCK_EX)
    with pytest.raises(BoardError, match="busy"):
        check_port(os.ttyname(line))


def test_mpremote_that_is_killed_says_what_to_do(monkeypatch, line):
    """The last thing that it had printed was told, half of the board's inventory."""
    kill = "import os; print('{', flush=True); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(remote, "MPREMOTE", [sys.executable, "-c", kill])
    with pytest.raises(BoardError, match="broke off; plug the board in and run the same command"):
        remote.Remote(os.ttyname(line)).execute("pass")


@pytest.mark.parametrize(
    ("name", "text"), [("file", "not a serial port"), ("", "a folder; name a serial port")]
)
def test_check_port_of_something_else_says_what_it_is(tmp_path, name, text):
    (tmp_path / "file").touch()
    with pytest.raises(BoardError, match=text):
        check_port(str(tmp_path / name))


def test_tools_for_boards_import_nothing_that_windows_lacks():
    """pyserial, mpremote and esptool know the system; our modules do not."""
    program = """
import builtins, importlib, pkgutil, tools.boards
real = builtins.__import__
def watched(name, globals=None, *rest):
    if globals and globals.get("__name__", "").startswith("tools."):
        assert name not in ("termios", "fcntl", "pty", "tty", "pwd", "grp"), globals["__name__"]
    return real(name, globals, *rest)
builtins.__import__ = watched
for module in pkgutil.iter_modules(tools.boards.__path__, "tools.boards."):
    if not module.ispkg:
        importlib.import_module(module.name)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
