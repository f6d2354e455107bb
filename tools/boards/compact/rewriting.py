"""Writes the library anew: fewer files, short names for what no program asks for."""

import ast
from collections import Counter, defaultdict

from . import names
from .reading import PACKAGE, LinkError, own_imports
from .scopes import Scoped, arguments_of, globals_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Writer:
    """The new sources of `library`; `package` is its name.

    `write()` -> {module: source}.  `functions` [(file, new name, old name, path, line)] of
    all functions and classes, `attributes` {new name: old names}, once that was called.
    """

    def __init__(self, library, package):
        self.library = library
        self.package = package
        self.functions = []
        self._survey()
        self._name_attributes()
        self._name_globals()
        self.keywords = self._survey_of.keywords
        self.argument_names = [*names.OTHERS, *names.UNLIKELY]

    # --- what there is -------------------------------------------------------------------

    def _survey(self):
        self._survey_of = found = _Survey(self.library)
        for name, module in self.library.modules.items():
            found.walk(name, module.tree)
        public = self.library.public
        kept = public.attributes | {one for one in found.defined if one[-2:] == "__"}
        self._renamed = found.defined - kept
        # Attributes that are there anyway: nobody else gets their names.
        self._other_attributes = (set(found.counts) | public.written) - self._renamed

    def _name_attributes(self):
        found = self._survey_of
        wanted = {}
        pools = {}
        public = found.public_families() | {names.EVERYWHERE}
        order = sorted(
            self._renamed,
            key=lambda name: (PACKAGE not in found.homes[name], -found.counts[name], name),
        )
        for name in order:
            groups = {found.family(one) for one in found.owners[name]}
            if name in found.given or not groups:
                groups.add(names.EVERYWHERE)
            is_free = not groups & public
            pools[name] = names.UNLIKELY + names.OTHERS if is_free else names.unlikely()
            wanted[name] = groups | {("functions of", home) for home in found.functions[name]}
        self._holders = defaultdict(set)
        for name in found.functions.keys() - self._renamed:
            self._holders[name] = {("functions of", home) for home in found.functions[name]}
        self._attributes = names.allot(wanted, pools, self._other_attributes, self._holders)
        self.attributes = defaultdict(list)
        for old, new in sorted(self._attributes.items()):
            self.attributes[new].append(old)

    def _name_globals(self):
        library = self.library
        found = self._survey_of
        # symbol: the files that speak of it.
        wanted = defaultdict(set)
        for symbol, homes in found.symbols.items():
            home = library.home(symbol)
            # Functions of a file have names of their own, for tracebacks.
            wanted[symbol] = {*homes, home, ("functions of", home)}
        fixed = {
            symbol: symbol[1]
            for symbol in wanted
            if library.is_public(symbol)
            or symbol[1] == "__getattr__"
            and library.order[library.home(symbol)][-1] == symbol[0]
            or symbol[1] in library.modules[symbol[0]].replaceable
            or library.bindings[symbol[0]][symbol[1]][0] == "external"
        }
        free = {symbol: wanted[symbol] for symbol in sorted(wanted) if symbol not in fixed}
        pools = dict.fromkeys(free, names.HIDDEN)
        self._globals = fixed | names.allot(free, pools, found.plain_names, self._holders)

    # --- names, for the walk ---------------------------------------------------------------

    def attribute(self, name):
        """-> the new name of an attribute."""
        return self._attributes.get(name, name)

    def symbol(self, symbol, home):
        """-> what a symbol is called in the file `home`: a name, or an `ast` value."""
        name = self._globals[symbol]
        is_ours = self.library.home(symbol) == home
        if not is_ours and name in self._taken_in(home):
            return f"_{name}"
        return name

    def _taken_in(self, home):
        return {
            name
            for symbol, name in self._globals.items()
            if self.library.home(symbol) == home and not name.startswith("_")
        }

    def exported(self, symbol):
        """-> its name in the file that holds it."""
        return self._globals[symbol]

    # --- writing ---------------------------------------------------------------------------

    def write(self):
        """-> {module: source}, shells of public modules included."""
        sources = {}
        for home, members in self.library.order.items():
            sources[home] = self._file(home, members)
        for name, public in self.library.public.names.items():
            if self.library.homes[name] != name and name != PACKAGE:
                sources[name] = self._shell(name, public)
        return sources

    def _file(self, home, members):
        body = []
        lines = {}  # of imports, each once
        needed = set()
        for name in members:
            module = self.library.modules[name]
            walk = _Walk(self, name, home)
            walk.visit(module.tree)
            needed |= walk.imported
            for node in module.tree.body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    lines |= dict.fromkeys(_single(node))
                else:
                    body.append(node)
        body = [ast.unparse(ast.fix_missing_locations(node)) for node in body]
        if home == PACKAGE:
            lines["import sys"] = None
            body += self._own_modules()
        text = "\n".join(body) + "\n"
        used = globals_of(text) | self._survey_of.asked_from_outside[home]
        heads = [
            line
            for line in lines
            if not line.startswith("from .") and line.split()[-1].partition(".")[0] in used
        ]
        return "\n".join([*heads, *self._imports(needed, home), text])

    def _own_modules(self):
        # What was loaded with the package is there by its name: `umqtt31.errors`.
        found = [
            name
            for name in sorted(self.library.public.names)
            if self.library.homes[name] == PACKAGE != name
        ]
        if found:
            yield f"{' = '.join(found)} = sys.modules[__name__]"

    def _imports(self, needed, home):
        lines = defaultdict(list)
        aliases = []
        for symbol, asname in sorted(needed, key=str):
            source = self.library.home(symbol) if symbol[1] else self.library.homes[symbol[0]]
            if symbol[1] is None:
                if source == PACKAGE:
                    aliases.append(f"import {self.package} as {asname}")
                else:
                    aliases.append(f"from . import {source} as {asname}")
                continue
            name = self.exported(symbol)
            lines[source].append(name if asname == name else f"{name} as {asname}")
        places = {source: "." if source == PACKAGE else f".{source}" for source in lines}
        return [
            f"from {places[source]} import {', '.join(found)}" for source, found in lines.items()
        ] + aliases

    def _shell(self, module, public):
        found = [name for name in sorted(public) if name in self.library.bindings[module]]
        if "__getattr__" in self.library.bindings[module]:
            found.append("__getattr__")
        needed = {(self.library.symbol(module, name), name) for name in found}
        return "\n".join(self._imports(needed, module)) + "\n"


