"""What `make dist` hands out, each installed into an empty place and used there."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import venv

import pytest

from host_tests.boards.test_virtual_board import mpremote, serve
from host_tests.brokers import free_port
from host_tests.docs import blocks
from host_tests.running import said_by
from tools import __main__ as command_line
from tools import command
from tools.archives import unpack
from tools.boards.compile import compile_file
from tools.boards.packaging import everything, package_files, version
from tools.boards.profile import load_profile
from tools.dist import make, mip
from tools.project import ROOT

GUIDE = "docs/guides/packages.md"
USE = "import umqtt31; umqtt31.MQTTClient('a', 'b'); print(umqtt31.__version__, umqtt31.__file__)"
USE_ALL = "import umqtt31.aio, umqtt31.simple; from umqtt31 import Journal; " + USE


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with everything, made once."""
    out = tmp_path_factory.mktemp("dist")
    assert len(list(make.make_all(out))) == 6
    return out


def run(*words, status=0, **options):
    """-> what it prints, or what it says against it."""
    words = list(map(str, words))
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


# --- on boards ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "program", "suffix"),
    [
        (["umqtt31"], USE, ".mpy"),
        (["--no-mpy", "umqtt31"], USE, ".py"),
        (["umqtt31-full@" + version()], USE_ALL, ".mpy"),
    ],
    ids=["client", "source", "version"],
)
def test_mpremote_installs_from_the_index_on_an_empty_board(
    dist, start_board, desk, options, program, suffix
):
    # To compile the core takes 152 KB: an ESP32 without PSRAM takes the .mpy.
    board = start_board(load_profile("W5500_EVB_PICO") if suffix == ".py" else desk)
    with serve(dist / "mip") as url:
        words = ["mip", "install", "--index", url, *options, "+", "exec", program]
        output = mpremote(board, *words)
    assert output.splitlines()[-1] == f"{version()} /lib/umqtt31/__init__{suffix}"


@pytest.mark.parametrize(
    ("name", "program"), [("umqtt31", USE), ("umqtt31-full", USE_ALL)], ids=["client", "full"]
)
def test_mip_of_micropython_installs_from_the_index(dist, micropython, tmp_path, name, program):
    with serve(dist / "mip") as url:
        install = f"import mip; mip.install({name!r}, index={url!r}, target={str(tmp_path)!r})"
        done = micropython.run(install, micropypath=[])
    assert "Done" in done.stdout, done.stdout + done.stderr
    used = micropython.run(program, micropypath=[tmp_path])
    assert used.stdout.split() == [version(), f"{tmp_path}/umqtt31/__init__.mpy"]


@pytest.mark.parametrize("name", ["package.json", "package-full.json", "manifest.py"])
def test_package_file_names_all_modules(name):
    """After a new module: `python -m tools boards package`."""
    assert (ROOT / name).read_text() == package_files()[name]


CORE_ALONE = """\
import umqtt31
try:
    umqtt31.MQTTClient('a', 'b').poll()
except umqtt31.MQTTError as error:
    print(error.code == umqtt31.CLOSED)
try:
    from umqtt31 import Journal
except ImportError:
    print('no Journal')
"""


@pytest.mark.parametrize(
    ("package", "program", "expected"),
    [
        ("package.json", CORE_ALONE, ["True", "no Journal"]),
        ("package-full.json", USE_ALL, [f"{version()} /lib/umqtt31/__init__.py"]),
    ],
)
def test_mip_installs_the_library_with_and_without_extras(start_board, package, program, expected):
    """From source, which takes a board 160 KB of heap to compile."""
    board = start_board(load_profile("RPI_PICO_W"))
    with serve(ROOT) as url:
        output = mpremote(board, "mip", "install", f"{url}/{package}", "+", "exec", program)
    assert output.splitlines()[-len(expected) :] == expected


def mpremote_at(board):
    return f"{sys.executable} -m mpremote connect {board.port}"


def line_of_the_guide(begin, **own):
    """The words of a line of docs/guides/packages.md, `own` in place of the page's."""
    lines = [x for b in blocks.of_kind("sh") if b.page == GUIDE for x in b.text.splitlines()]
    (line,) = (line for line in lines if line.startswith(begin))
    for theirs, mine in own.items():
        line = line.replace(theirs, str(mine))
    return shlex.split(line)


