"""The virtual board behaves as hardware does towards the real mpremote."""

import contextlib
import functools
import http.server
import os
import signal
import subprocess
import sys
import threading
from unittest.mock import Mock

import pytest

from host_tests.boards.console import read_until
from host_tests.patience import SECONDS
from tools.boards.compile import compile_library
from tools.boards.errors import BoardError
from tools.boards.filesystem import Filesystem
from tools.boards.monitor import monitor
from tools.boards.profile import load_profile
from tools.project import ROOT

MAIN = b"""\
import time
print("main is running")
while True:
    time.sleep_ms(5)
"""


def mpremote(board, *words, cwd=None, status=0):
    """What it says and what the board prints, in their order: nothing waits in a buffer."""
    command = [sys.executable, "-m", "mpremote", "connect", board.port, *map(str, words)]
    options = {"env": os.environ | {"PYTHONUNBUFFERED": "1"}, "stderr": subprocess.STDOUT}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=120, cwd=cwd, **options
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture
def board(start_board, desk):
    return start_board(desk, {"main.py": MAIN, "boot.py": b"print('booting')\n"})


def test_mpremote_exec_interrupts_main_and_fails_with_the_traceback_of_an_error(board):
    output = mpremote(board, "exec", "import sys; print(sys.path, 6 * 7)")
    assert output.strip() == "['', '.frozen', '/lib'] 42"
    assert "ZeroDivisionError" in mpremote(board, "exec", "1/0", status=1)


def test_mpremote_cp_both_ways_keeps_every_byte(board, tmp_path):
    there, back = tmp_path / "there.bin", tmp_path / "back.bin"
    there.write_bytes(bytes(range(256)) * 33)
    mpremote(board, "cp", there, ":data.bin")
    assert "Up to date" in mpremote(board, "cp", there, ":data.bin")
    mpremote(board, "cp", ":data.bin", back)
    assert back.read_bytes() == there.read_bytes()


def test_mpremote_soft_reset_forgets_variables_but_no_files(board):
    mpremote(board, "exec", "x = 1; open('kept', 'w').close()")
    check = "import os; print('x' in globals(), os.listdir())"
    output = mpremote(board, "soft-reset", "exec", check)
    assert "False" in output
    assert "'kept'" in output


def test_mpremote_run_starts_a_local_file(board, tmp_path):
    (tmp_path / "hello.py").write_text("print('from', 'here')\n")
    assert mpremote(board, "run", tmp_path / "hello.py").strip() == "from here"


@contextlib.contextmanager
def serve(folder):
    """An HTTP server on `folder` -> its URL."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize("name", ["desk", "RPI_PICO_W"])
def test_readme_line_that_copies_the_library_does_so_on_an_empty_filesystem(
    start_board, name, tmp_path
):
    """As `make build` makes it."""
    compile_library(tmp_path / "build/RPI_PICO_W/fs/lib/umqtt31", "armv6m")
    line = next(x for x in (ROOT / "README.md").read_text().splitlines() if "mpremote cp" in x)
    words = line.partition("#")[0].split()[1:]
    board = start_board(load_profile(name))
    for _ in range(2):  # again, as after an update
        check = ["+", "exec", "import umqtt31; print(umqtt31.__file__)"]
        output = mpremote(board, *words, *check, cwd=tmp_path)
        assert output.splitlines()[-1] == "/lib/umqtt31/__init__.mpy"


def test_restart_runs_boot_and_main(board):
    output = read_until(board.port, "main is running", restart=True)
    assert output.index("booting") < output.index("main is running")


def test_monitor_when_board_is_unplugged_says_so(board):
    seen = bytearray()

    def unplug_when_running():
        if b"running" in seen:
            board.unplug()
        return False

    with pytest.raises(BoardError, match="the board is gone"):
        monitor(board.port, True, seen.extend, unplug_when_running, patience_s=0)


def test_monitor_when_the_port_is_away_for_a_moment_goes_on(board, make_board, desk, tmp_path):
    again = make_board(desk, {"main.py": b"while True: print('here again')\n"})
    port = tmp_path / "port"
    port.symlink_to(board.port)
    seen, told = bytearray(), []

    def swap_when_running():
        if b"running" in seen and not board.is_gone:
            board.unplug()
            port.unlink()
            port.symlink_to(again.port)
            again.power_on()
        return b"here again" in seen

    monitor(str(port), True, seen.extend, swap_when_running, told.append)
    assert told == [f"{port} is gone; waiting for it"]


def test_monitor_when_its_reader_has_gone_ends(board):
    """As in `make monitor | head`: the board is there."""
    with pytest.raises(BrokenPipeError):
        monitor(board.port, True, Mock(side_effect=BrokenPipeError), on_text=pytest.fail)


def test_monitor_command_of_missing_port_exits_1(run):
    output = run("monitor", "--port", "/dev/does-not-exist", status=1)
    assert "no such port" in output


def test_monitor_command_ends_well_by_ctrl_c(board):
    command = [sys.executable, "-m", "tools", "boards", "monitor", "--port", board.port]
    process = subprocess.Popen(
        [*command, "--restart"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        for line in process.stdout:
            if b"running" in line:
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert errors == b""


def test_files_written_by_the_board_are_there_after_a_power_cut(board, desk):
    mpremote(board, "exec", "f = open('note', 'w'); f.write('kept'); f.close()")
    board.cut_power()
    assert Filesystem(desk.filesystem, board.image.read_bytes()).read("/note") == b"kept"


@pytest.mark.parametrize(
    ("signal", "said"), [(11, ["MicroPython ended with -11"]), (9, [])], ids=["crash", "power cut"]
)
def test_board_whose_micropython_dies_says_so_and_one_whose_power_goes_does_not(
    start_board, desk, capfd, signal, said
):
    board = start_board(desk)
    mpremote(board, "exec", f"import os; os.system('kill -{signal} $PPID')", status=1)
    board.join()
    lines = [line for line in capfd.readouterr().err.splitlines() if "MicroPython" in line]
    assert lines == [f"{board.port}: {text}" for text in said]


def test_board_that_prints_without_end_to_nobody_can_be_unplugged(start_board, desk):
    board = start_board(desk, {"main.py": b"while True: print('x' * 100)\n"})
    read_until(board.port, "xxx")
    board.unplug()
    assert board.is_gone
