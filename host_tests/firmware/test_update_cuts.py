"""An update whose power goes at every flash operation, and at every two, on littlefs."""

import hashlib
from pathlib import Path

import pytest

from tools.boards.compile import build_tree
from tools.boards.profile import load_profile
from tools.boards.release import make_bundle
from tools.micropython import choose
from tools.project import ROOT

KEY = bytes(range(32))
# Small ones lie in littlefs's directory, larger ones in blocks of their own.
OLD = {"a.py": b"V = 1", "b.py": b"V = 1  # " + b"x" * 300, "gone.py": b"V = 1"}
NEW = {"a.py": b"V = 2", "b.py": b"V = 2  # " + b"y" * 310, "gone/in/c.py": b"V = 2"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The firmware, as boards get it."""
    return build_tree(load_profile("desk"), tmp_path_factory.mktemp("tree") / "built")


@pytest.mark.parametrize(
    ("way", "program_bytes", "least_cuts"),
    [
        ("good", 32, 10_000),
        ("silent", 32, 2000),
        ("silent", 256, 2000),
        ("back", 32, 1500),
        ("back", 256, 1500),
    ],
)
def test_update_cut_at_any_two_operations_ends_well(
    tree, tmp_path, record_property, way, program_bytes, least_cuts
):
    """A second cut in the moves left new files without trial and without a way back."""
    base = {path: hashlib.sha256(data).hexdigest() for path, data in OLD.items()}
    (tmp_path / "old").write_text(repr(OLD))
    (tmp_path / "new").write_text(repr(NEW))
    (tmp_path / "bundle").write_bytes(make_bundle("desk", NEW, KEY, 1, base))
    program = Path(__file__).with_name("device") / "cut_update.py"
    place = {"args": [way, program_bytes, KEY.hex()], "micropypath": [tree, ROOT], "cwd": tmp_path}
    done = choose(bits=64).run(program, heap_bytes=64 << 20, timeout=600, **place)
    assert done.returncode == 0, done.stdout + done.stderr
    cuts = int(done.stdout.split()[2])
    assert cuts > least_cuts, done.stdout
    record_property("figure", f"{cuts:,} power cuts and pairs of an update ({way})")