def test_lines_of_the_guide_serve_the_index_and_install_from_it(dist, start_board, desk):
    board = start_board(desk)
    own = {"dist/": f"{dist}/", "8000": free_port(), "mpremote": mpremote_at(board)}
    words = line_of_the_guide("python3 -m http.server", **own)
    # It says so when it listens.
    options = {"env": os.environ | {"PYTHONUNBUFFERED": "1"}, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, stdout=subprocess.PIPE, **options) as server:
        try:
            assert b"Serving HTTP" in server.stdout.readline()
            run(*line_of_the_guide("mpremote mip install", **own), "+", "exec", USE_ALL)
        finally:
            server.kill()


def test_line_of_the_guide_lets_bytecode_take_the_place_of_source(dist, start_board, desk):
    """Older source is imported before the bytecode that was installed beside it."""
    board = start_board(desk)
    old = "import os\nos.mkdir('/lib')\nos.mkdir('/lib/umqtt31')\n"
    old += "with open('/lib/umqtt31/__init__.py', 'w') as file:\n    file.write('old = True')"
    mpremote(board, "exec", old)
    with serve(dist / "mip") as url:
        install = ["mip", "install", "--index", url, "umqtt31"]
        hidden = mpremote(board, *install, "+", "exec", "import umqtt31; print(umqtt31.old)")
        assert hidden.splitlines()[-1] == "True"
        run(*line_of_the_guide("mpremote rm", mpremote=mpremote_at(board)))
        output = mpremote(board, *install, "+", "exec", USE)
    assert output.splitlines()[-1] == f"{version()} /lib/umqtt31/__init__.mpy"


def test_index_names_what_is_there(dist):
    index = json.loads((dist / "mip" / "index.json").read_text())
    assert {one["name"] for one in index["packages"]} == set(mip.PACKAGES)
    for one in index["packages"]:
        assert "py" in one["versions"]
        for form, versions in one["versions"].items():
            for number in [*versions, "latest"]:
                about = dist / "mip" / "package" / form / one["name"] / f"{number}.json"
                for _, digits in json.loads(about.read_text())["hashes"]:
                    data = (dist / "mip" / "file" / digits[:2] / digits).read_bytes()
                    assert hashlib.sha256(data).hexdigest().startswith(digits)


def test_romfs_image_is_mounted_and_imported(dist, micropython):
    program = (
        "import sys, vfs\n"
        f"image = open({str(dist / f'umqtt31-{version()}.romfs')!r}, 'rb').read()\n"
        "vfs.mount(vfs.VfsRom(memoryview(image)), '/rom')\n"
        "sys.path[:] = ['/rom/lib', '.frozen']\n" + USE_ALL
    )
    done = micropython.run(program, micropypath=[])
    assert done.stdout.split() == [version(), "/rom/lib/umqtt31/__init__.mpy"], done.stderr


def test_manifest_freezes_a_library_that_runs(dist, micropython, tmp_path):
    """As MicroPython's build reads it: files of a package, compiled."""
    told = {}

    def package(name, files, base_path):
        for file in files:
            source = dist / "freeze" / base_path / name / file
            compile_file(source, (tmp_path / name / file).with_suffix(".mpy"), "armv6m")

    names = {"metadata": lambda **about: told.update(about), "package": package}
    exec((dist / "freeze" / "manifest.py").read_text(), names)
    done = micropython.run(USE_ALL, micropypath=[tmp_path])
    assert done.stdout.split()[0] == told["version"] == version(), done.stderr
    assert len(list(tmp_path.rglob("*.mpy"))) == len(everything())


# --- on computers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """An environment with nothing but the wheel, and what that needs from `.venv`."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (wheel,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python"]
    options = ["install", "-q", "--no-deps", "--no-index", "--no-compile"]
    run(*pip, folder / "bin" / "python", *options, wheel)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture
