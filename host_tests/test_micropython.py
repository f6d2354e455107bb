"""Real MicroPython: what every interpreter has to offer, and how one is found and run."""

import json
import subprocess

import pytest

from tools import micropython as desk


def test_interpreter_reports_the_size_and_version_it_is_listed_with(micropython):
    done = micropython.run(
        "import sys; print('%d.%d' % sys.implementation[1][:2], sys.maxsize > 1 << 31)"
    )
    assert done.stdout.split() == [micropython.version, str(micropython.bits == 64)]


def test_run_limits_the_heap_to_the_bytes_given(micropython):
    done = micropython.run(
        "import gc; gc.collect(); print(gc.mem_free() + gc.mem_alloc())", heap_bytes=98304
    )
    # The allocation table takes its share of the heap.
    assert 0.95 * 98304 < int(done.stdout) < 98304


def test_interpreter_has_network_littlefs_romfs_and_tls(micropython):
    done = micropython.run(
        "import socket, select, tls, vfs\n"
        "a = socket.getaddrinfo('127.0.0.1', 9)[0][-1]\n"
        "print(vfs.VfsLfs2, vfs.VfsRom, tls.SSLContext, len(a) > 0)"
    )
    assert (done.returncode, done.stdout) == (
        0,
        "<class 'VfsLfs2'> <class 'VfsRom'> <class 'SSLContext'> True\n",
    )


def test_heap_lock_refuses_an_allocation(micropython):
    done = micropython.run(
        "import micropython\n"
        "micropython.heap_lock()\n"
        "try:\n    bytearray(100)\n"
        "except MemoryError:\n    refused = True\n"
        "micropython.heap_unlock()\n"
        "print(refused)"
    )
    assert done.stdout == "True\n"


def test_run_finds_modules_in_the_folders_given_and_passes_arguments(micropython, tmp_path):
    (tmp_path / "neighbour.py").write_text("NAME = 'next door'\n")
    script = tmp_path / "sub" / "script.py"
    script.parent.mkdir()
    script.write_text("import sys, neighbour; print(neighbour.NAME, sys.argv[1:])\n")
    done = micropython.run(script, micropypath=[tmp_path], args=["a", 7])
    assert done.stdout == "next door ['a', '7']\n"


def test_run_ends_what_takes_too_long(micropython):
    with pytest.raises(subprocess.TimeoutExpired):
        micropython.run("while True: pass", timeout=0.2)


def test_started_program_can_be_killed(micropython):
    process = micropython.start("print('on')\nwhile True: pass")
    assert process.stdout.readline() == "on\n"
    process.kill()
    assert process.wait(10) == -9
    process.stdout.close()


def test_choose_prefers_the_newest(micropythons):
    assert desk.choose(bits=64).id == max(one.id for one in micropythons if one.bits == 64)


def test_choose_without_a_fitting_interpreter_says_what_to_do(monkeypatch):
    monkeypatch.setattr(desk, "interpreters", lambda: ())
    with pytest.raises(desk.MicroPythonError, match="of 32 bits found: run `make setup`"):
        desk.choose(bits=32)


def test_probe_of_something_else_says_that_it_does_not_run():
    with pytest.raises(desk.MicroPythonError, match="false does not run here"):
        desk.probe(["false"])


def test_manifest_paths_are_relative_to_its_folder(tmp_path):
    path = tmp_path / desk.MANIFEST
    about = {"release": "1.26.1", "bits": 32, "loader": "l/ld", "libraries": "l", "program": "p"}
    path.write_text(json.dumps(about))
    found = desk.read_manifest(path)
    assert (found.id, found.version) == ("1.26-32", "1.26")
    assert found.command == (
        f"{tmp_path}/l/ld",
        "--library-path",
        f"{tmp_path}/l",
        f"{tmp_path}/p",
    )
