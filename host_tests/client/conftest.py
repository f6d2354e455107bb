"""Runs the dialogues at both levels, and puts back what they replace in the client."""

import pytest

import umqtt31
from host_tests.client import dialogue

_REPLACED = ("time", "socket", "random")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each dialogue runs at level 3 and, if its module does not say otherwise, at 4."""
    if "dialogues" in metafunc.module.__name__:
        levels = getattr(metafunc.module, "LEVELS", (3, 4))
        if metafunc.function.__name__ in getattr(metafunc.module, "LEVEL_3", ()):
            levels = (3,)
        metafunc.parametrize("level", levels, indirect=True)


@pytest.fixture(autouse=True)
def level(request, monkeypatch):
    """What a Dialogue speaks that is not told."""
    monkeypatch.setattr(dialogue, "default_level", getattr(request, "param", 3))


@pytest.fixture(autouse=True)
def restore_modules(monkeypatch):
    assert umqtt31.MQTTClient  # with all modules of it
    for name in _REPLACED:
        for module in dialogue.modules_with(name):
            monkeypatch.setattr(module, name, getattr(module, name))
