"""Ctrl-C at the virtual board: served as ports serve it, and never the end of the board.

The rules of start-up are those of MicroPython's ports/rp2/main.c and
ports/esp32/main.c since 1.22: main.py runs only after a boot.py that ended well.
"""

import contextlib

import pytest
import serial

from host_tests.patience import SECONDS

LOOP = b"print('boot loops')\nwhile True:\n    pass\n"
MAIN = b"print('main ran')\n"
EXIT_ONCE = b"""\
import os
if 'seen' not in os.listdir():
    open('seen', 'w')
    raise SystemExit
"""
PROMPT = b">>> "

# Most of its time is the garbage collector's.
ALLOCATE = """\
kept = [bytes([i]) * 200 for i in range(100)]
def work():
    while True:
        [bytes(300) for _ in range(50)]
def is_sound():
    return all(one == bytes([i]) * 200 for i, one in enumerate(kept))
"""

# Most of its time is littlefs' and the flash driver's.
WRITE = """\
import os
def work():
    while True:
        for i in range(3):
            with open('new', 'w') as file:
                file.write(str(i) * 2000)
            os.rename('new', 'file%d' % i)
def is_sound():
    names = [name for name in os.listdir() if name.startswith('file')]
    return all(open(name).read() in ('', name[4] * 2000) for name in names)
"""

# Most of its time is import's, which asks for files in vain.
IMPORT = """\
def work():
    while True:
        try:
            import not_there
        except ImportError:
            pass
def is_sound():
    return True
"""

ROUNDS = """
for _ in range(60):
    try:
        print('go')
        work()
    except KeyboardInterrupt:
        if not is_sound():
            print('broken')
print('done')
"""


@contextlib.contextmanager
def terminal(board, mode="friendly"):
    """The board switched on, and an open terminal at it."""
    with serial.Serial(board.port, timeout=SECONDS) as line:
        board.power_on(mode)
        yield line


def wait_for(line, expected):
    """What comes up to and with `expected`; fails when it does not come."""
    got = line.read_until(expected)
    assert got.endswith(expected), got
    return got


def assert_answers(line):
    line.write(b"print(6 * 7)\r")
    return wait_for(line, b"42\n")


LOOPS = {"boot.py": LOOP, "main.py": MAIN}
WAITS = {"main.py": b"import time\nprint('waits')\ntime.sleep(1000)\n"}


# What is awaited and what is sent then; what is shown and what is not.
@pytest.mark.parametrize(
    ("files", "talk", "shown", "hidden"),
    [
        (LOOPS, [(b"boot loops\n", b"\x03"), (PROMPT, b"")], b"KeyboardInterrupt", b"main ran"),
        (LOOPS, [(b"", b"\x03"), (PROMPT, b"")], b"", b"main ran"),
        (LOOPS, [(b"boot loops\n", b"\x03"), (b"", b"\x03"), (PROMPT, b"")], b"", b"main ran"),
        (LOOPS | {"boot.py": b"1/0\n"}, [(PROMPT, b"")], b"ZeroDivisionError", b"main ran"),
        (WAITS, [(b"waits\n", b"\x03")], b"KeyboardInterrupt", b"main ran"),
        ({}, [(PROMPT, b"1/0\x03")], b"42\n", b"ZeroDivisionError"),
    ],
    ids=["boot runs", "before boot", "twice at once", "boot raises", "program waits", "prompt"],
)
def test_ctrl_c_ends_what_runs_and_leaves_the_board_there(
    make_board, desk, files, talk, shown, hidden
):
    """No main.py after a boot.py that was ended; at the prompt the line is forgotten."""
    output = b""
    with terminal(make_board(desk, files)) as line:
        for awaited, sent in talk:
            output += wait_for(line, awaited) if awaited else b""
            line.write(sent)
        output += assert_answers(line)
    assert shown in output
    assert hidden not in output


@pytest.mark.parametrize("mode", ["friendly", "raw"])
def test_boot_that_exits_starts_again_in_the_same_mode(make_board, desk, mode):
    board = make_board(desk, {"boot.py": EXIT_ONCE, "main.py": MAIN})
    with terminal(board, mode) as line:
        output = wait_for(line, PROMPT if mode == "friendly" else b"raw REPL; CTRL-B to exit\r\n>")
    before, reset, after = output.partition(b"MPY: soft reboot\r\n")
    assert reset
    assert b"main ran" not in before
    assert (b"main ran" in after) == (mode == "friendly")


def test_ctrl_c_in_a_flood_leaves_the_board_there(make_board, desk):
    board = make_board(desk, {"main.py": (ALLOCATE + "print('begins')\nwork()\n").encode()})
    with terminal(board) as line:
        wait_for(line, b"begins\n")
        for _ in range(1000):
            line.write(b"\x03")
        wait_for(line, b"KeyboardInterrupt")
        assert_answers(line)
        line.write(b"print(is_sound())\r")
        wait_for(line, b"True\n")


@pytest.mark.parametrize("program", [ALLOCATE, WRITE, IMPORT], ids=["gc", "flash", "import"])
def test_ctrl_c_that_a_program_catches_comes_again_and_breaks_nothing(make_board, desk, program):
    board = make_board(desk, {"main.py": (program + ROUNDS).encode()})
    with terminal(board) as line:
        for _ in range(60):
            assert b"broken" not in wait_for(line, b"go\n")
            line.write(b"\x03")
        assert b"broken" not in wait_for(line, b"done\n")
        assert_answers(line)
    assert "main.py" in board.files()


def test_ctrl_c_in_raw_paste_is_the_end_of_the_program_sent(make_board, desk):
    with terminal(make_board(desk), "raw") as line:
        wait_for(line, b">")
        line.write(b"\x05A\x01print(1)\x03")
        assert b"KeyboardInterrupt" in wait_for(line, b"\x04>")
        line.write(b"print(6 * 7)\x04")
        wait_for(line, b"42\n\x04\x04>")


def test_ctrl_c_while_the_board_resets_leaves_the_board_there(make_board, desk):
    with terminal(make_board(desk)) as line:
        for _ in range(30):
            wait_for(line, PROMPT)
            line.write(b"\x04")
            for _ in range(5):
                line.write(b"\x03")
        assert_answers(line)


def test_ctrl_c_sent_before_a_reset_is_over_after_it(make_board, desk):
    """As `make monitor` restarts a board: what runs then is not interrupted."""
    main = WRITE + "print('go')\nwork()\n"
    files = {"boot.py": b"print('boot ran')\n", "main.py": main.encode()}
    with terminal(make_board(desk, files)) as line:
        for _ in range(30):
            assert b"KeyboardInterrupt" not in wait_for(line, b"boot ran\ngo\n")
            line.write(b"\r\x03\x03\r\x02\x04")
            wait_for(line, b"soft reboot\r\n")
