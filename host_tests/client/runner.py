"""Starts test modules and scripts under real MicroPython and reads what came out."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

from host_tests.client.dialogue import levels_of
from host_tests.client.player import read_scripts
from tools.project import ROOT

FOLDER = Path(__file__).parent
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions_of(path, levels=(3, 4, 5)):
    """-> the tests in the file with the levels that they are for: test_a[3]."""
    if path.suffix == ".txt":
        scripts = read_scripts(path)
        return sorted(f"{one.name}[{n}]" for one in scripts for n in levels if n in one.levels)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lists = {"LEVELS": (3, 4, 5), "LEVEL_3": (), "BELOW_5": (), "LEVEL_5": ()}
    names = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in lists:
            lists[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
        elif isinstance(node, _FUNCTION) and node.name.startswith("test_"):
            names.append(node.name)
    module = SimpleNamespace(**lists)
    return sorted(
        f"{name}[{level}]"
        for name in names
        for level in levels
        if level in levels_of(module, name)
    )


def run_module(interpreter, path, heap_bytes=2_000_000, levels=(3, 4, 5), library=ROOT / "lib"):
    """Run the tests in `path` -> {name[level]: what was printed for it, "" if fine}.

    `library`: the folder that umqtt31 comes from.
    """
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    what = str(path) if path.suffix == ".txt" else module
    done = interpreter.run(
        FOLDER / "on_board.py",
        args=[what, *levels],
        micropypath=[ROOT, library],
        heap_bytes=heap_bytes,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr[:500]  # not even a warning
    results = {}
    for verdict, name, text in re.findall(
        r"^(ok|FAILED) (\S+)\n((?:(?!ok |FAILED ).*\n)*)", done.stdout, re.MULTILINE
    ):
        results[name] = "" if verdict == "ok" else text or "failed"
    return results