def _single(node):
    # One line for each name that an import statement makes.
    for alias in node.names:
        asname = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.Import):
            yield f"import {alias.name}{asname}"
        else:
            yield f"from {'.' * node.level}{node.module or ''} import {alias.name}{asname}"


class _Survey(Scoped):
    # What attributes and global names there are, and whose they are.

    def __init__(self, library):
        super().__init__()
        self._library = library
        self.defined = set()  # attributes that the library gives to its own objects
        self.plain_names = set()  # all but attributes, locals too, as they are
        self.given = set()  # attributes given to another object than `self`
        self.owners = defaultdict(set)  # attribute: classes that have or ask for it
        self.functions = defaultdict(set)  # name of a method: files in which there is one
        self.symbols = defaultdict(set)  # files that ask for it
        self.asked_from_outside = defaultdict(set)  # imports that another file looks at
        self.homes = defaultdict(set)  # attribute: files that have it
        self.counts = Counter()  # attribute: places
        self.keywords = set()  # by which arguments are given
        self._parents = {}

    def walk(self, module, tree):
        self._module = module
        self._home = self._library.homes[module]
        self.plain_names |= set(self._library.bindings[module]) | {
            one.arg if isinstance(one, ast.arg) else one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name | ast.arg)
        }
        self.visit(tree)

    def public_families(self):
        """-> families with a class from which programs may derive."""
        return {self.family(one) for one in self._parents if self._library.is_public(one)}

    def family(self, symbol):
        """-> the symbol that stands for all classes that inherit from one another."""
        while self._parents[symbol] != symbol:
            symbol = self._parents[symbol]
        return symbol

    def global_name(self, name, node):
        symbol = self._library.resolve(self._module, name)
        is_load = isinstance(getattr(node, "ctx", None), ast.Load)
        if symbol and symbol[1] and not (is_load and symbol in self._library.constants):
            self.symbols[symbol].add(self._home)
        return name

    def attribute(self, name, node):
        self.homes[name].add(self._home)
        self.counts[name] += 1
        if not isinstance(node, ast.Attribute):
            scope = self.scopes[-1]
            self._define(name, self._class_of(scope))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions[name].add(self._home)
            return name
        is_self = isinstance(node.value, ast.Name) and self._self_class(node.value.id)
        if is_self:
            self.owners[name].add(is_self)
        if not isinstance(node.ctx, ast.Load):
            self.defined.add(name)
            if not is_self:
                self.given.add(name)
        self._ask_alias(name, node)
        return name

    def _ask_alias(self, name, node):
        # Something of another module, by the name of the module.
        if isinstance(node.value, ast.Name) and self.find(node.value.id) is None:
            found = self._library.resolve(self._module, node.value.id)
            if found and found[1] is None:
                symbol = self._library.resolve(found[0], name)
                if symbol:
                    self.symbols[symbol].add(self._home)
                else:
                    self.asked_from_outside[self._library.homes[found[0]]].add(name)

    def _define(self, name, owner):
        self.defined.add(name)
        self.owners[name].add(owner)

    def _class_of(self, scope):
        return self._module, scope.node.name

    def _self_class(self, name):
        # -> the class whose method's first argument has that name, here.
        for outer, inner in zip(reversed(self.scopes[:-1]), reversed(self.scopes)):
            if name in inner.names:
                if outer.is_class and not isinstance(inner.node, ast.Lambda):
                    args = arguments_of(inner.node)
                    return self._class_of(outer) if args and args[0].arg == name else None
                return None
        return None

    def enter_definition(self, node, name):
        if isinstance(node, ast.ClassDef):
            symbol = self._module, name
            self._parents[symbol] = symbol
            for base in node.bases:
                parent = self._symbol_of(base)
                if parent:
                    self._parents[symbol] = parent

    def _symbol_of(self, base):
        if isinstance(base, ast.Name):
            return self._library.resolve(self._module, base.id)
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            found = self._library.resolve(self._module, base.value.id)
            if found and found[1] is None:
                return self._library.symbol(found[0], base.attr)
        return None

    def visit_keyword(self, node):
        if node.arg:
            self.keywords.add(node.arg)
        return self.generic_visit(node)

    def visit_ImportFrom(self, node):
        if self.scopes:
            for module, name, _ in own_imports([node]):
                if name:
                    symbol = self._library.symbol(module, name)
                    if symbol not in self._library.constants:
                        self.symbols[symbol].add(self._library.home(symbol))
        return node


