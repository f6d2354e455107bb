"""Which names stay: what programs may use, and what comes from outside the library.

Taken from `typings/`, which another test compares with the library; what a program's own
store has to have or may call; the names of Python's and MicroPython's own objects; and
names that stand in strings.
"""

import ast
import asyncio
import builtins
import io
import socket
import ssl
from dataclasses import dataclass, field

from .reading import LinkError
from .scopes import arguments_of

# Classes that are written faces, beside those in typings: what a store has, what it calls.
FACES = {"ram": "RamStore", "recovery": "Recovery"}
# Here a program may give the arguments by name, too.
CALLED_BY_PROGRAMS = ("recovery",)
# What the library defines and MicroPython calls or looks for, by a name that CPython has not.
_OF_MICROPYTHON = ("readblocks", "writeblocks", "ioctl", "readinto", "raw", "server_hostname")


@dataclass
class Public:
    """`names` {module: its public names}; `attributes` that stay if the library has them,
    of which those `written` down here or in the stubs are the library's own; `arguments`
    {function: its arguments, which may be given by name}, whatever class it is of: what
    a private class has under a public name may be handed out in its place."""

    names: dict = field(default_factory=dict)
    attributes: set = field(default_factory=set)
    written: set = field(default_factory=set)
    arguments: dict = field(default_factory=dict)

    def add_function(self, node):
        """Keep the names of this function's arguments."""
        self.arguments.setdefault(node.name, set()).update(one.arg for one in arguments_of(node))


def read_public(typings, modules):
    """What stays, by the stubs in the folder `typings`, for `modules` {name: Module}."""
    public = Public()
    if not (typings / "__init__.pyi").exists():
        raise LinkError(f"no types in {typings}, which say what is public")
    for path in sorted(typings.glob("*.pyi")):
        _read_stub(ast.parse(path.read_text(encoding="utf-8")), path.stem, public)
    for name, class_name in FACES.items():
        if name in modules:
            _read_face(modules[name], class_name, public)
    public.written = public.attributes | set(_OF_MICROPYTHON) | _in_strings(modules)
    public.attributes = public.written | _of_python()
    public.names = {name: names for name, names in public.names.items() if name in modules}
    return public


def _read_stub(tree, module, public):
    names = public.names.setdefault(module, set())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            _read_class(node, public)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
            public.add_function(node)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.ImportFrom) and node.level == 1:
            # Only `import x as x` makes a name the stub's own.
            names |= {alias.name for alias in node.names if alias.asname == alias.name}


def _read_class(tree, public):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            public.attributes.add(node.name)
            public.add_function(node)
        elif isinstance(node, ast.AnnAssign):
            public.attributes.add(ast.unparse(node.target))


def _read_face(module, class_name, public):
    found = [
        node
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and node.name == class_name
    ]
    if not found:
        raise LinkError(f"{module.path.name} has no class {class_name}, the face of a store")
    for node in ast.walk(found[0]):
        if isinstance(node, ast.FunctionDef):
            public.attributes.add(node.name)
            if module.name in CALLED_BY_PROGRAMS:
                public.add_function(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            public.attributes.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            public.attributes |= {node.attr} - {node.attr if node.attr[0] == "_" else ""}


def _of_python():
    # Attributes of whatever Python itself, or one of the modules that boards have, makes.
    names = set()
    for module in (builtins, io, socket, ssl, asyncio):
        names |= set(dir(module))
        for one in vars(module).values():
            if isinstance(one, type):
                names |= set(dir(one))
    return {name for name in names if name[0] != "_" or name[-2:] == "__"}


def _in_strings(modules):
    # For getattr(), and whatever else may be done with a string.
    return {
        node.value
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
