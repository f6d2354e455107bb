"""Rules that the whole repository keeps: who imports whom, sizes, names, one version.

Each of them is easy to break by a small edit that works, so a test holds them.
"""

import ast
import csv
import functools
import json
import re
import statistics
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest
import yaml

from tools.project import ROOT

pytestmark = pytest.mark.xdist_group("repository")  # one process: each file is parsed once

LIBRARY = ROOT / "lib" / "umqtt31"

MOST_BYTES_TRACKED = 2_000_000

# Each module of the library: which others it may import, at once or when something is asked for.
# `__init__` is the core: all may import it (`core` below), and it loads only what is named here.
# A new module needs a row.  What a module works with and does not import is handed to it.
MAY_IMPORT = {
    "__init__": {"errors", "tls"},  # both when they are needed
    # names and sentences
    "errors": {"reasons", "tls"},
    "reasons": set(),
    # stores
    "journal": {"core", "opening"},
    "opening": {"core"},
    "fileblockdevice": set(),
    # level 5
    "v5": {"core", "properties", "alias"},
    "properties": {"core"},
    "alias": set(),
    # streams
    "tls": {"core", "handshake"},  # the core to take `handshake` out of its names again
    "handshake": set(),
    "wifi": set(),
    # policies and faces
    "queueing": {"core"},
    "aio": {"core"},
    "simple": {"core", "sock", "sslparams"},
    "sock": {"core"},
    "robust": {"simple"},
    "sslparams": {"tls"},
}
NETWORK = {"socket", "tls", "ssl", "asyncio", "network", "select"}
# The core in one function, which opens; `sock` for select() of programs for umqtt.simple.
MAY_USE_NETWORK = {"__init__", "tls", "handshake", "aio", "wifi", "sock"}
MOST_BRANCHES = 12
# Functions that take more ways through, and why.
MAY_BRANCH = {
    "accept": "a message is encoded, kept and sent in one frame: calls are what takes time",
    "step": "all that is due, in one call: calls are what takes time on a board",
    "extend": "ruff counts the methods of the class that it makes as its own ways",
    "context_of": "each thing that `ssl` may be, once for a client",
    "put": "each place where an entry may find room on flash, in one frame",
    "_is_written": "what a page of flash may hold after a program operation that failed",
    "read": "each way in which a record may be torn, where it is read back",
    "_check_pubrel": "each moment at which a PUBREL may be due, in one rule of the simulator",
}

# What no file of the repository may be: {rule: does the file at this path keep it?}
_PLACES = re.compile(
    "|".join(
        [
            r"(deb|ftp|snapshot|security)\.debian\.org|archive\.ubuntu\.com",  # mirrors
            r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org",
            *(re.escape(f"{place}/") for place in {ROOT, ROOT.parent, Path.home()}),
        ]
    ).encode()
)
_VAGUE = ("utils", "util", "helpers", "helper", "common", "misc")
_GENERATED = (".mpy", ".pyc", ".o", ".so", ".class", ".whl", ".log", ".parquet")
FILES = {
    "has a name that says what is inside": lambda path: path.stem not in _VAGUE,
    "is not generated": lambda path: path.suffix not in _GENERATED,
    "is of a size that git likes": lambda path: path.stat().st_size <= MOST_BYTES_TRACKED,
    "unpacks archives as each Python can": lambda path: (
        path.stem == "archives" or not re.search(rb"\.extractall\(", path.read_bytes())
    ),
    # No checkout path, no home folder, and no mirror: package managers know theirs.
    "names no place of one machine": lambda path: not _PLACES.search(path.read_bytes()),
}

# Who imports nothing of what lies above: folders, and first parts of names.
_FIRMWARE = {path.stem for path in (ROOT / "firmware").glob("*")}
NOTHING_OF = {
    "lib": {"tools", "host_tests", "board", *_FIRMWARE},
    "firmware": {"tools", "host_tests"},
    "boards": {"tools", "host_tests"},
    "tools": {"host_tests"},
    "examples": {"host_tests"},
}


