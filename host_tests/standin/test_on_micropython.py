"""The kit does the same under CPython and under every MicroPython."""

import runpy
from pathlib import Path

from tools.project import ROOT

PROGRAM = Path(__file__).parent / "on_board.py"
SAID = [
    f"PUBLISH qos 1 id 5 t b'{'x' * 24}' DUP "
    "[('message_expiry', 7), ('user_property', [(b'k', b'v'), (b'k', b'w')])]",
    "PUBREC id 7 reason 0x97 None b'0'",
    "5 9 b'n' b'w' b'off'",
    "[(b'a', 1)]",
    "True 100 2600",
    "5",
    r"5 b'\xff\xff\xff\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff'",
    r"b'\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00' 2 2 8",
    "3 None None",
    "2 2 b'ye' b''",
    "2 b'ab' 8 b'01234567'",
    "[2, None, 1, 0] 5",
    "reads 9 bytes into a buffer of 8",
    "('broker', 1883) ('broker', 1883)",
]


def test_kit_on_micropython(micropython):
    done = micropython.run(PROGRAM, micropypath=[ROOT])
    assert done.stdout.splitlines() == SAID, done.stderr


def test_kit_on_cpython(capsys):
    runpy.run_path(str(PROGRAM))
    assert capsys.readouterr().out.splitlines() == SAID