def umqtt31(installed, tmp_path):
    """umqtt31("build", …) -> what the installed command prints, in an empty folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def call(*words, status=0):
        options = {"cwd": tmp_path, "env": environment}
        return run(installed / "bin" / "umqtt31", *words, status=status, **options)

    return call


def test_wheel_brings_the_library_and_its_types(installed, tmp_path):
    python = installed / "bin" / "python"
    program = "from umqtt31 import MQTTClient; MQTTClient('a', 'b'); print(__import__('umqtt31'))"
    assert str(installed) in run(python, "-c", program, cwd=tmp_path)
    assert next(installed.glob("lib/python3*/site-packages/umqtt31-stubs/py.typed"))
    about = next(installed.glob("lib/python3*/site-packages/umqtt31-*.dist-info/METADATA"))
    assert f"\nVersion: {version()}\n" in about.read_text()


def test_installed_command_knows_version_and_boards(umqtt31):
    assert umqtt31("--version").split()[-1] == version()
    assert "RPI_PICO_W" in umqtt31("boards")
    _, *words = line_of_the_guide("umqtt31 --help")
    assert set(re.findall(r"^  ([a-z]+) ", umqtt31(*words), re.M)) >= set(command.COMMANDS)


def test_installed_command_builds_by_the_words_of_make_and_by_options(umqtt31, tmp_path):
    assert umqtt31("build", "BOARD=RPI_PICO_W").startswith("build/RPI_PICO_W/fs: ")
    assert umqtt31("build", "--board", "desk").startswith("build/desk/fs: ")
    assert (tmp_path / "build" / "desk" / "fs" / "lib" / "umqtt31" / "__init__.mpy").exists()
    assert "order" in umqtt31("advise", "BOARD=RPI_PICO_W")


def test_installed_command_deploys_to_a_board_as_the_guide_says(umqtt31, start_board, device_toml):
    board = start_board(load_profile("RPI_PICO_W"))
    own = {"/dev/ttyACM0": board.port, "device.toml": device_toml}
    _, *words = line_of_the_guide("umqtt31 deploy", **own)
    assert "files copied" in umqtt31(*words)


def test_installed_command_says_what_it_cannot_judge(umqtt31, tmp_path):
    (tmp_path / "captures").mkdir()
    assert "captures" in umqtt31("audit", "CAPTURES=captures", "OUT=out", status=2)


def test_sdist_is_a_project_that_makes_and_tests(dist, tmp_path):
    with tarfile.open(dist / f"umqtt31-{version()}.tar.gz") as archive:
        unpack(archive, tmp_path)
    folder = tmp_path / f"umqtt31-{version()}"
    assert "make test" in run("make", cwd=folder)
    for name in ("host_tests/conftest.py", "docs/requirements.tsv", "CHANGELOG.md", "LICENSE"):
        assert (folder / name).exists()


def test_sums_are_of_every_file(dist):
    lines = [line.split("  ") for line in (dist / make.SUMS).read_text().splitlines()]
    files = {path.relative_to(dist).as_posix() for path in dist.rglob("*") if path.is_file()}
    assert {name for _, name in lines} == files - {make.SUMS}
    for digest, name in lines:
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest


# --- the command's words --------------------------------------------------------------------


def test_command_has_the_targets_of_make_that_boards_and_fleets_need():
    recipes = re.findall(
        r"^([a-z]+): .*\n\t\$\(call layer,(?:boards|fleet)\)\n\t@\$\(TOOLS\) (\w+) (\w+)",
        (ROOT / "Makefile").read_text(),
        re.MULTILINE,
    )
    assert len(recipes) > 10
    told = {name: command.place_of(name) for name in command.COMMANDS}
    # What make does not have, as a person may type 20 words there.
    others = {name: ("boards", name) for name in ("advise", "clock", "romfs")}
    others["boards"] = ("boards", "list")
    assert told == {name: (group, word) for name, group, word in recipes} | others


def test_every_command_is_there():
    for name in command.COMMANDS:
        said_by(command.main, name, "--help")


def test_words_of_make_become_options():
    words = ["BOARD=a b", "PORT=", "CAPTURES=here", "ARGS=--json --prefix 'x y'", "--config", "c"]
    assert command.options_of(words) == [
        *("--board", "a b", "here", "--json", "--prefix", "x y", "--config", "c")
    ]


def test_missing_package_is_named_as_pip_installs_it(monkeypatch):
    assert command_line.remedy("boards") == "make setup"
    monkeypatch.setattr(command_line, "IS_INSTALLED", True)
    assert command_line.remedy("boards") == "pip install 'umqtt31[boards]'"
