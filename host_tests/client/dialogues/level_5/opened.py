"""Connections of level 5 on which the broker says something in CONNACK."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import connack, properties
from host_tests.standin.stream import ScriptedStream


def opened(d, packet, reply=None, clean=True):
    """The client connects with just this CONNECT -> session present."""
    d.stream = ScriptedStream()
    d.stream.answer(packet, reply or connack())
    is_present = d.client.connect(clean, stream=d.stream)
    assert d.stream.has_answered()
    return is_present


def allowed(**said):
    """-> a Dialogue whose broker says this in CONNACK."""
    d = Dialogue(is_connected=False)
    opened(d, d.connect_packet(True), connack(0, 0, properties(**said)))
    return d
