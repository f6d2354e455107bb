"""Fixtures for every test: real MicroPython, a real broker, repeatable hypothesis.

`make setup` guarantees what they need; a missing interpreter fails the tests that
ask for it, it never skips them.
"""

import gc
import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from host_tests.brokers import Mosquitto
from tools.micropython import Interpreter, interpreters
from tools.setup.system import SEARCH_PATH

# The same examples in every run, however slow the machine is.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("repeatable")

_IN_ONE_PROCESS = {
    # When a board goes, the system gives its terminal's name to the next one.  A tool that looks
    # for the lost port again must not find the board of another test.
    "boards": "terminals",
    # So that certificates and brokers are made once.
    "tls": "tls",
}


def pytest_configure() -> None:
    """Let tests press Ctrl-C in the programs that they start, and start them as people do.

    A shell ignores it for what it runs in the background, and so would all that begins there.
    Containers often tell Python not to buffer and to write no bytecode; a test that passes only
    then fails for those who have no such setting.
    """
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    os.environ["PATH"] = SEARCH_PATH  # programs that `make setup` unpacked are called by name
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pytest-xdist runs all of such a folder in one process, one after the other."""
    for item in items:
        if group := _IN_ONE_PROCESS.get(item.path.parent.name):
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish() -> None:
    """What all tests share is no garbage; the firmware would look at it with each collect()."""
    gc.freeze()


def pytest_report_header() -> str:
    return "micropython: " + (", ".join(one.id for one in interpreters()) or "none")


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the figures that tests counted: `record_property("figure", text)`."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `micropython` runs once under each interpreter ("1.26-64")."""
    if "micropython" in metafunc.fixturenames:
        found = interpreters()
        if not found:
            pytest.fail("no MicroPython found: run `make setup`", pytrace=False)
        metafunc.parametrize("micropython", found, ids=[one.id for one in found])


@pytest.fixture(scope="session")
def micropythons() -> tuple[Interpreter, ...]:
    """All interpreters, oldest version first, 32 bits before 64."""
    assert interpreters(), "no MicroPython found: run `make setup`"
    return interpreters()


@pytest.fixture(scope="session")
def shared_mosquitto() -> Iterator[Mosquitto]:
    """One broker for all tests of a session that only pass messages through it.

    Topics and client ids have to be the test's own; nobody may stop it.
    """
    with Mosquitto() as broker:
        yield broker


@pytest.fixture
def mosquitto() -> Iterator[Mosquitto]:
    """A broker of this test's own, to be stopped, killed and started again at will."""
    with Mosquitto() as broker:
        yield broker
