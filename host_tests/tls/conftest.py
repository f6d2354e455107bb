"""Certificates, mosquittos that show them, and everything that runs the client."""

import contextlib
import copy
import functools

import pytest

from host_tests.brokers import TLSMosquitto
from host_tests.brokers.certificates import HERE, Certificates
from host_tests.client.runner import call_on
from host_tests.tls import steps
from tools.boards.compile import compile_file, compile_library
from tools.micropython import interpreters
from tools.project import ROOT

# What runs on MicroPython, with all that it imports of the tests.
_SOURCES = ["choice.py", "client/locked_rounds.py", "client/network.py"]
_SOURCES += ["standin/*.py", "tls/steps.py"]
_FULL = [one for one in interpreters() if one.shows_certificates]

# Of P-256, as `openssl ecparam -genkey` puts it before the key.
_PARAMETERS = """\
-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
"""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Every certificate that the tests of this folder use."""
    folder = Certificates.usual(tmp_path_factory.mktemp("tls"), "device")
    folder.make("other", is_authority=True)
    folder.make("rsa", "ca", hosts=HERE, is_rsa=True)
    folder.make("expired", "ca", hosts=HERE, from_days=-2, to_days=-1)
    folder.make("future", "ca", hosts=HERE, from_days=1, to_days=2)
    folder.make("elsewhere", "ca", hosts=("elsewhere.example",))
    folder.make("self-signed", hosts=HERE)
    folder.make("all-wrong", "other", hosts=("elsewhere.example",), from_days=-2, to_days=-1)
    folder.make("rsa-device", "ca", is_rsa=True)
    folder.make("old-device", "ca", from_days=-2, to_days=-1)
    folder.make("stranger", "other")
    folder.lock_key("device")
    _write_as_found_elsewhere(folder.path)
    return folder


def _write_as_found_elsewhere(path):
    # With what openssl writes around PEM, with the line ends of Windows, several at once.
    def read(name):
        return (path / name).read_text()

    texts = {
        "odd.crt": "Certificate:\n    Data:\n" + read("device.crt").replace("\n", "\r\n"),
        "odd.key": f"{_PARAMETERS}{read('device.key')}".replace("\n", "\r\n"),
        "chain.crt": read("device.crt") + read("ca.crt"),
        "roots.crt": read("other.crt") + read("ca.crt"),
        "half.crt": read("ca.crt")[:101] + "\n-----END CERTIFICATE-----\n",
    }
    for name, text in texts.items():
        (path / name).write_text(text, newline="")


@pytest.fixture(scope="session", params=["1.2", "1.3"])
def brokers(request, certificates):
    """brokers(name, is_strict) -> the mosquitto that shows this certificate, started when it is
    asked for; if `is_strict`, it asks for the client's.

    Boards speak TLS 1.2; the desk's MicroPython and CPython speak 1.3 too.
    """
    with contextlib.ExitStack() as running:

        @functools.cache
        def started(name, is_strict):
            options = {"require_certificate": True} if is_strict else {}
            one = TLSMosquitto(certificates.path, name, request.param, **options)
            return running.enter_context(one)

        yield lambda name="server", is_strict=False: started(name, is_strict)


@pytest.fixture(scope="session")
def strict_port(brokers):
    """The port of a broker that asks for the client's certificate."""
    return brokers(is_strict=True).port


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The library and steps.py as .mpy: to compile them takes longer than most of the steps."""
    folder = tmp_path_factory.mktemp("compiled")
    compile_library(folder / "umqtt31", "armv6m", is_plain=True)
    for pattern in _SOURCES:
        for path in (ROOT / "host_tests").glob(pattern):
            target = (folder / path.relative_to(ROOT)).with_suffix(".mpy")
            compile_file(path, target, "armv6m")
    return folder


def _id(one):
    return one.id if one else "cpython"


@pytest.fixture(scope="session", params=[None, *interpreters()], ids=_id)
def run(request, compiled):
    """Call a function of steps.py under CPython or a MicroPython: run(name, *arguments)."""
    return _runner(request.param, compiled)


@pytest.fixture(scope="session", params=[None, *_FULL], ids=_id)
def run_signing(request, compiled):
    """As `run`, where a client's own certificate can be shown at TLS 1.2 and 1.3."""
    return _runner(request.param, compiled)


def _runner(one, compiled):
    def call(name, *arguments):
        if one is None:
            return getattr(steps, name)(*copy.deepcopy(arguments))
        return call_on(one, steps, name, arguments, [compiled], 8_000_000)

    call.is_cpython = one is None
    return call
