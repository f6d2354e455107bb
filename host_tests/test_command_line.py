"""`python -m tools`: groups are found without importing them; errors are one line."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from host_tests.__main__ import main as main_of_tests
from host_tests.running import said_by
from tools import __main__ as command_line
from tools.project import ROOT


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of groups in the place of tools/, importable as such."""
    package = tmp_path / "tools"
    files = {
        "deep/__init__.py": '"""Digs deep.\n\nMore."""\n',
        "deep/cli.py": "import no_such_package_anywhere\ncli = None\n",
        "shallow.py": '"""Needs more."""\nimport no_such_package_anywhere\ncli = None\n',
        "flat.py": '"""Rolls flat."""\ndef cli(): pass\n',
        "silent.py": '"""No command."""\nCLI = 1\n',
        "__main__.py": "def cli(): pass\n",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.setattr(command_line, "_TOOLS", package)
    monkeypatch.setattr(sys.modules["tools"], "__path__", [str(package)])
    return package


def test_packages_and_modules_with_a_cli_are_groups_with_a_line_each(folder):
    """Nothing is imported for it, so that a missing package does not matter."""
    found = command_line.find_groups(folder)
    assert {name: command_line.summary(path) for name, path in found.items()} == {
        "deep": "Digs deep.",
        "flat": "Rolls flat.",
        "shallow": "Needs more.",
    }
    assert "Digs deep." in said_by(command_line.main, "--help")


def test_group_with_a_missing_package_says_what_to_do(folder):
    assert said_by(command_line.main, "shallow", status=1) == (
        "Error: shallow needs the Python package 'no_such_package_anywhere': run `make setup`\n"
    )


@pytest.mark.parametrize("main", [command_line.main, main_of_tests], ids=lambda main: main.name)
def test_every_group_of_the_project_is_a_click_command(main):
    context = click.Context(main)
    assert len(main.list_commands(context)) > 5
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert isinstance(command, click.Command), name


@pytest.mark.parametrize("package", ["tools", "host_tests"])
def test_unknown_group_exits_with_2_and_no_traceback(package):
    command = [sys.executable, "-m", package, "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


def test_tools_outside_of_the_environment_go_on_inside():
    """A Python without packages (-I -S), as the computer's own is."""
    code = (
        "import sys, runpy; sys.path.insert(0, '.'); "
        "sys.argv[1:] = ['boards', 'show', '--board', 'desk']; "
        "runpy.run_module('tools', run_name='__main__')"
    )
    python = sys.base_prefix + "/bin/python3"
    done = subprocess.run(
        [python, "-I", "-S", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "title" in done.stdout


@pytest.mark.parametrize("environment", ["missing", "this one"])
def test_tools_stay_where_no_other_environment_is(environment, monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(command_line.os, "execv", lambda *command: started.append(command))
    folder = tmp_path if environment == "missing" else Path(sys.prefix)
    monkeypatch.setattr(command_line, "_VENV", folder)
    command_line.go_on_in_venv()
    assert started == []


def test_help_imports_no_group():
    code = "import sys, runpy; sys.argv[1:] = ['--help']\n" + (
        "try: runpy.run_module('tools', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('tools.') and m != 'tools.__main__'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (main_of_tests, "sim run --seconds -1"),  # zero seconds kept every promise,
        (main_of_tests, "sim run --seconds 0"),
        (main_of_tests, "fuzz run --seconds 0"),  # or never ended
        (main_of_tests, "soak --minutes -1"),
        (command_line.main, "docs serve --port 99999"),
    ],
)
def test_number_that_means_nothing_is_refused_with_its_option(main, words):
    output = said_by(main, *words.split(), status=2)
    assert f"Invalid value for '{words.split()[-2]}'" in output


def test_make_in_another_folder_says_how_to_call_it(tmp_path):
    done = subprocess.run(
        ["make", "-f", ROOT / "Makefile"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr.endswith("runs in its own folder only: make -C FOLDER.  Stop.\n")
