"""A short soak: `python -m host_tests soak --minutes 30` is the real one.

Shows 31-4.1-Q1 and 31-4.1-Q2 on real MicroPython over cut links, pulled plugs and a
broker that restarts, and that nothing is left on the heap.
"""

import pytest

from host_tests.running import said_by
from host_tests.soak.cli import Heap, boots, cli, is_steady


@pytest.mark.xdist_group("simulator")
@pytest.mark.parametrize("level", ["3", "5"])
def test_short_soak_when_everything_breaks_then_nothing_is_lost(tmp_path, level):
    args = ["--minutes", "0.1", "--interval-ms", "30", "--out", str(tmp_path / "soak")]
    args += ["--level", level]
    output = said_by(cli, *args)
    assert "Every promise held." in output
    assert "plug pulled" in output or "link cut" in output


def test_heap_when_it_shrinks_within_a_boot_then_is_not_steady():
    lines = ["boot 1 of a on desk", "heap 30000 9000", "heap 20000 8000", "heap 19800 8000"]
    steady, *_ = boots(lines)
    assert is_steady(steady)
    leaky, *_ = boots([*lines, "heap 18500 8000"])
    assert not is_steady(leaky)
    torn, *_ = boots([*lines, "heap 19990 6000"])
    assert not is_steady(torn)


def test_heap_when_boots_follow_each_other_then_each_is_judged_alone():
    lines = ["boot 1 of a on desk", "heap 30000 9000", "boot 2 of a on desk", "heap 20000 8000"]
    assert boots(lines) == [[Heap(30000, 9000)], [Heap(20000, 8000)]]
    assert all(map(is_steady, boots(lines)))
