"""What the library does where a port lacks something, played under CPython.

The same runs on real ports in test_on_micropython.py; here it is taken part by part.
"""

import os
import sys

import pytest

from umqtt31 import NETWORK, FileBlockDevice, MQTTClient, MQTTError
from umqtt31.handshake import text_of
from umqtt31.tls import context_of


class FakeSocket:
    """What a socket module hands out; `errors`: call -> errno it raises."""

    def __init__(self, errors):
        self.errors = errors
        self.is_closed = False
        self.is_blocking = True

    def _fail(self, call):
        if call in self.errors:
            raise OSError(self.errors[call], call)

    def setblocking(self, flag):
        self.is_blocking = flag

    def setsockopt(self, *args):
        self._fail("setsockopt")

    def connect(self, address):
        self.address = address
        self._fail("connect")

    def close(self):
        self.is_closed = True


@pytest.fixture
def sockets(monkeypatch):
    """The sockets that were made; set `errors` for those to come."""
    made = []

    class Module:
        SOCK_STREAM = 1
        errors = {}

        @staticmethod
        def getaddrinfo(server, port, *_):
            return [(2, 1, 6, "", (server, port))]

        @classmethod
        def socket(cls, *_):
            made.append(FakeSocket(cls.errors))
            return made[-1]

    monkeypatch.setitem(sys.modules, "socket", Module)
    Module.made = made
    return Module


def open_tcp():
    """-> the socket that a client opens."""
    return MQTTClient("a", "broker")._open()


def test_socket_when_port_has_no_such_option_then_opens_without_it(sockets):
    sockets.errors = {"setsockopt": 92}
    sock = open_tcp()
    assert sock.address == ("broker", 1883)
    assert not sock.is_blocking and not sock.is_closed


@pytest.mark.parametrize("number", [11, 36, 115, 119])
def test_socket_when_it_goes_on_connecting_then_that_is_no_error(sockets, number):
    sockets.errors = {"connect": number}
    assert not open_tcp().is_closed


@pytest.mark.parametrize("number", [101, 111, 113])
def test_socket_when_connecting_fails_at_once_then_it_is_closed(sockets, number):
    sockets.errors = {"connect": number}
    with pytest.raises(OSError) as caught:
        open_tcp()
    assert caught.value.errno == number
    assert [sock.is_closed for sock in sockets.made] == [True]


def test_socket_when_ctrl_c_comes_while_it_connects_then_it_is_closed(sockets, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeSocket, "connect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_tcp()
    assert [sock.is_closed for sock in sockets.made] == [True]


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

    monkeypatch.delitem(sys.modules, "umqtt31.errors")
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


def test_look_up_of_the_program_takes_the_place_of_the_port_s(sockets):
    """Which waits for its name server, on a Pico W longer than the watchdog does."""
    client = MQTTClient("a", "broker", 1884)
    asked = []

    def look_up(server, port):
        asked.append((server, port))
        if len(asked) == 1:
            raise OSError("not known yet")
        return 2, 1, 6, "", ("10.0.0.9", port)

    client.look_up = look_up
    with pytest.raises(MQTTError, match="broker port 1884 .*: not known yet"):
        client.connect()
    assert sockets.made == []
    sockets.errors = {"connect": 111}
    with pytest.raises(MQTTError, match="111"):
        client.connect()
    assert sockets.made[0].address == ("10.0.0.9", 1884)
    assert asked == [("broker", 1884)] * 2