def said_by(*command):
    """-> what it prints; it may end with 1, by which git and ruff say what they found."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@functools.cache
def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def repository_files():
    """Every file that is tracked or could be: not ignored, and there."""
    listed = said_by("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file()]


def shown(path):
    return str(path.relative_to(ROOT))


def python_files(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def nodes(path, *kinds):
    return [node for node in ast.walk(tree(path)) if isinstance(node, kinds)]


@functools.cache
def imports(path):
    """[(level, module, name)] of all imports in `path`; without a name in `import module`."""
    found = []
    for node in nodes(path, ast.Import, ast.ImportFrom):
        for alias in node.names:
            if isinstance(node, ast.Import):
                found.append((0, alias.name, ""))
            else:
                found.append((node.level, node.module or "", alias.name))
    return found


def library_imports(path):
    """The modules of the library that a module of it imports, "core" for the package itself."""
    for level, module, name in imports(path):
        if level:
            yield module or (name if (LIBRARY / f"{name}.py").exists() else "core")
        elif module.partition(".")[0] == "umqtt31":
            yield module.partition(".")[2] or "core"


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("*.py")), ids=lambda path: path.stem)
def test_library_module_imports_only_what_lies_below_it(path):
    assert path.stem in MAY_IMPORT, "give the new module a row in MAY_IMPORT"
    assert set(library_imports(path)) == MAY_IMPORT[path.stem]


def test_only_opening_and_errors_lead_from_the_core_to_an_option():
    """What a program does not use is not loaded: no option is imported with the core."""
    at_once = [one for one in tree(LIBRARY / "__init__.py").body if getattr(one, "level", 0)]
    assert at_once == []


def test_library_touches_the_network_only_in_its_edge_modules():
    found = {
        path.stem
        for path in LIBRARY.glob("*.py")
        for level, module, _ in imports(path)
        if not level and module in NETWORK
    }
    assert found == MAY_USE_NETWORK


@pytest.mark.parametrize("folder", NOTHING_OF)
def test_folder_imports_nothing_of_what_lies_above_it(folder):
    paths = python_files(folder)
    assert len(paths) > 5, "does this test still look in the right place?"
    found = {
        (shown(path), module)
        for path in paths
        for level, module, _ in imports(path)
        if not level and module.partition(".")[0] in NOTHING_OF[folder]
    }
    assert found == set()


def host_modules():
    """{module: path} of tools and tests, but what is sent to a board."""
    found = {}
    for path in python_files("tools", "host_tests"):
        if "device" not in path.parts:
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def host_imports(module, path, modules):
    """Those of `modules` that `module` imports, now or when it is run."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for level, base, name in imports(path):
        if level:
            base = resolve_name("." * level + base, package)
        found = f"{base}.{name}" if f"{base}.{name}" in modules else base
        if found in modules and found != module:
            yield found


def test_stand_ins_share_no_code_with_what_they_check():
    """Not with the library, and not with tools and tests that may lean on it."""
    found = {
        (path.name, module)
        for path in python_files("host_tests/standin")
        if path.stem != "on_board" and not path.stem.startswith("test_")
        for _, module, _ in imports(path)
        if module not in ("random", "sys", "time")
    }
    assert found == set()


@pytest.mark.parametrize("depth", [2, 9], ids=["parts", "modules"])
def test_tools_import_each_other_one_way(depth):
    modules = host_modules()
    arrows = defaultdict(set)
    for module, path in modules.items():
        for name in host_imports(module, path, modules):
            ends = [".".join(one.split(".")[:depth]) for one in (module, name)]
            if ends[0] != ends[1]:
                arrows[ends[0]].add(ends[1])
    assert len(arrows) > 10, "does this test still look in the right place?"
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def private_constants():
    """(module, name, value) of each `NAME = const(value)` of the library."""
    for path in python_files("lib"):
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if getattr(node.value.func, "id", "") == "const":
                    yield path.stem, node.targets[0].id, ast.unparse(node.value.args[0])


def test_private_constant_of_one_name_has_one_value():
    values = defaultdict(set)
    for _, name, value in private_constants():
        values[name].add(value)
    assert values, "no const() found: does this test still look in the right place?"
    assert {name: found for name, found in values.items() if len(found) > 1} == {}


def test_private_constant_of_a_public_number_has_its_value():
    """Modules have their own `_X`, which cost nothing on a board; `errors` has the public ones."""
    public = {
        f"_{node.targets[0].id}": ast.unparse(node.value)
        for node in tree(LIBRARY / "errors.py").body
        if isinstance(node, ast.Assign) and node.targets[0].id.isupper()
    }
    own = [one for one in private_constants() if one[1] in public]
    assert len(own) > 20, "does this test still look in the right place?"
    assert [found for found in own if found[2] != public[found[1]]] == []


def test_private_is_this_file():
    """A name with an underscore is neither imported nor read from another module."""
    found = []
    for path in python_files("lib/umqtt31", "firmware"):
        whole = [one for node in nodes(path, ast.Import) for one in node.names]
        modules = {one.asname or one.name for one in whole}
        read = nodes(path, ast.Attribute)
        names = [name for _, _, name in imports(path)]
        names += [node.attr for node in read if getattr(node.value, "id", "") in modules]
        found += [f"{shown(path)}: {name}" for name in names if re.match("_[^_]", name)]
    assert found == []


