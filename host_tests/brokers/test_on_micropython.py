"""The client on real 32-bit MicroPython, in a board's heap, through each broker."""

from pathlib import Path

import pytest

from host_tests.brokers.clients import new_name
from tools.boards.compile import compile_library
from tools.micropython import choose
from tools.project import ROOT

_PROGRAM = Path(__file__).parent / "loop_on_board.py"
# Compiling takes more than running: the core is one module.
_HEAP_BYTES = {"as boards get it": 64 * 1024, "from source": 160 * 1024}


@pytest.fixture(scope="session", params=_HEAP_BYTES)
def library(request, tmp_path_factory):
    """-> (folder with the library, bytes of heap to run it in)."""
    folder = ROOT / "lib"
    if request.param != "from source":
        folder = tmp_path_factory.mktemp("built")
        compile_library(folder / "umqtt31", "armv6m")
    return folder, _HEAP_BYTES[request.param]


def test_both_ways_each_qos_on_micropython_arrives_once_in_order(family, broker, library):
    folder, heap_bytes = library
    highest = family.publish_qos
    args = [broker.port, new_name("board"), highest, family.qos2_window, family.level]
    args.append(family.user or "")
    done = choose(bits=32).run(_PROGRAM, heap_bytes=heap_bytes, micropypath=[folder], args=args)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{qos} 40 True {qos} {qos}" for qos in range(highest + 1)]
