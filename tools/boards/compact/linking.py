"""Which modules become one file, and what a name of a module stands for in the library.

What the package always loads becomes one module, the package itself.  A private module
that only one other needs goes into that one.  Public modules that went into another
remain as shells, which load nothing of their own.
"""

import ast
import copy

from .reading import PACKAGE, LinkError, own_imports, statements
from .scopes import Scoped

_LITERALS = (int, bytes, str, type(None))


class Library:
    """All modules, and what their names mean.  A symbol is (module, name) where it is made.

    `homes` {module: module that it goes into}; `order` {home: its modules, in the order
    in which they are loaded}; `constants` {symbol: value} of what need not be looked up.
    """

    def __init__(self, modules, public):
        self.modules = modules
        self.public = public
        self.homes, self.order = _arrange(modules, public)
        self.bindings = {name: _bindings(module.tree) for name, module in modules.items()}
        _drop_preloading(modules[PACKAGE].tree, self.homes)
        self.constants = {}
        for name in modules:
            self._find_constants(name)
        self._drop_unused()

    def resolve(self, module, name):
        """-> the symbol that a global name of a module means; (module, None) for a module of
        the library; None for Python's names and what is imported from elsewhere."""
        kind, target = self.bindings[module].get(name, (None, None))
        if kind == "own":
            return module, name
        if kind == "from":
            return self.symbol(*target)
        return (target, None) if kind == "module" else None

    def symbol(self, module, name):
        """-> the symbol that `from .module import name` means."""
        if module not in self.modules:
            raise LinkError(f"no module {module} in the library, or it is not for boards")
        found = self.resolve(module, name)
        if not found:
            raise LinkError(f"{module}.py does not define {name}")
        return found

    def home(self, symbol):
        """-> the module that holds the symbol at last."""
        return self.homes[symbol[0]]

    def is_public(self, symbol):
        """May a program ask for it where it is defined?"""
        module, name = symbol
        return name in self.public.names.get(module, ()) or module == PACKAGE and name[:2] == "__"

    def uses(self):
        """-> {symbol: how often it is used}, names of attributes that are asked for."""
        finder = _Uses(self)
        for name, module in self.modules.items():
            finder.walk(name, module.tree)
        return finder.symbols, finder.attributes

    # --- constants, and what nobody uses --------------------------------------------------

    def _find_constants(self, module):
        for node in self.modules[module].tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                is_once = self.bindings[module].get(name) == ("own", True)
                if is_once and len(node.targets) == 1 and name[:2] != "__":
                    try:
                        self.constants[module, name] = self._value(module, node.value)
                    except ValueError:
                        pass

    def _value(self, module, node):
        # Of what cannot change.  Raises ValueError.
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "const":
            return self._value(module, node.args[0])
        if isinstance(node, ast.Constant) and isinstance(node.value, _LITERALS):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self._value(module, one) for one in node.elts)
        if isinstance(node, ast.Name):
            symbol = self.resolve(module, node.id)
            if symbol in self.constants:
                return self.constants[symbol]
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
            if all(type(self._value(module, one)) is int for one in parts):
                inlined = _Inlined(lambda name: self._value(module, name)).visit(
                    copy.deepcopy(node)
                )
                return eval(ast.unparse(inlined), {"__builtins__": {}})
        raise ValueError

    def _drop_unused(self):
        is_changed = True
        while is_changed:
            symbols, attributes = self.uses()
            # What costs more than a number is written where it is used, if that is one place.
            self.constants = {
                symbol: value
                for symbol, value in self.constants.items()
                if type(value) in (int, type(None)) or symbols.get(symbol, 0) < 2
            }
            dropper = _Dropper(self, symbols, attributes)
            for name, module in self.modules.items():
                module.tree.body = dropper.left_of(name, module.tree.body)
            is_changed = dropper.is_changed


class _Inlined(ast.NodeTransformer):
    def __init__(self, value):
        self._value = value

    def visit_Name(self, node):
        return ast.Constant(self._value(node))

    def visit_Call(self, node):
        return ast.Constant(self._value(node))