def test_functions_have_few_ways_through():
    """The cyclomatic complexity as ruff counts it."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901"]
    command += ["--config", f"lint.mccabe.max-complexity = {MOST_BRANCHES}"]
    command += ["--output-format", "json", "lib", "firmware", "tools", "boards", "host_tests"]
    found = {fault["message"].split("`")[1] for fault in json.loads(said_by(*command))}
    assert found - set(MAY_BRANCH) == set()
    assert set(MAY_BRANCH) - found == set(), "simple by now: take it out of the list"


def test_source_keeps_the_rules_of_pyproject():
    """Modules have docstrings, the library does not print, and what else ruff looks for."""
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "."]
    assert subprocess.run(command, cwd=ROOT).returncode == 0


def test_functions_of_the_library_are_small():
    lengths = [
        node.end_lineno - node.body[0].lineno + 1
        for path in python_files("lib")
        for node in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)
    ]
    assert statistics.median(lengths) < 10


@pytest.mark.parametrize("rule", FILES)
def test_every_file(rule):
    assert [shown(path) for path in repository_files() if not FILES[rule](path)] == []


def test_nothing_that_git_ignores_is_tracked():
    assert said_by("git", "ls-files", "--cached", "--ignored", "--exclude-standard") == ""


def test_secrets_with_the_names_of_the_guides_are_left_out_of_commits():
    """A `git add -A` took the key of a fleet along."""
    names = ["device.toml", "devices.csv", "shared.toml", "fleet.key", "ca.key"]
    assert said_by("git", "check-ignore", "--no-index", *names).split() == names


def make_targets():
    return set(re.findall(r"^([a-z][a-z-]*):", text_of("Makefile"), re.MULTILINE))


def test_make_alone_lists_20_targets_at_most():
    """The few others are named where contributors look."""
    listed = re.findall(r"^  make ([a-z-]+) +\S", said_by("make"), re.MULTILINE)
    assert 10 < len(listed) == len(set(listed)) <= 20
    others = make_targets() - set(listed) - {"help"}
    assert others == {"bench", "bench-fleet", "clean"}
    assert all(f"make {name}" in text_of("CONTRIBUTING.md") for name in others)


def test_make_commands_in_the_documents_exist():
    documents = [path for path in repository_files() if path.suffix == ".md"]
    named = {
        target
        for path in documents
        for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", path.read_text(), re.MULTILINE)
    }
    assert named - make_targets() == set()


def test_tests_that_mutants_name_exist():
    """pytest passes over a path that is not there."""
    mutmut = tomllib.loads(text_of("pyproject.toml"))["tool"]["mutmut"]
    named = mutmut["pytest_add_cli_args_test_selection"]
    for name in named:
        path, _, function = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not function or f"def {function}(" in text_of(path), name
    assert len(named) > 5, "does this test still look in the right place?"


def test_contributing_names_only_what_is_there():
    named = re.findall(r"`([\w.-]+/[\w./-]*|\w+\.md)`", text_of("CONTRIBUTING.md"))
    assert len(named) > 15, "does this test still look in the right place?"
    inside = (ROOT, LIBRARY, ROOT / "tools" / "fleet")
    assert [name for name in named if not any((one / name).exists() for one in inside)] == []


def test_workflow_runs_ci_on_what_the_devcontainer_has():
    (job,) = yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"].values()
    assert job["steps"][-1] == {"run": ".ci/run"}
    given = [pair for step in job["steps"] for pair in step.get("with", {}).items()]
    versions = [value for name, value in given if name.endswith("-version")]
    devcontainer = json.loads(text_of(".devcontainer/devcontainer.json"))
    assert devcontainer["image"] == job["container"]
    assert [one["version"] for one in devcontainer["features"].values()] == versions


def test_version_stands_in_one_place():
    pattern = re.compile(r"^__version__ = \"(\d+\.\d+\.\d+)\"$", re.MULTILINE)
    paths = python_files("lib", "firmware", "tools")
    found = [(shown(path), one) for path in paths for one in pattern.findall(path.read_text())]
    assert [path for path, _ in found] == ["lib/umqtt31/__init__.py"]
    assert "version" in tomllib.loads(text_of("pyproject.toml"))["project"]["dynamic"]
    assert f"## {found[0][1]}" in text_of("CHANGELOG.md")


def test_requirements_have_unique_ids_and_all_columns():
    with (ROOT / "docs" / "requirements.tsv").open(newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    assert len(rows) > 80
    assert [name for name, count in Counter(row["id"] for row in rows).items() if count > 1] == []
    assert {row["side"] for row in rows} == {"client", "codec", "audit", "tool"}
    assert all(row["source"].strip() and row["statement"].strip() for row in rows)


def test_every_dependency_is_pinned_and_explained():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    lines = text_of("pyproject.toml").splitlines()
    pins = sum(project["optional-dependencies"].values(), project["dependencies"])
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9-]+==[\w.]+(; .+)?", pin)] == []
    explained = [line for line in lines if re.fullmatch(r' +"[^"]+==[^"]+",  # \S.{7,}', line)]
    assert len(explained) == len(pins)
