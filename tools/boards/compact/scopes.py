"""What a name in Python source stands for: a local, something of a class, or of a module.

`Scoped` walks a tree as `ast.NodeTransformer` does and asks its subclass for the new
names; `bound_in()` says which names a scope makes.
"""

import ast
from dataclasses import dataclass, field

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Scope:
    """One function, class or comprehension; `renamed` are the new names of arguments."""

    node: ast.AST
    names: set
    outside: set = field(default_factory=set)  # said to be global
    renamed: dict = field(default_factory=dict)

    @property
    def is_class(self):
        return isinstance(self.node, ast.ClassDef)


def bound_in(node):
    """-> (names that the scope `node` makes, names that it says are global)."""
    finder = _Binder()
    if isinstance(node, _FUNCTIONS):
        finder.names |= {one.arg for one in arguments_of(node)}
    if isinstance(node, _COMPREHENSIONS):
        for generator in node.generators:
            finder.visit(generator.target)
    else:
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        for one in body:
            finder.visit(one)
    return finder.names - finder.outside - finder.around, finder.outside


def arguments_of(node):
    """-> the `ast.arg`s of a function, in the order of its head."""
    args = node.args
    more = [one for one in (args.vararg, args.kwarg) if one]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]


class _Binder(ast.NodeVisitor):
    # Names bound in one scope, not in those inside it.

    def __init__(self):
        self.names = set()
        self.outside = set()
        self.around = set()

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_FunctionDef(self, node):
        self.names.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node):
        pass

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda

    def visit_Global(self, node):
        self.outside |= set(node.names)

    def visit_Nonlocal(self, node):
        self.around |= set(node.names)

    def visit_ExceptHandler(self, node):
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node):
        self.names.add(node.asname or node.name.partition(".")[0])


class Scoped(ast.NodeTransformer):
    """A subclass overrides what it wants to know or to change; as it is, nothing changes.

    `scopes` are those around the node, innermost last.
    """

    def __init__(self):
        self.scopes = []

    # --- for subclasses -------------------------------------------------------------

    def global_name(self, name, node):
        """A global or builtin -> its new name, or an expression in its place."""
        return name

    def attribute(self, name, node):
        """A method, something of a class's body, or what follows a dot -> its new name."""
        return name

    def enter_function(self, scope):
        """A function begins: its arguments may be put to `scope.renamed`."""

    def enter_definition(self, node, name):
        """A def or class begins, called `name` in the source."""

    # --- names ------------------------------------------------------------------------

    def find(self, name):
        """-> the Scope that a name belongs to, None for the module or Python itself."""
        for scope in reversed(self.scopes):
            if scope.is_class and scope is not self.scopes[-1]:
                continue
            if name in scope.outside:
                return None
            if name in scope.names:
                return scope
        return None

    def _new_name(self, name, node):
        scope = self.find(name)
        if scope is None:
            return self.global_name(name, node)
        if scope.is_class:
            return self.attribute(name, node)
        return scope.renamed.get(name, name)

    def visit_Name(self, node):
        new = self._new_name(node.id, node)
        if isinstance(new, ast.AST):
            return new
        node.id = new
        return node

    def visit_Attribute(self, node):
        node.value = self.visit(node.value)
        node.attr = self.attribute(node.attr, node)
        return node

    def visit_Global(self, node):
        node.names = [self.global_name(name, node) for name in node.names]
        return node

    def visit_Nonlocal(self, node):
        node.names = [self._new_name(name, node) for name in node.names]
        return node

    def visit_ExceptHandler(self, node):
        if node.name:
            node.name = self._new_name(node.name, node)
        return self.generic_visit(node)

    # --- scopes -----------------------------------------------------------------------

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        self._visit_defaults(node.args)
        self.enter_definition(node, node.name)
        node.name = self._new_name(node.name, node)
        self._visit_function(node)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self._visit_defaults(node.args)
        self._visit_function(node)
        return node

    def _visit_defaults(self, args):
        args.defaults = [self.visit(one) for one in args.defaults]
        args.kw_defaults = [one and self.visit(one) for one in args.kw_defaults]

    def _visit_function(self, node):
        scope = Scope(node, *bound_in(node))
        self.enter_function(scope)
        self.scopes.append(scope)
        for one in arguments_of(node):
            one.arg = scope.renamed.get(one.arg, one.arg)
        self._visit_body(node)
        self.scopes.pop()

    def _visit_body(self, node):
        if isinstance(node.body, list):
            new = [self.visit(one) for one in node.body]
            node.body = [left for one in new for left in (one if isinstance(one, list) else [one])]
        else:
            node.body = self.visit(node.body)

    def visit_ClassDef(self, node):
        node.bases = [self.visit(one) for one in node.bases]
        self.enter_definition(node, node.name)
        node.name = self._new_name(node.name, node)
        self.scopes.append(Scope(node, *bound_in(node)))
        self._visit_body(node)
        self.scopes.pop()
        return node

    def visit_ListComp(self, node):
        # The first iterable belongs to the scope outside.
        first = self.visit(node.generators[0].iter)
        node.generators[0].iter = ast.Constant(None)
        self.scopes.append(Scope(node, *bound_in(node)))
        node = self.generic_visit(node)
        self.scopes.pop()
        node.generators[0].iter = first
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


class _Globals(Scoped):
    def __init__(self):
        super().__init__()
        self.found = set()

    def global_name(self, name, node):
        self.found.add(name)
        return name


def globals_of(text):
    """-> the names of the module, and of Python itself, that a source speaks of."""
    walk = _Globals()
    walk.visit(ast.parse(text))
    return walk.found