class _Walk(Scoped):
    # Gives one module's tree the new names.

    def __init__(self, writer, module, home):
        super().__init__()
        self._writer = writer
        self._library = writer.library
        self._module = module
        self._home = home
        self.imported = set()  # (symbol, name here) from other files
        self._path = []

    def visit_Module(self, node):
        new = []
        for one in node.body:
            found = self.visit(one)
            new += found if isinstance(found, list) else [found] if found else []
        node.body = new
        return node

    def global_name(self, name, node):
        symbol = self._library.resolve(self._module, name)
        if not symbol:
            return name
        if symbol[1] is None:
            if self._library.homes[symbol[0]] == self._home:
                raise LinkError(f"{self._module}.py: module {name} is used as a value")
            self.imported.add((symbol, name))
            return name
        if symbol in self._library.constants and isinstance(getattr(node, "ctx", None), ast.Load):
            return _literal(self._library.constants[symbol])
        return self._global(symbol)

    def _global(self, symbol):
        new = self._writer.symbol(symbol, self._home)
        if self._library.home(symbol) != self._home:
            self.imported.add((symbol, new))
        return new

    def attribute(self, name, node):
        return self._writer.attribute(name)

    def visit_Attribute(self, node):
        symbol = self._of_module(node)
        if symbol is None:
            return super().visit_Attribute(node)
        module, found = symbol
        if found in self._library.constants:
            return _literal(self._library.constants[found])
        if self._library.homes[module] == self._home:
            return ast.Name(self._global(found) if found else node.attr, node.ctx)
        self.visit(node.value)  # imports it
        node.attr = self._writer.exported(found) if found else node.attr
        return node

    def _of_module(self, node):
        # -> (module, symbol or None) of something of a module by the module's name.
        if isinstance(node.value, ast.Name) and self.find(node.value.id) is None:
            found = self._library.resolve(self._module, node.value.id)
            if found and found[1] is None:
                return found[0], self._library.resolve(found[0], node.attr)
        return None

    def visit_Call(self, node):
        # getattr(module, name), where the module is part of this file: by its function.
        if ast.unparse(node.func) == "getattr" and isinstance(node.args[0], ast.Name):
            found = self._library.resolve(self._module, node.args[0].id)
            if found and found[1] is None and self._library.homes[found[0]] == self._home:
                asked = self._library.symbol(found[0], "__getattr__")
                return ast.Call(
                    ast.Name(self._global(asked), ast.Load()), [self.visit(node.args[1])], []
                )
        return self.generic_visit(node)

    def visit_ImportFrom(self, node):
        if not self.scopes:
            return node
        kept = []
        for module, name, asname in own_imports([node]):
            if name is None:
                kept.append(node)
                continue
            symbol = self._library.symbol(module, name)
            source = self._library.home(symbol)
            if symbol in self._library.constants:
                value = _literal(self._library.constants[symbol])
            elif source == self._home:
                value = ast.Name(self._writer.symbol(symbol, self._home), ast.Load())
            else:
                place = None if source == PACKAGE else source
                alias = ast.alias(self._writer.exported(symbol), asname)
                kept.append(ast.ImportFrom(place, [alias], 1))
                continue
            kept.append(ast.Assign([ast.Name(asname, ast.Store())], value, lineno=0))
        return kept or node

    def visit_FunctionDef(self, node):
        self._path.append(node.name)
        node = super().visit_FunctionDef(node)
        self._path.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self._path.append(node.name)
        node = super().visit_ClassDef(node)
        self._path.pop()
        return node

    def enter_definition(self, node, name):
        self._old_name = name

    def enter_function(self, scope):
        node = scope.node
        is_lambda = isinstance(node, ast.Lambda)
        self._note(node, "<lambda>" if is_lambda else node.name)
        public = self._library.public.arguments.get("" if is_lambda else self._old_name, set())
        if not is_lambda and self._old_name == "__init__" and self._is_private_class():
            public = set()
        # What arguments are called is in the file, too: take what is there anyway.
        inside = {
            one
            for part in ast.walk(node)
            for one in (getattr(part, "id", None), getattr(part, "arg", None))
        }
        inside |= {new for outer in self.scopes for new in outer.renamed.values()}
        free = (one for one in self._writer.argument_names if one not in inside)
        kept = public | self._writer.keywords | {"self"}
        scope.renamed = {one.arg: next(free) for one in arguments_of(node) if one.arg not in kept}

    def _is_private_class(self):
        return not self._library.is_public((self._module, self._path[0]))

    def _note(self, node, new):
        path = self._library.modules[self._module].path
        old = ".".join([*self._path, new] if new[0] == "<" else self._path)
        self._writer.functions.append((self._home, new, old, path, node.lineno))

    def visit_ListComp(self, node):
        self._note(node, f"<{type(node).__name__.lower()}>")
        return super().visit_ListComp(node)

    def visit_GeneratorExp(self, node):
        self._note(node, "<genexpr>")
        return super().visit_ListComp(node)

    visit_SetComp = visit_DictComp = visit_ListComp


def _literal(value):
    return ast.parse(repr(value), mode="eval").body
