"""What the library does where a port lacks something, played under CPython.

The same runs on real ports in test_on_micropython.py; here it is taken part by part.
"""

import os
import sys
from unittest.mock import Mock, call

import pytest

from host_tests.standin.sockets import Sockets
from umqtt31 import NETWORK, FileBlockDevice, MQTTClient, MQTTError
from umqtt31.handshake import text_of
from umqtt31.tls import context_of


@pytest.fixture
def sock(monkeypatch):
    """What a client's sockets are."""
    sock = Mock()
    monkeypatch.setitem(sys.modules, "socket", Sockets(lambda *_: sock))
    return sock


def test_socket_when_port_has_no_such_option_then_opens_without_it(sock):
    sock.setsockopt.side_effect = OSError(92, "setsockopt")
    MQTTClient("a", "broker")._open()
    sock.connect.assert_called_once_with(("broker", 1883))
    sock.setblocking.assert_called_once_with(False)
    assert not sock.close.called


@pytest.mark.parametrize("number", [11, 36, 115, 119])
def test_socket_when_it_goes_on_connecting_then_that_is_no_error(sock, number):
    sock.connect.side_effect = OSError(number, "connect")
    MQTTClient("a", "broker")._open()
    assert not sock.close.called


@pytest.mark.parametrize("error", [OSError(101), OSError(111), OSError(113), KeyboardInterrupt()])
def test_socket_when_connecting_fails_at_once_then_it_is_closed(sock, error):
    sock.connect.side_effect = error
    with pytest.raises(type(error)) as caught:
        MQTTClient("a", "broker")._open()
    assert caught.value is error
    sock.close.assert_called_once_with()


def test_connect_when_build_has_no_sockets_then_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "socket", None)
    with pytest.raises(MQTTError, match="no sockets"):
        MQTTClient("a", "broker").connect()


def test_error_when_no_memory_for_its_text_then_has_its_number(monkeypatch):
    class NoMemory:
        """Importing the texts takes memory that is not there."""

        def find_spec(self, name, path=None, target=None):
            if name == "umqtt31.errors":
                raise MemoryError

    monkeypatch.delitem(sys.modules, "umqtt31.errors", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoMemory(), *sys.meta_path])
    error = MQTTError(NETWORK)
    assert (error.code, str(error)) == (NETWORK, "error 256")


def test_file_when_port_has_no_fsync_then_writes_all_the_same(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "fsync")
    device = FileBlockDevice(str(tmp_path / "journal.bin"), 2)
    device.writeblocks(1, b"kept", 5)
    device.close()
    assert (tmp_path / "journal.bin").read_bytes()[4096 + 5 :][:4] == b"kept"


@pytest.mark.parametrize(("number", "is_fat"), [(22, True), (2, False)])
def test_file_when_the_port_has_no_fsync_then_fat_is_refused(
    monkeypatch, tmp_path, number, is_fat
):
    monkeypatch.delattr(os, "fsync")

    def stat(path):
        assert path.endswith("?")  # a name that FAT alone calls invalid
        raise OSError(number)

    monkeypatch.setattr("umqtt31.fileblockdevice.os.stat", stat)
    path = str(tmp_path / "journal.bin")
    if is_fat:
        with pytest.raises(ValueError, match="would lie on FAT"):
            FileBlockDevice(path, 2)
    else:
        FileBlockDevice(path, 2).close()


def test_roots_when_the_port_has_none_then_they_are_asked_for(monkeypatch):
    class Context:
        """Of MicroPython: it has no roots, and looks at no names before a connection."""

        def __init__(self, *_):
            self.verify_mode = None

    monkeypatch.setattr("umqtt31.tls.tls.SSLContext", Context)
    with pytest.raises(ValueError, match="no roots in this port"):
        context_of(True)
    assert context_of({}, False).verify_mode == 0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("The certificate is not correctly signed by the trusted CA"), "not trusted"),
        (ValueError("some other\n reason"), "TLS: some other reason"),
    ],
)
def test_errors_that_mbed_tls_tells_in_words_are_told_to_people(error, text):
    assert text_of(error, "broker").endswith(text)


def test_file_when_asked_for_an_operation_it_does_not_know_then_answers_0(tmp_path):
    device = FileBlockDevice(str(tmp_path / "journal.bin"), 2)
    for operation in (1, 2, 7):  # MicroPython's initialise, shut down, and none
        assert device.ioctl(operation, 0) == 0
    assert device.ioctl(4, 0) == 2
    device.close()


# Of Linux and lwIP, of the ESP32, of MicroPython's unix port.
@pytest.mark.parametrize("ssl", [None, Mock()], ids=["plain", "tls"])
@pytest.mark.parametrize("reason", [-2, -3, -202, "[addrinfo error -2]"])
def test_name_that_is_not_known_is_told(sock, reason, ssl):
    client = MQTTClient("a", "broker", ssl=ssl)
    client.look_up = Mock(side_effect=OSError(reason))
    with pytest.raises(MQTTError, match="cannot reach .*: name broker is not known"):
        client.connect()


def test_look_up_of_the_program_takes_the_place_of_the_port_s(sock):
    """Which waits for its name server, on a Pico W longer than the watchdog does."""
    client = MQTTClient("a", "broker", 1884)
    found = 2, 1, 6, "", ("10.0.0.9", 1884)
    client.look_up = Mock(side_effect=[OSError("not known yet"), found])
    with pytest.raises(MQTTError, match="broker port 1884 .*: not known yet"):
        client.connect()
    assert not sock.connect.called
    sock.connect.side_effect = OSError(111, "connect")
    with pytest.raises(MQTTError, match="111"):
        client.connect()
    sock.connect.assert_called_once_with(("10.0.0.9", 1884))
    assert client.look_up.call_args_list == [call("broker", 1884)] * 2
