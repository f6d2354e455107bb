"""The wire dialogues again, under every real MicroPython.

pytest runs the functions of `dialogues/` under CPython by itself; here each of
its modules runs whole, and each of its functions must have been run and be fine.
"""

import pytest

from host_tests.client.runner import FOLDER, functions_of, run_module

MODULES = sorted((FOLDER / "dialogues").glob("test_*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_dialogues_of_a_module_hold_on_micropython(micropython, path):
    results = run_module(micropython, path)
    failures = {name: text for name, text in results.items() if text}
    assert not failures, "\n".join(f"{name}\n{text}" for name, text in failures.items())
    assert sorted(results) == functions_of(path)
