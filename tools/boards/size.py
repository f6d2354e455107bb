"""Bytecode per module against its budget, and heap after import on a real 32-bit port.

Sizes are of the .mpy files for armv6m; they hold no native code, so they are the
same for every architecture.  The last commit is compiled the same way.
"""

import ast
import io
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools import archives
from tools.micropython import choose
from tools.project import ROOT

from .compact.reading import own_imports
from .compile import compile_file, compile_library, library_sources
from .errors import BoardError
from .places import LIBRARY
from .romfs import make_romfs

_ARCH = "armv6m"
# What every user of the client imports, and what the journal adds; bytes of .mpy.
BUDGETS = {"core": 12000, "journal": 7000}
# The same as `make build` makes it for boards.
BUILT_BUDGETS = {"core": 10000}
_HEAP_BYTES = 256 * 1024
FORMS = (".py", ".mpy", "ROMFS")

# Prints the heap that stays in use for `import umqtt31`.
_MEASURE = """\
import gc, sys
{prepare}
sys.path[:] = [{path!r}]
gc.collect()
before = gc.mem_alloc()
import umqtt31
{also}
gc.collect()
print(gc.mem_alloc() - before)
"""
_MOUNT = """\
import vfs
with open({image!r}, "rb") as file:
    _image = file.read()
vfs.mount(vfs.VfsRom(memoryview(_image)), "/rom")
"""


@dataclass(frozen=True)
class Module:
    """One module: bytes now and in the last commit (None: it was not there)."""

    name: str
    group: str
    bytes: int
    before: int | None


def groups(library=LIBRARY):
    """{module: budget it counts against}: what `client` imports, what `journal` adds, the rest.

    Only imports at the top of a module count; those inside functions are for options.
    """
    imports = {path.stem: _imports_of(path) for path in library_sources(library)}
    core = _closure("client", imports)
    journal = (_closure("journal", imports) | {"opening"}) - core  # which opens every journal
    return {
        name: "core" if name in core else "journal" if name in journal else "extra"
        for name in imports
    }


def _imports_of(path):
    # The library's own modules that are imported at the top of this one.
    return {module for module, _, _ in own_imports(ast.parse(path.read_text()).body)}


def _closure(start, imports):
    found, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name in imports and name not in found:
            found.add(name)
            waiting += imports[name]
    return found


def measure_modules():
    """The library's modules with their sizes, those of the last commit beside them."""
    now = sizes(LIBRARY)
    before = _committed_sizes()
    group = groups()
    return [Module(name, group[name], now[name], before.get(name)) for name in now]


def group_totals(modules):
    """{group: (bytes now, bytes before)} of all groups."""
    totals = {}
    for module in modules:
        now, before = totals.get(module.group, (0, 0))
        totals[module.group] = (now + module.bytes, before + (module.before or 0))
    return totals


def measure_built():
    """{group: bytes} of the library as boards get it: in fewer files, with short names."""
    group = groups() | {"__init__": "core"}
    totals = dict.fromkeys(("core", "journal"), 0)
    with tempfile.TemporaryDirectory() as folder:
        compile_library(Path(folder), _ARCH)
        for path in Path(folder).glob("*.mpy"):
            # Other modules of the core are there to be imported by name and load nothing.
            if path.stem == "__init__" or group[path.stem] == "journal":
                totals[group[path.stem]] += path.stat().st_size
    return totals


def over_budget(modules, built):
    """One line for each budget that is exceeded; `built` as of `measure_built()`."""
    found = [(name, now, BUDGETS.get(name)) for name, (now, _) in group_totals(modules).items()]
    found += [(f"{name} as boards get it", built[name], BUILT_BUDGETS.get(name)) for name in built]
    return [
        f"{name}: {now:,} bytes, budget {limit:,}"
        for name, now, limit in found
        if limit
        if now > limit
    ]


def measure_heap(also="", is_built=False):
    """{form: bytes} that `import umqtt31` keeps on the heap of a 32-bit port, per form.

    `also` is a further line of Python whose heap counts, e.g. importing the journal;
    `is_built`: as boards get the library, which is no .py.
    """
    interpreter = choose(bits=32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = folder / "umqtt31.romfs"
        compile_library(folder / "mpy/umqtt31", _ARCH, is_plain=not is_built)
        shutil.copytree(LIBRARY, folder / "py/umqtt31")
        image.write_bytes(
            make_romfs(
                {
                    f"lib/umqtt31/{path.name}": path.read_bytes()
                    for path in (folder / "mpy/umqtt31").iterdir()
                }
            )
        )
        where = {".py": f"{folder}/py", ".mpy": f"{folder}/mpy", "ROMFS": "/rom/lib"}
        return {
            form: _run(
                interpreter,
                _MEASURE.format(
                    path=where[form],
                    also=also,
                    prepare=_MOUNT.format(image=str(image)) if form == "ROMFS" else "",
                ),
            )
            for form in FORMS
            if not (is_built and form == ".py")
        }


def _run(interpreter, program):
    done = interpreter.run(program, heap_bytes=_HEAP_BYTES, micropypath=[])
    if done.returncode:
        raise BoardError(f"MicroPython: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout)


def sizes(library):
    """{module: bytes of .mpy} of the library in that folder."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for source in library_sources(library):
            target = Path(folder) / f"{source.stem}.mpy"
            compile_file(source, target, _ARCH)
            found[source.stem] = target.stat().st_size
        return found


def _committed_sizes():
    # Empty outside a git checkout, or before the first commit.
    command = ["git", "-C", str(ROOT), "archive", "HEAD", str(LIBRARY.relative_to(ROOT))]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archives.unpack(archive, folder)
        return sizes(Path(folder) / LIBRARY.relative_to(ROOT))
