"""Reads the library's modules and leaves out what no board runs.

What goes: docstrings, asserts, branches for CPython.  Knows Python, not the library.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "__init__"
_FOR_CPYTHON = "cpython"


class LinkError(Exception):
    """The library does something that is not understood here; says what and where."""


@dataclass
class Module:
    """One source file: `name` as in `from .name import …`.

    `replaceable`: names that stand for something of the platform, since under CPython the
    library puts something of its own there.
    """

    name: str
    path: Path
    tree: ast.Module
    replaceable: frozenset


def read_modules(sources):
    """{name: Module} of the paths, without what a board does not run."""
    modules = {}
    for path in sources:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = own_imports(statements(tree.body))
        replaceable = frozenset(name for module, name, _ in imported if module == _FOR_CPYTHON)
        modules[path.stem] = Module(path.stem, path, _Pruner().visit(tree), replaceable)
    return modules


def statements(body):
    """All statements of a module, those in `if`, `try` and loops too, none of functions."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body)


def own_imports(nodes):
    """(module, name, as what) of the imports from the library among `nodes`; the name is
    None where the module itself is meant."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                if node.module:
                    yield node.module, alias.name, alias.asname or alias.name
                else:
                    yield alias.name, None, alias.asname or alias.name


class _Pruner(ast.NodeTransformer):
    # Leaves a tree that means the same under MicroPython with -O3.

    def visit_Compare(self, node):
        name = ast.unparse(node.left)
        if name == "sys.implementation.name" and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            is_other = ast.literal_eval(node.comparators[0]) != "micropython"
            return ast.Constant(is_other != isinstance(node.ops[0], ast.Eq))
        return self.generic_visit(node)

    def visit_Name(self, node):
        return ast.Constant(False) if node.id == "__debug__" else node

    def visit_UnaryOp(self, node):
        node = self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BoolOp(self, node):
        node = self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)
        values = []
        for value in node.values:
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                if value.value is decides:
                    values.append(value)
                    break
            else:
                values.append(value)
        if len(values) > 1:
            node.values = values
            return node
        return values[0] if values else ast.Constant(not decides)

    def visit_If(self, node):
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant):
            chosen = node.body if node.test.value else node.orelse
            return [left for one in chosen for left in _as_list(self.visit(one))]
        return self.generic_visit(node)

    def visit_IfExp(self, node):
        node = self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_Assert(self, node):
        return None

    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def generic_visit(self, node):
        node = super().generic_visit(node)
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
        return node


def _as_list(node):
    return node if isinstance(node, list) else [] if node is None else [node]
