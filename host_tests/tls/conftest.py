"""Certificates, mosquittos that show them, and everything that runs the client."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import Certificates
from host_tests.tls import steps
from host_tests.tls.certificates import make_all
from tools.micropython import Interpreter, interpreters
from tools.project import ROOT

_SCRIPT = Path(__file__).parent / "steps.py"
_RUNNERS = [None, *interpreters()]
FULL = [one for one in interpreters() if one.shows_certificates]


class Brokers:
    """A running mosquitto for each certificate, started when its port is asked for."""

    def __init__(self, certificates: Certificates, version: str) -> None:
        self.certificates = certificates
        self.version = version
        self._running: dict[tuple[str, bool], TLSMosquitto] = {}

    def one(self, name: str, is_strict: bool = False) -> TLSMosquitto:
        """The broker that shows the certificate NAME; if `is_strict`, it asks for the client's."""
        key = name, is_strict
        if key not in self._running:
            options = {"require_certificate": True} if is_strict else {}
            broker = TLSMosquitto(self.certificates.path, name, self.version, **options)
            self._running[key] = broker.start()
        return self._running[key]

    def port(self, name: str = "server", is_strict: bool = False) -> int:
        """The port of `one()`."""
        return self.one(name, is_strict).port

    def close(self) -> None:
        for broker in self._running.values():
            broker.close()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one process, so that certificates and brokers are made once."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("tls"))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_all(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session", params=["1.2", "1.3"])
def brokers(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Brokers]:
    """Boards speak TLS 1.2; the desk's MicroPython and CPython speak 1.3 too."""
    running = Brokers(certificates, request.param)
    yield running
    running.close()


def _ids(one: Interpreter | None) -> str:
    return one.id if one else "cpython"


@pytest.fixture(scope="session", params=_RUNNERS, ids=_ids)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable:
    """Call a function of steps.py under CPython or a MicroPython: run(name, *arguments)."""
    return _runner(request.param, tmp_path_factory)


@pytest.fixture(scope="session", params=[None, *FULL], ids=_ids)
def run_signing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable:
    """As `run`, where a client's own certificate can be shown at TLS 1.2 and 1.3."""
    return _runner(request.param, tmp_path_factory)


def _runner(one: Interpreter | None, tmp_path_factory: pytest.TempPathFactory) -> Callable:
    # MicroPython takes no argument of more than 255 bytes from the command line.
    path = tmp_path_factory.mktemp("arguments") / "arguments.json"

    def call(name: str, *arguments: object) -> object:
        if one is None:
            return getattr(steps, name)(*json.loads(json.dumps(arguments)))
        path.write_text(json.dumps(arguments))
        done = one.run(
            _SCRIPT, args=[name, path], micropypath=[ROOT, ROOT / "lib"], heap_bytes=8_000_000
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return ast.literal_eval(done.stdout.splitlines()[-1])

    call.is_cpython = one is None  # type: ignore[attr-defined]
    return call
