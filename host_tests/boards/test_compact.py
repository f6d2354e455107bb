"""The library as boards get it: smaller, with every public name, and a way back to its lines."""

import ast
import itertools
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tools.boards.cli import cli
from tools.boards.compact import LinkError, Map, compact
from tools.boards.compact.names import HIDDEN, OTHERS, UNLIKELY
from tools.boards.compile import MAP, build_tree, compact_library, compile_file, compile_library
from tools.boards.places import LIBRARY, TYPINGS
from tools.boards.profile import load_profile
from tools.micropython import choose
from tools.project import ROOT

STUBS = [path for path in sorted(TYPINGS.glob("*.pyi")) if path.stem != "_types"]
# What programs and ports have or call, whatever the library calls its own things.
FACES = """
open put get remove recover renew pubrec hold release online commit sync clear is_deferred
level buffers used restore restore_held restore_run restore_last_id restore_clean
readinto write close readblocks writeblocks ioctl wrap_socket raw
""".split()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the compiled library."""
    folder = tmp_path_factory.mktemp("built")
    compile_library(folder / "umqtt31", "armv6m")
    return folder


def micropython(program, *folders):
    """-> what the program prints on a 32-bit MicroPython; both outputs."""
    done = choose(bits=32).run(program, micropypath=folders)
    return done.stdout + done.stderr


def classes_in(tree):
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def functions_in(tree):
    return [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def heads_of(tree):
    """{function or Class.function: names of its arguments}."""
    heads = {node.name: node for node in functions_in(tree)}
    for one in classes_in(tree):
        heads |= {f"{one.name}.{node.name}": node for node in functions_in(one)}
    return {
        name: [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
        for name, node in heads.items()
    }


# --- public names ------------------------------------------------------------------------


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_public_names_are_there_on_micropython(built, stub):
    tree = ast.parse(stub.read_text())
    module = "umqtt31" if stub.stem == "__init__" else f"umqtt31.{stub.stem}"
    names = [node.name for node in (*classes_in(tree), *functions_in(tree))]
    names += [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]
    names += [
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    methods = [
        f"{one.name}.{node.name}"
        for one in classes_in(tree)
        for node in functions_in(one)
        if not node.decorator_list and node.name[:2] != "__"
    ]
    program = f"import {module} as m\n"
    program += "".join(f"m.{name}\n" for name in names + methods)
    assert names
    assert micropython(program + "print('all')", built) == "all\n"


def test_error_codes_are_there_by_every_way(built):
    codes = ast.parse((TYPINGS / "codes.pyi").read_text())
    names = [node.target.id for node in codes.body if isinstance(node, ast.AnnAssign)]
    program = "import umqtt31, umqtt31.codes, umqtt31.errors\n" + "".join(
        f"assert umqtt31.{name} == umqtt31.codes.{name} == umqtt31.errors.{name}\n"
        for name in names
    )
    program += "try:\n    umqtt31.text_of\nexcept AttributeError as error:\n    print(error)"
    assert "FULL" in names
    assert micropython(program, built) == "text_of\n"


def test_no_public_attribute_has_another_name():
    renamed = set(itertools.chain(*compact_library().map.attributes.values()))
    public = {
        node.target.id if isinstance(node, ast.AnnAssign) else node.name
        for stub in TYPINGS.glob("*.pyi")
        for one in classes_in(ast.parse(stub.read_text()))
        for node in one.body
        if isinstance(node, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(renamed) > 100, "does this test still look in the right place?"
    assert not renamed & (public | set(FACES))


def test_attributes_of_subclasses_do_not_meet_ours(built):
    """A program's own names are words or letters; ours are neither."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    words = [
        *letters,
        *(f"_{a}" for a in letters),
        *(f"_{a}{b}" for a in letters for b in letters),
    ]
    words += "key value values items index count start stop end step id type list set".split()
    program = f"""\
from umqtt31 import MQTTClient, Journal, simple, robust, aio
found = dir(MQTTClient) + list(MQTTClient("a", "b").__dict__) + dir(Journal)
for module in (simple, robust, aio):
    found += dir(module.MQTTClient) + list(module.MQTTClient("a", "b").__dict__)
print(len(found) > 100, [one for one in {words!r} if one in found])
"""
    program = "import umqtt31.simple, umqtt31.robust, umqtt31.aio\n" + program
    assert micropython(program, built) == "True []\n"


