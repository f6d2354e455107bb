"""Puts back what the dialogues replace in the client's modules."""

import pytest

import umqtt31.connection
from host_tests.client.dialogue import clocked_modules


@pytest.fixture(autouse=True)
def restore_modules(monkeypatch):
    for module in clocked_modules():
        monkeypatch.setattr(module, "time", module.time)
    monkeypatch.setattr(umqtt31.connection, "open_socket", umqtt31.connection.open_socket)
