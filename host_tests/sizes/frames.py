"""Frames that MicroPython takes from the heap: read from the bytecode in .mpy files.

A call whose frame has more than 11 words gets it from the heap, and frees it; on a used
heap the search for room takes longer than the call.  A frame has a word for each
argument, local and place of its deepest expression, and three for each nested `try`.
With the heap locked it lies on the C stack instead: a function may so be entered locked
and unlock first thing.  The layout is that of py/persistentcode.c and py/bc.h.
"""

import ast
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.boards.compile import compile_file
from tools.boards.places import LIBRARY

MOST_WORDS = 11
_TRY_WORDS = 3
_ARCH = "armv6m"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Frame:
    """One function of the library: `name` is module.Class.function."""

    name: str
    words: int
    is_entered_locked: bool


def frames_of_library(library: Path = LIBRARY) -> list[Frame]:
    """The frames of all functions of the modules that go to a board."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for source in sorted(library.glob("*.py")):
            target = Path(folder) / f"{source.stem}.mpy"
            compile_file(source, target, _ARCH)
            tree = ast.parse(source.read_text(encoding="utf-8"))
            found += _named(Mpy(target.read_bytes()).code, tree, source.stem)
        return found


def large(frames: list[Frame]) -> list[Frame]:
    """Those for which a call has no room but on the heap, if it is not locked."""
    found = [one for one in frames if one.words > MOST_WORDS]
    return sorted(found, key=lambda one: (-one.words, one.name))


def from_heap(frames: list[Frame]) -> list[Frame]:
    """Those that a call takes from the heap, the largest first."""
    return [one for one in large(frames) if not one.is_entered_locked]


def _named(code: "Code", tree: ast.AST, name: str) -> list[Frame]:
    # The compiler writes the scopes inside a scope in the order of the source.
    scopes = list(_scopes_in(tree))
    if len(scopes) != len(code.children):
        raise ValueError(f"{name}: {len(code.children)} scopes compiled, not {len(scopes)}")
    found = [] if isinstance(tree, (ast.Module, ast.ClassDef)) else [_frame(code, tree, name)]
    for child, scope in zip(code.children, scopes, strict=True):
        found += _named(child, scope, f"{name}.{getattr(scope, 'name', '<expression>')}")
    return found


def _frame(code: "Code", tree: ast.AST, name: str) -> Frame:
    body = getattr(tree, "body", None)
    statements = body if isinstance(body, list) else []
    if statements and isinstance(tree, ast.FunctionDef) and ast.get_docstring(tree) is not None:
        statements = statements[1:]
    is_locked = bool(statements) and ast.unparse(statements[0]) == "heap_unlock()"
    return Frame(name, code.words, is_locked)


def _scopes_in(tree: ast.AST):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _SCOPES + _COMPREHENSIONS):
            yield node
        else:
            yield from _scopes_in(node)


class Code:
    """One function's bytecode: the words of its frame, and the scopes inside it."""

    def __init__(self, words: int):
        self.words = words
        self.children: list[Code] = []


class Mpy:
    """The `code` of a whole module, read from the bytes of an .mpy without native code."""

    def __init__(self, data: bytes):
        self._data = data
        self._pos = 4  # behind the header
        names, objects = self._uint(), self._uint()
        for _ in range(names):
            self._skip_name()
        for _ in range(objects):
            self._skip_object()
        self.code = self._read_code()

    def _byte(self) -> int:
        self._pos += 1
        return self._data[self._pos - 1]

    def _uint(self) -> int:
        value = 0
        while True:
            byte = self._byte()
            value = value << 7 | byte & 127
            if byte < 128:
                return value

    def _skip_name(self) -> None:
        length = self._uint()
        if not length & 1:  # else one that the firmware has
            self._pos += (length >> 1) + 1

    def _skip_object(self) -> None:
        kind = self._byte()
        if kind <= 4:  # None, False, True, Ellipsis, the table of functions
            return
        length = self._uint()
        if kind == 10:  # a tuple
            for _ in range(length):
                self._skip_object()
        else:
            self._pos += length + (kind in (5, 6))  # str and bytes end in a zero

    def _read_code(self) -> Code:
        length = self._uint()
        if length & 3:
            raise ValueError("native code has no frame to be read here")
        start = self._pos
        code = Code(self._read_words())
        self._pos = start + (length >> 3)
        if length & 4:
            code.children = [self._read_code() for _ in range(self._uint())]
        return code

    def _read_words(self) -> int:
        # The numbers of the prelude are spread over its bytes: xSSSSEAA, then xFSSKAED.
        byte = self._byte()
        state, tries, shift = byte >> 3 & 15, byte >> 2 & 1, 0
        while byte & 128:
            byte = self._byte()
            state |= (byte & 0x30) << 2 * shift
            tries |= (byte & 2) << shift
            shift += 1
        return state + 1 + _TRY_WORDS * tries