def test_arguments_of_public_functions_keep_their_names():
    sources = compact_library().sources
    package = heads_of(ast.parse(sources["__init__"]))
    seen = 0
    for stub in STUBS:
        own = package | heads_of(ast.parse(sources[stub.stem]))
        for name, arguments in heads_of(ast.parse(stub.read_text())).items():
            if name in own and arguments:
                # A stub may say less than the module takes, as (*args, **options).
                kept = [one for one in own[name] if one in arguments]
                assert kept == own[name][: len(kept)], (stub.name, name)
                assert kept == arguments or len(own[name]) < 2, (stub.name, name)
                seen += 1
    assert seen > 40


def test_messages_and_checks_are_all_there():
    def texts(trees):
        return {
            node.value
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        }

    def raises(trees):
        return sum(isinstance(node, ast.Raise) for tree in trees for node in ast.walk(tree))

    before = [
        ast.parse(path.read_text())
        for path in LIBRARY.glob("*.py")
        if path.stem not in ("cpython", "packettypes")
    ]
    after = [ast.parse(text) for text in compact_library().sources.values()]
    plain = {text for text in texts(before) if "\n" not in text}
    docstrings = {
        ast.get_docstring(node, clean=False)
        for tree in before
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert texts(after) == plain - docstrings
    assert raises(after) == raises(before)


def test_modules_that_come_with_the_package_are_there_by_name(built):
    program = """\
import umqtt31
from umqtt31 import client, errors, message
print(client.MQTTClient is umqtt31.MQTTClient is umqtt31.client.MQTTClient)
print(errors.MQTTError is umqtt31.MQTTError, errors.FULL == umqtt31.codes.FULL)
import umqtt31.errors, umqtt31.message
from umqtt31.client import MQTTClient
print(umqtt31.errors.MQTTError is errors.MQTTError, umqtt31.message.Message is message.Message)
print(MQTTClient is client.MQTTClient)
"""
    assert set(micropython(program, built).split()) == {"True"}


def test_modules_that_are_loaded_later_find_room_in_the_package(built):
    """Its table of names would else grow at connect(), in a heap that is full of holes, and
    the smallest heap would be 1,500 bytes larger."""
    program = """\
import micropython
import umqtt31
micropython.heap_lock()
umqtt31.giveup = umqtt31.codes = umqtt31.reasons = umqtt31.recovery = None
micropython.heap_unlock()
print("room")
"""
    assert micropython(program, built) == "room\n"


# --- the build -----------------------------------------------------------------------------


def test_build_is_the_same_in_every_run(tmp_path):
    program = (
        "import hashlib, sys; from tools.boards.compile import compact_library as c;"
        "made = c(); made.map.save(__import__('pathlib').Path(sys.argv[1]));"
        "print(hashlib.sha256(repr(made.sources).encode()).hexdigest())"
    )
    found = set()
    for seed in ("1", "2"):
        path = tmp_path / seed
        done = subprocess.run(
            [sys.executable, "-c", program, path],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add((done.stdout, path.read_bytes()))
    assert len(found) == 1


def test_build_without_and_with_debug(tmp_path):
    profile = load_profile("desk")
    small, plain = tmp_path / "small" / "fs", tmp_path / "plain" / "fs"
    build_tree(profile, small)
    build_tree(profile, plain, is_plain=True)
    assert Map.load(small.with_name(MAP)) == compact_library().map
    assert not plain.with_name(MAP).exists()
    core = small / "lib" / "umqtt31" / "__init__.mpy"
    assert not (small / "lib" / "umqtt31" / "protocol.mpy").exists()
    assert (plain / "lib" / "umqtt31" / "protocol.mpy").exists()
    together = sum(path.stat().st_size for path in core.parent.glob("*.mpy"))
    alone = sum(path.stat().st_size for path in (plain / "lib" / "umqtt31").glob("*.mpy"))
    assert together < alone * 0.85
    assert (small / "node.mpy").read_bytes() == (plain / "node.mpy").read_bytes()


def test_names_that_cost_a_byte_are_in_no_file(tmp_path):
    """They are numbers of the format of .mpy; a name that is not would cost its letters."""
    source = tmp_path / "a.py"
    names = [*UNLIKELY, *OTHERS, *HIDDEN]
    assert len(names) == len(set(names))
    source.write_text("x" + "".join(f".{name}" for name in names))
    compile_file(source, tmp_path / "a.mpy", "armv6m", "x")
    data = (tmp_path / "a.mpy").read_bytes()
    assert [name for name in names if len(name) > 2 and name.encode() in data] == []


# --- tracebacks ------------------------------------------------------------------------------

_FAILING = """
import sys
from umqtt31 import MQTTClient

def opener():
    raise OSError(111)

client = MQTTClient("a", "broker")
try:
    client.connect(stream=opener)
except OSError as error:
    sys.print_exception(error, sys.stdout)
"""


def test_traceback_of_a_board_leads_to_the_library(built, tmp_path):
    text = micropython(_FAILING, built)
    assert 'File "umqtt31", line 1, in connect' in text
    (tmp_path / "trace.txt").write_text(text)
    shown = CliRunner().invoke(cli, ["traceback", "--text", str(tmp_path / "trace.txt")]).output
    lines = (LIBRARY / "client.py").read_text().splitlines()
    line = next(k for k, text in enumerate(lines, 1) if text.startswith("    def connect("))
    assert f'File "umqtt31/client.py", line {line}, in MQTTClient.connect' in shown
    assert "in MQTTClient._begin" in shown
    assert 'File "umqtt31", line 1' not in shown
    assert shown.splitlines()[-1] == text.splitlines()[-1]


def test_page_shows_what_the_command_makes_of_a_traceback(tmp_path):
    page = (ROOT / "docs/guides/packages.md").read_text()
    before, after = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    (tmp_path / "trace.txt").write_text(before)
    shown = CliRunner().invoke(cli, ["traceback", "--text", str(tmp_path / "trace.txt")]).output
    a_line = re.compile(r'(umqtt31/\w+\.py", line )\d+')  # it moves with the library
    assert a_line.sub(r"\1N", shown) == a_line.sub(r"\1N", after)


def test_every_function_is_in_the_map_once_for_each_place():
    files = compact_library().map.functions
    places = [place for file in files.values() for found in file.values() for place in found]
    assert len(places) == len({tuple(place) for place in places})
    # A function shares its name with another one only if it did before, too.
    for found in files.values():
        for name, meant in found.items():
            assert name[0] == "<" or len({place[2].rpartition(".")[2] for place in meant}) == 1


def test_attribute_in_a_text_is_given_its_names_back():
    made = Map({}, {"OSError": ["_left", "_most"]})
    assert made.restored("AttributeError: 'X' object has no attribute 'OSError'") == (
        "AttributeError: 'X' object has no attribute '_left or _most'"
    )
    assert made.restored("OSError: 5") == "OSError: 5"


def test_map_that_is_none_is_refused(tmp_path):
    (tmp_path / "map.json").write_text("[]")
    done = CliRunner().invoke(cli, ["traceback", "--map", str(tmp_path / "map.json")], input="x")
    assert done.exit_code == 1
    assert "not a map" in done.output


# --- other libraries -------------------------------------------------------------------------

_CASES = {
    "what is always loaded is one file": {
        "__init__": "from .client import Client",
        "client": (
            "from micropython import const\nfrom .held import Held\n_X = const(3)\n"
            "class Client:\n def __init__(self, size=4): self._held = Held(size, _X)\n"
            " def state(self): return self._held.all()"
        ),
        "held": (
            "from .errors import LIMIT, check\n_X = 5\n"
            "class Held:\n def __init__(self, a, b): self._a, self._b = check(a), b\n"
            " def all(self): return [self._a, self._b, _X, LIMIT, [k for k in range(self._b)]]"
        ),
        "errors": "LIMIT = 9\ndef check(size):\n return size if size < LIMIT else LIMIT",
    },
    "a module is asked by its name": {
        "__init__": (
            "from . import errors\nfrom .client import Client\n"
            "def __getattr__(name):\n return getattr(errors, name)"
        ),
        "client": (
            "from . import errors as e\n"
            "class Client:\n def state(self): return e.number(2), e.LIMIT"
        ),
        "errors": (
            "LIMIT = 9\ndef number(n): return n + 1\n"
            "def __getattr__(name):\n if name == 'MORE': return 10\n raise AttributeError(name)"
        ),
    },
    "names in strings and of others stay": {
        "__init__": "from .client import Client",
        "client": (
            "class Inner:\n _kept = 1\n append = 2\n"
            "class Client:\n _base = 7\n def __init__(self): self._inner = Inner()\n"
            " def state(self):\n  found = []\n  found.append(getattr(self._inner, '_kept'))\n"
            "  self._inner._late = 4\n  setattr(self, '_x', 5)\n"
            "  return found, self._inner.append, self._inner._late, self._x, hasattr(self, '_y')"
        ),
    },
    "scopes inside scopes": {
        "__init__": "from .client import Client",
        "client": (
            "total = 1\ndef add(n):\n global total\n total += n\n return total\n"
            "class Client:\n _step = 2\n _twice = _step * 2\n"
            " def last(self):\n  _, _a, __call__ = 1, 2, add(0)\n  return _a, __call__\n"
            " def state(self, total=5):\n  def inner(x, y=total):\n"
            "   nonlocal total\n   total += x\n   return lambda z: x + y + z + total\n"
            "  try:\n   raise ValueError('no')\n"
            "  except ValueError as error:\n   text = str(error)\n"
            "  found = {k: v for k, v in ((1, 2),)}\n"
            "  return self.last(), add(self._twice), inner(1)(2), text, found"
        ),
    },
    "later modules are loaded late, with what they need": {
        "__init__": "from .client import Client",
        "client": (
            "from .base import Base\n"
            "class Client(Base):\n def state(self):\n  from .late import Late as Other\n"
            "  return Other(self).state(), self._number()"
        ),
        "base": "_N = (1, 2)\nclass Base:\n def _number(self): return 8, _N",
        "late": (
            "from .base import Base\nfrom .inner import ten\nfrom . import client as c\n"
            "class Late(Base):\n def __init__(self, of): self._of = of\n"
            " def state(self): return self._of._number(), ten(), c.Base is Base, self._number()"
        ),
        "inner": "def ten(): return 10",
    },
    "branches for CPython go": {
        "__init__": "import sys\nfrom .client import Client",
        "client": (
            "import sys\n"
            "if sys.implementation.name == 'cpython':\n from .cpython import io\n"
            "else:\n import io\n"
            "class Client:\n def state(self):\n  '''A docstring.'''\n  assert 1 > 2\n"
            "  found = 1 if sys.implementation.name != 'micropython' else 2\n"
            "  return found, io.BytesIO(b'x').read(), __debug__"
        ),
    },
}


@pytest.fixture
def make_library(tmp_path):
    """make_library({module: source}) -> what `compact()` makes of it; client is public."""

    def make(modules):
        source, types = tmp_path / "plain" / "lib31", tmp_path / "types"
        source.mkdir(parents=True)
        types.mkdir()
        for name, text in modules.items():
            (source / f"{name}.py").write_text(text + "\n")
        (types / "__init__.pyi").write_text("from .client import Client as Client\n")
        (types / "client.pyi").write_text(
            "class Client:\n def __init__(self, size: int = 4) -> None: ...\n"
            " def state(self): ...\n"
        )
        made = compact(sorted(source.glob("*.py")), types, "lib31")
        (tmp_path / "small" / "lib31").mkdir(parents=True)
        for name, text in made.sources.items():
            path = tmp_path / "source.py"
            path.write_text(text)
            compile_file(
                path, tmp_path / "small" / "lib31" / f"{name}.mpy", "armv6m", name, ["-O3"]
            )
        return made

    return make


@pytest.mark.parametrize("modules", _CASES.values(), ids=_CASES)
def test_library_does_the_same_when_it_is_compact(make_library, tmp_path, modules):
    made = make_library(modules)
    program = (
        "import lib31, lib31.client\n"
        "print(lib31.Client().state(), lib31.client.Client().state())\n"
        "print(getattr(lib31, 'MORE', 0) or getattr(lib31, 'LIMIT', 0))"
    )
    folders = tmp_path / "plain", tmp_path / "small"
    choice = choose(bits=32)
    (tmp_path / "program.py").write_text(program)
    done = [
        subprocess.run(
            [*choice.command, "-O3", str(tmp_path / "program.py")],
            env=choice.environment([folder]),
            capture_output=True,
            text=True,
        )
        for folder in folders
    ]
    assert done[0].returncode == 0, done[0].stderr
    assert done[1].stdout == done[0].stdout, done[1].stderr
    assert "client" in made.sources and "held" not in made.sources


def test_function_is_not_called_as_a_method_that_keeps_its_name(make_library):
    functions = "".join(f"def add_{k}(x):\n return x + {k}\n" for k in range(len(HIDDEN)))
    calls = ", ".join(f"add_{k}(1)" for k in range(len(HIDDEN)))
    client = (
        f"{functions}class Client:\n def __len__(self): return 1\n def state(self): return {calls}"
    )
    made = make_library({"__init__": "from .client import Client", "client": client})
    meant = {name: places for file in made.map.functions.values() for name, places in file.items()}
    assert len(meant["__len__"]) == 1 and len(meant["__call__"]) == 1


def test_module_that_is_handed_about_is_refused(make_library):
    modules = {
        "__init__": "from .client import Client",
        "client": "from . import held\nclass Client:\n def state(self): return held",
        "held": "A = 1",
    }
    with pytest.raises(LinkError, match="client.py: module held is used as a value"):
        make_library(modules)


def test_name_that_a_module_does_not_define_is_refused(make_library):
    modules = {"__init__": "from .client import Client", "client": "from .held import x\nx()"}
    with pytest.raises(LinkError, match="no module held"):
        make_library(modules)
