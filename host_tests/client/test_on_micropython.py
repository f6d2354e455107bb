"""The wire dialogues again, under every real MicroPython.

pytest runs the functions of `dialogues/` under CPython by itself; here each of
its modules runs whole, and each of its functions must have been run and be fine.
"""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "dialogues"
ROOT = FOLDER.parents[2]
MODULES = sorted(path.stem for path in FOLDER.glob("test_*.py"))


def functions_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return {name for name in names if name.startswith("test_")}


@pytest.mark.parametrize("module", MODULES)
def test_dialogues_of_a_module_hold_on_micropython(micropython, module):
    done = micropython.run(
        FOLDER / "run.py", args=[module], micropypath=[ROOT, ROOT / "lib"], heap_bytes=2_000_000
    )
    passed = {line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")}
    assert done.returncode == 0, done.stderr
    assert passed == functions_of(FOLDER / f"{module}.py"), done.stdout + done.stderr
