"""The client on real 32-bit MicroPython, in a board's heap, through each broker."""

from pathlib import Path

from host_tests.brokers.clients import new_name
from tools.micropython import choose

_PROGRAM = Path(__file__).parent / "loop_on_board.py"
_HEAP_BYTES = 96 * 1024


def test_both_ways_each_qos_on_micropython_arrives_once_in_order(family, broker):
    highest = family.publish_qos
    done = choose(bits=32).run(
        _PROGRAM,
        heap_bytes=_HEAP_BYTES,
        args=(
            broker.port,
            new_name("board"),
            highest,
            family.qos2_window,
            family.level,
            family.user or "",
        ),
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{qos} 40 True {qos} {qos}" for qos in range(highest + 1)]