class _Uses(Scoped):
    # Counts what the modules use of one another.

    def __init__(self, library):
        super().__init__()
        self._library = library
        self.symbols = {}
        self.attributes = set()

    def walk(self, module, tree):
        self._module = module
        self.visit(tree)

    def global_name(self, name, node):
        symbol = self._library.resolve(self._module, name)
        is_load = not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load)
        if (
            symbol
            and is_load
            and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ):
            self._count(symbol)
        return name

    def _count(self, symbol):
        self.symbols[symbol] = self.symbols.get(symbol, 0) + 1

    def attribute(self, name, node):
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                self.attributes.add(name)
            if isinstance(node.value, ast.Name) and self.find(node.value.id) is None:
                found = self._library.resolve(self._module, node.value.id)
                if found and found[1] is None and name in self._library.bindings[found[0]]:
                    symbol = self._library.resolve(found[0], name)
                    if symbol:
                        self._count(symbol)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.attributes.add(name)  # in the body of a class
        return name

    def visit_ImportFrom(self, node):
        if self.scopes:
            for module, name, _ in own_imports([node]):
                self._count(self._library.symbol(module, name) if name else (module, None))
        return node


class _Dropper:
    # Leaves out functions, classes and constants of the library that nothing asks for.

    def __init__(self, library, symbols, attributes):
        self._library = library
        self._symbols = symbols
        self._attributes = attributes | library.public.attributes
        self.is_changed = False

    def left_of(self, module, body):
        left = []
        for node in body:
            if self._is_unused(module, node):
                self.is_changed = True
                continue
            if isinstance(node, ast.ClassDef) and not self._library.is_public((module, node.name)):
                self._drop_methods(node)
            left.append(node)
        return left

    def _is_unused(self, module, node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            symbol = module, node.name
            is_used = node.name == "__getattr__" or self._symbols.get(symbol)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            symbol = module, node.targets[0].id
            # A constant is written wherever it is used.
            is_used = symbol not in self._library.constants
        else:
            return False
        return not is_used and not self._library.is_public(symbol)

    def _drop_methods(self, tree):
        left = []
        for node in tree.body:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if (
                is_function
                and node.name not in self._attributes
                and not (node.name[:2] == "__" and node.name[-2:] == "__")
            ):
                self.is_changed = True
            else:
                left.append(node)
        tree.body = left or [ast.Pass()]


def _bindings(tree):
    # {global name: (kind, target)}; kinds: own (target: is it bound just once?), from,
    # module, external.
    found = {}

    def bind(name, kind, target=None):
        if name in found and found[name] != (kind, target):
            # Bound twice, once by an import: the import's name must stay.
            is_external = "external" in (kind, found[name][0])
            kind, target = ("external", None) if is_external else ("own", False)
        elif name in found and kind == "own":
            target = False
        found[name] = kind, target

    for node in statements(tree.body):
        for name in _names_of(node):
            bind(name, "own", True)
        for module, name, asname in own_imports([node]):
            bind(asname, *(("from", (module, name)) if name else ("module", module)))
        if isinstance(node, ast.Import) or isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                bind(alias.asname or alias.name.partition(".")[0], "external")
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found |= dict.fromkeys(node.names, ("own", False))
    return found


def _names_of(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [node.target]
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _arrange(modules, public):
    """-> (homes, order), see Library."""
    early = {
        name: [one[0] for one in own_imports(statements(module.tree.body))]
        for name, module in modules.items()
    }
    every = {
        name: [one[0] for one in own_imports(ast.walk(module.tree))]
        for name, module in modules.items()
    }
    core = _reached(PACKAGE, early)
    homes = dict.fromkeys(core, PACKAGE)
    left = [name for name in sorted(modules) if name not in homes]
    for name in left:
        homes[name] = name
        owners = [one for one in left if name in early[one]]
        if name not in public.names and owners:
            # Is there another way to it than through the first of them that is public?
            owner = next((one for one in owners if one in public.names), owners[0])
            doors = {*public.names, PACKAGE} - {owner}
            if not any(name in _reached(door, every, owner) for door in doors):
                homes[name] = owner
    order = {}
    for name in (*core, *left):
        order.setdefault(homes[name], [])
    for home, members in order.items():
        members += [one for one in _reached(home, early) if homes[one] == home]
    return homes, order


def _reached(start, imports, without=None):
    # What is loaded with `start`, what is needed first before what needs it.
    found = []
    seen = {without}

    def go(name):
        if name not in seen and name in imports:
            seen.add(name)
            for one in imports[name]:
                go(one)
            found.append(name)

    go(start)
    return found


def _drop_preloading(tree, homes):
    # The package may load its modules one by one, for the sake of the heap: here they are
    # one.
    left = []
    for node in tree.body:
        words = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
        is_loading = isinstance(node, ast.For | ast.Expr) and any(
            one.id == "__import__" for one in calls
        )
        if not (
            is_loading and all(homes.get(one) == PACKAGE for one in words if type(one) is str)
        ):
            left.append(node)
    tree.body = left
