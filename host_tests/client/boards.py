"""Starts test modules under real MicroPython and reads what came out."""

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def functions_of(path):
    """-> the names of the test functions in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return sorted(name for name in names if name.startswith("test_"))


def run_module(interpreter, path, heap_bytes=2_000_000):
    """Run the module at `path` -> {name: what was printed for it, "" if fine}."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    done = interpreter.run(
        FOLDER / "on_board.py",
        args=[module],
        micropypath=[ROOT, ROOT / "lib"],
        heap_bytes=heap_bytes,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = {}
    for verdict, name, text in re.findall(
        r"^(ok|FAILED) (\w+)\n((?:(?!ok |FAILED ).*\n)*)", done.stdout, re.MULTILINE
    ):
        results[name] = "" if verdict == "ok" else text or "failed"
    return results
