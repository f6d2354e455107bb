"""Frames that MicroPython takes from the heap, as its compiler tells them.

A call whose frame has more than 11 words gets it from the heap, and frees it; on a used
heap the search for room takes longer than the call.  A frame has a word for each
argument, local and place of its deepest expression, and three for each nested `try`.
With the heap locked it lies on the C stack instead: a function may so be entered locked
and unlock first thing.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.boards.places import LIBRARY
from tools.micropython import choose

MOST_WORDS = 11
_TRY_WORDS = 3
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)
_TOLD = re.compile(r"code block '(\S+)'.*?\(N_STATE (\d+)\)\n\(N_EXC_STACK (\d+)\)", re.DOTALL)


@dataclass(frozen=True)
class Frame:
    """One function of the library: `name` is module.Class.function."""

    name: str
    words: int
    is_entered_locked: bool


def frames_of_library(library: Path = LIBRARY) -> list[Frame]:
    """The frames of all functions of the modules that go to a board."""
    return [frame for source in sorted(library.glob("*.py")) for frame in _frames(source)]


def large(frames: list[Frame]) -> list[Frame]:
    """Those for which a call has no room but on the heap, if it is not locked."""
    found = [one for one in frames if one.words > MOST_WORDS]
    return sorted(found, key=lambda one: (-one.words, one.name))


def from_heap(frames: list[Frame]) -> list[Frame]:
    """Those that a call takes from the heap, the largest first."""
    return [one for one in large(frames) if not one.is_entered_locked]


def _frames(source: Path) -> Iterator[Frame]:
    command = [*choose(bits=64).command, "-v", "-v", "-X", "compile-only", str(source)]
    told = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    scopes: list[tuple[str, ast.AST]] = [(source.stem, ast.parse(source.read_text("utf-8")))]
    for name, tree in scopes:  # which grows: the compiler puts a scope behind all it knows of
        scopes += [(f"{name}.{_name(one)}", one) for one in _scopes_in(tree)]
    for (name, tree), (code, state, tries) in zip(scopes, _TOLD.findall(told), strict=True):
        if code[0] != "<" and code != _name(tree):
            raise ValueError(f"{name} was compiled as {code}")
        if not isinstance(tree, ast.Module | ast.ClassDef):
            yield Frame(name, int(state) + _TRY_WORDS * int(tries), _unlocks_first(tree))


def _name(tree: ast.AST) -> str:
    return getattr(tree, "name", "<expression>")


def _scopes_in(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _SCOPES):
            yield node
        else:
            yield from _scopes_in(node)


def _unlocks_first(tree: ast.AST) -> bool:
    if not isinstance(tree, _FUNCTIONS):
        return False
    statements = tree.body[ast.get_docstring(tree) is not None :]
    return bool(statements) and ast.unparse(statements[0]) == "heap_unlock()"
