"""Runs the dialogues at all levels, and puts back what they replace in the client."""

import sys

import pytest

import umqtt31
from host_tests.choice import modules_with
from host_tests.client import dialogue
from host_tests.client.runner import call_on
from tools.micropython import interpreters
from tools.project import ROOT

_REPLACED = ("time", "random", "ticks_ms", "ticks_add", "ticks_diff", "sleep_ms")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each dialogue runs at levels 3, 4 and 5, if its module does not say otherwise."""
    if "dialogues" in metafunc.module.__name__:
        module, name = metafunc.module, metafunc.definition.originalname
        metafunc.parametrize("level", dialogue.levels_of(module, name), indirect=True)


@pytest.fixture(autouse=True)
def level(request):
    """What a Dialogue speaks that is not told."""
    spoken = getattr(request, "param", 3)
    dialogue.speak(spoken)
    return spoken


@pytest.fixture(autouse=True)
def restore_modules(monkeypatch):
    assert umqtt31.MQTTClient  # with all modules of it
    monkeypatch.setitem(sys.modules, "socket", sys.modules["socket"])
    for name in _REPLACED:
        for module in modules_with(name):
            monkeypatch.setattr(module, name, getattr(module, name))


@pytest.fixture(params=[None, *interpreters()], ids=lambda one: one.id if one else "cpython")
def desk(request):
    """desk(MODULE, NAME, ...) -> what that function returns, in every interpreter in turn."""

    def run(module, name, *args):
        if request.param is None:
            return getattr(module, name)(*args)
        return call_on(request.param, module, name, args, [ROOT, ROOT / "lib"], 800_000)

    return run
