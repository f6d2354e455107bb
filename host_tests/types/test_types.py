"""The types in `typings/`: what editors, mypy and pyright say to a program of a user.

Both checkers read programs as they would for an ESP32: MicroPython's stubs in place of
CPython's.  The types are compared with the modules by mypy's stubtest.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import griffe
import pytest

import umqtt31
from host_tests.docs import blocks
from tools.boards.compile import board_sources, compile_library
from tools.boards.profile import load_profile
from tools.project import ROOT
from umqtt31 import aio, v5

HERE = Path(__file__).parent
STUBS = ROOT / ".tools" / "stubs" / "esp32"
TYPINGS = ROOT / "typings"
LIBRARY = ROOT / "lib" / "umqtt31"
HIDDEN = HERE / "hidden.txt"
BESIDE = "beside"
TYPES = griffe.load("umqtt31", search_paths=[TYPINGS])


def run(command, **options):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, **options
    )


def documented():
    """{file name: program} of the pages' programs for a board."""
    found = {}
    for one in blocks.of_kind("python"):
        if re.search(r"from umqtt31(\.\w+)? import", one.text) and "from tools" not in one.text:
            name = re.sub(r"\W", "_", one.page.removesuffix(".md").lower())
            found[f"{name}_{one.number}.py"] = one.text
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with every program that has to be accepted, and the one that has not."""
    folder = tmp_path_factory.mktemp("programs")
    for name, code in documented().items():
        (folder / name).write_text(code)
    for path in [*(ROOT / "examples").glob("*.py"), HERE / "refused.py"]:
        shutil.copy(path, folder)
    # What a page has a program take from the firmware is there, and not looked at.
    (folder / BESIDE).mkdir()
    shutil.copy(ROOT / "firmware" / "fallback.py", folder / BESIDE)
    return folder


def mypy(folder):
    """-> {(file name, line)} that mypy refuses in `folder`."""
    settings = folder / "mypy.ini"
    paths = f"{STUBS}:{TYPINGS}:{folder}:{folder / BESIDE}"
    settings.write_text(f"[mypy]\nmypy_path = {paths}\ncheck_untyped_defs = true\n")
    command = [sys.executable, "-P", "-m", "mypy", "--config-file", settings]
    command += ["--no-site-packages", "--custom-typeshed-dir", STUBS, "--no-error-summary"]
    command += ["--cache-dir", folder / ".mypy_cache"]
    command += sorted(path.name for path in folder.glob("*.py"))
    done = run(command, cwd=folder)
    assert not done.stderr
    lines = re.findall(r"^(.+?):(\d+): error: ", done.stdout, re.MULTILINE)
    # MicroPython's stubs have mistakes of their own.
    passed_over = (str(STUBS), BESIDE)
    return {(path, int(line)) for path, line in lines if not path.startswith(passed_over)}


def pyright(folder):
    """-> {(file name, line)} that pyright refuses in `folder`."""
    settings = {
        "include": ["*.py"],
        "stubPath": str(TYPINGS),
        "typeshedPath": str(STUBS),
        "extraPaths": [str(STUBS), BESIDE],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [Path(sys.executable).parent / "basedpyright", "-p", folder, "--outputjson"]
    # Tests of Spark set PYTHONPATH in this process; there the modules themselves would be found.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = run(command, env=environment)
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in told["generalDiagnostics"]
        if one["severity"] == "error"
    }


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_every_program_and_refuses_every_mistake(checker, programs):
    names = {path.name for path in programs.glob("*.py")}
    assert {"readme_0.py", "readme_1.py", "minimal.py"} <= names
    lines = enumerate((HERE / "refused.py").read_text().splitlines(), 1)
    mistakes = {("refused.py", number) for number, line in lines if line.endswith("# refused")}
    assert len(mistakes) > 15
    assert checker(programs) == mistakes


def test_types_are_those_of_the_modules(tmp_path):
    """hidden.txt says what is left out on purpose; an entry without need fails, too."""
    modules = {path.stem for path in LIBRARY.glob("*.py")}
    types = {path.stem for path in (TYPINGS / "umqtt31").glob("*.pyi")}
    private = tmp_path / "private.txt"
    private.write_text("".join(f"umqtt31\\.{name}\n" for name in modules - types))
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\n")
    command = [sys.executable, "-m", "mypy.stubtest", "umqtt31", "--concise"]
    command += ["--mypy-config-file", settings, "--allowlist", private, "--allowlist", HIDDEN]
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY.parent), "MYPYPATH": str(TYPINGS)}
    done = run(command, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_modules_have_types():
    names = "__init__ aio fileblockdevice journal properties queueing robust simple tls v5 wifi"
    types = {path.stem for path in (TYPINGS / "umqtt31").glob("*.pyi")}
    assert set(names.split()) - types == set()


def test_attributes_of_the_types_are_there():
    client = v5.MQTTClient("types", "127.0.0.1")
    waiting = aio.MQTTClient("types", "127.0.0.1")
    waiting._link = 1  # as of its first connection
    waiting._take_in(waiting._message)
    things = {
        ("__init__", "MQTTClient"): umqtt31.MQTTClient("types", "127.0.0.1"),
        ("__init__", "Stats"): client.stats,
        ("__init__", "Message"): umqtt31.Message(bytearray(16)),
        ("__init__", "MQTTError"): umqtt31.MQTTError(umqtt31.FULL),
        ("aio", "MQTTClient"): waiting,
        ("aio", "Message"): waiting._taken[0],
        ("v5", "MQTTClient"): client,
        ("v5", "Message5"): client._message,
        ("v5", "Options"): client.v5,
        ("properties", "Properties"): client.v5.connack,
    }
    for (module, name), thing in things.items():
        kind = (TYPES if module == "__init__" else TYPES[module])[name]
        names = [*own(kind), *kind.inherited_members]
        assert names
        assert [one for one in names if not hasattr(thing, one)] == []
    assert set(vars(umqtt31.Stats())) < set(own(TYPES["Stats"]))


def own(thing):
    """{name: what it is} of what a module or a class of the types has of its own."""
    return {name: one for name, one in thing.members.items() if not one.is_alias}


def test_everything_public_says_in_hover_what_it_is():
    for module in [TYPES, *(one for one in own(TYPES).values() if one.is_module)]:
        assert module.docstring, module.path
        for one in own(module).values():
            if one.is_class:
                assert one.docstring, one.path
                public = {n: member for n, member in own(one).items() if n[0] != "_"}
                assert [n for n, member in public.items() if not member.docstring] == [], one.path


def test_types_cost_a_board_nothing():
    """They lie outside of `lib/`, which `mpremote cp -r lib :` copies whole."""
    assert (TYPINGS / "umqtt31" / "py.typed").exists()
    assert [path for path in LIBRARY.rglob("*") if path.suffix in (".pyi", ".typed")] == []
    targets = [path for _, path in board_sources(load_profile("RPI_PICO_W"))]
    assert [path for path in targets if not path.endswith(".py")] == []
    for name in ("package.json", "package-full.json", "manifest.py"):
        assert ".pyi" not in (ROOT / name).read_text()


SHOWN = """
import sys
import umqtt31
from umqtt31 import MQTTClient
from umqtt31.simple import MQTTClient as Simple
from umqtt31.v5 import MQTTClient as MQTTClient5
client, simple, client5 = MQTTClient("a", "b"), Simple("a", "b"), MQTTClient5("a", "b")
# MicroPython's dir() knows names of more than ten letters once they are used.  It asks
# __getattr__(), too, which CPython's does not.
client.is_connected, umqtt31.FileBlockDevice, umqtt31.REFUSED_FILTER
asks = sys.implementation.name == "micropython"
message = client._message
for one, names in (
    (
        umqtt31,
        ("MQTTClient", "MQTTError")
        + ("Journal", "FULL", "REFUSED_FILTER", "FileBlockDevice") * asks,
    ),
    (client5, ("v5", "is_connected", "publish")),
    (client5._message, ("qos", "matches", "refuse") + ("topic", "payload", "properties") * asks),
    (client, ("is_connected", "inflight", "queued", "stats", "keepalive", "publish")),
    (simple, ("is_connected", "keepalive", "check_msg") + ("sock",) * asks),
    (message, ("topic_len", "payload_len", "qos", "matches") + ("topic", "payload") * asks),
):
    shown = dir(one)
    print([name for name in names if name not in shown], "nosuch" in shown)
"""


def test_dir_shows_every_attribute_on_micropython(micropython, tmp_path):
    """As boards get it: dir() asks __getattr__() for each name that the port knows, which loads a
    module each time."""
    compile_library(tmp_path / "umqtt31", "armv6m")
    done = micropython.run(SHOWN, micropypath=[tmp_path], heap_bytes=1_000_000)
    assert done.stdout == "[] False\n" * 6, done.stderr


def test_dir_shows_every_attribute_on_cpython(capsys):
    exec(SHOWN, {})
    assert capsys.readouterr().out == "[] False\n" * 6
