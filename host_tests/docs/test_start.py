"""docs/start/index.md, as a reader types it: broker, receiver, program, and both switched off.

Port, period, length of the queue and interpreter are this test's own; everything else stands
as on the page.
"""

import contextlib
import os
import shlex
import shutil
import signal
import sys

import pytest

from host_tests.brokers import free_port
from host_tests.docs import blocks
from host_tests.docs.typed import Terminal
from tools.project import ROOT
from tools.setup.system import BIN

PAGE = "docs/start/index.md"


def on_page(kind, word=""):
    """-> the one block of this kind with this word."""
    (found,) = [text for text in blocks.texts(PAGE, kind) if word in text]
    return found


@pytest.fixture
def desk(tmp_path):
    """Starts the page's commands in a folder of their own; whatever runs is ended."""
    running = contextlib.ExitStack()
    port = free_port()

    def start(command, program=None):
        words = shlex.split(command)
        if words[0].startswith("mosquitto_"):
            words += ["-p", str(port)]
        environment = dict(os.environ)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            environment[name] = str(ROOT / value)
        folders = on_page("sh", "export PATH").partition("=")[2].strip()
        folders = folders.replace("$PWD", str(ROOT)).replace("$PATH", os.environ["PATH"])
        environment["PATH"] = folders.replace(f":{BIN}", "")  # which is the page's to name
        found = shutil.which(words[0], path=environment["PATH"])
        argv = program + words[1:] if program else [found, *words[1:]]
        return running.enter_context(Terminal(argv, tmp_path, environment))

    (tmp_path / "broker.conf").write_text(own(on_page("conf"), "1883", f"{port} 127.0.0.1"))
    if os.geteuid() == 0:
        with (tmp_path / "broker.conf").open("a") as file:
            file.write("user root\n")
    code = own(on_page("python"), '"127.0.0.1"', f'"127.0.0.1", {port}')
    code = own(code, "PERIOD_MS = 1000", "PERIOD_MS = 100")
    (tmp_path / "first.py").write_text(own(code, "max_mqueue_len=90", "max_mqueue_len=20"))
    with running:
        yield start


def own(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


def test_program_that_reaches_no_broker_says_why(desk, tmp_path):
    program = desk("PYTHONPATH=lib python3 first.py", [sys.executable, "-u"])
    program.wait_for("Connection refused")
    program.wait_for("queue full: poll() until there is room")
    port = free_port()
    why = "cannot reach the broker 127.0.0.1 port %d (check both): [Errno 111] Connection refused"
    text, *_ = [b.text for b in blocks.of_kind("python") if b.page == "README.md"]
    (tmp_path / "readme.py").write_text(own(text, '"127.0.0.1"', f'"127.0.0.1", {port}'))
    program = desk("PYTHONPATH=lib python3 readme.py", [sys.executable, "-u"])
    assert program.wait_for(why % port)


def number(count):
    return f"home/sensor-7/number {count}"


@pytest.mark.parametrize("is_board", [False, True], ids=["cpython", "micropython"])
def test_numbers_arrive_whatever_is_switched_off(desk, is_board, micropythons):
    word = "micropython" if is_board else "PYTHONPATH"
    line = on_page("sh", word).splitlines()[-1]
    interpreter = list(micropythons[-1].command) if is_board else [sys.executable, "-u"]

    def start_broker():
        broker = desk(on_page("sh", "mosquitto -c"))
        broker.wait_for("running")
        return broker

    broker = start_broker()
    receiver = desk(on_page("sh", "mosquitto_sub"))
    program = desk(line, interpreter)
    seen = receiver.wait_for(number(3))
    desk(on_page("sh", "mosquitto_pub"))
    program.wait_for("led b'on'")

    broker.stop()
    program.wait_for("queue full: poll() until there is room")
    broker = start_broker()
    seen += receiver.wait_for(number(33))

    broker.stop()
    program.wait_for("accepted 45")
    last = [text for text in ["accepted 45", *program.stop(signal.SIGQUIT)] if "accepted" in text]
    start_broker()
    program = desk(line, interpreter)
    seen += receiver.wait_for(number(1))
    appeared = list(dict.fromkeys(text for text in seen if "number" in text))
    assert appeared == [number(count) for count in range(1, 1 + int(last[-1].split()[1]))]
    program.wait_for("accepted 3")
