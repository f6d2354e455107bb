"""What mip installs and what gets frozen: complete, and importable on a board."""

import pytest

from host_tests.boards.test_virtual_board import mpremote, serve
from tools.boards.compile import library_sources
from tools.boards.packaging import package_files
from tools.boards.profile import load_profile
from tools.project import ROOT


@pytest.mark.parametrize("name", ["package.json", "package-full.json", "manifest.py"])
def test_package_file_names_all_modules(name):
    """After a new module: `python -m tools boards package`."""
    assert (ROOT / name).read_text() == package_files()[name]


def test_manifest_freezes_every_module_of_the_library():
    told = {}
    names = {"metadata": lambda **about: told.update(about)}
    names["package"] = lambda package, files, base_path: told.update({package: (base_path, files)})
    exec((ROOT / "manifest.py").read_text(), names)
    base, files = told["umqtt31"]
    assert {base + "/umqtt31/" + name for name in files} == {
        path.relative_to(ROOT).as_posix() for path in library_sources()
    }


@pytest.mark.parametrize(
    ("package", "program", "expected"),
    [
        ("package.json", "import umqtt31; umqtt31.MQTTClient('a', 'b'); print('made')", "made"),
        (
            "package.json",
            "try:\n from umqtt31 import Journal\nexcept ImportError:\n print('no journal')",
            "no journal",
        ),
        (
            "package.json",
            "import umqtt31\ntry:\n umqtt31.MQTTClient('a', 'b').poll()\n"
            "except umqtt31.MQTTError as error:\n print(error.code == umqtt31.CLOSED)",
            "True",
        ),
        ("package-full.json", "from umqtt31 import Journal; print('journal')", "journal"),
        ("package-full.json", "from umqtt31.simple import MQTTClient; print('simple')", "simple"),
    ],
)
def test_mip_installs_the_library_with_and_without_extras(start_board, package, program, expected):
    """From source, which takes a board 160 KB of heap to compile."""
    board = start_board(load_profile("RPI_PICO_W"))
    with serve(ROOT) as url:
        done = mpremote(board, "mip", "install", f"{url}/{package}", "+", "exec", program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == expected
