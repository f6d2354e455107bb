"""Starts test modules, scripts and functions under real MicroPython and reads what came out."""

import ast
import re
from pathlib import Path

from host_tests.client.scripts import tests_of
from host_tests.patience import SECONDS
from tools.project import ROOT

FOLDER = Path(__file__).parent


def functions_of(path, levels=(3, 4, 5)):
    """-> the tests in the file with the levels that they are for: test_a[3]."""
    return sorted(
        f"{name}[{level}]"
        for name, their_levels, _ in tests_of(what_of(path))
        for level in levels
        if level in their_levels
    )


def what_of(path):
    """-> what `on_board.py` is told: a module's name, or the path of scripts."""
    if path.suffix == ".txt":
        return str(path)
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def run_module(interpreter, path, library=ROOT / "lib", heap_bytes=2_000_000, levels=(3, 4, 5)):
    """Run the tests in `path` -> {name[level]: what was printed for it, "" if fine}.

    `library`: the folder that umqtt31 comes from.
    """
    done = interpreter.run(
        FOLDER / "on_board.py",
        args=[what_of(path), *levels],
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


def call_on(interpreter, module, name, args, path, heap_bytes):
    """-> what a function of the module returns there; it prints nothing."""
    code = f"from {module.__name__} import {name} as called\nprint(repr(called(*{args!r})))"
    done = interpreter.run(code, micropypath=path, heap_bytes=heap_bytes, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return ast.literal_eval(done.stdout)
