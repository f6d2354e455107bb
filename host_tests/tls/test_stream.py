"""A TLS stream as the client uses it: in pieces, without room, closed, resumed."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from host_tests.tls import steps
from tools.demo.listener import Listener
from tools.demo.proxy import Proxy
from umqtt31 import CLOSED
from umqtt31.tls import context_of, wrap


@pytest.fixture(scope="session")
def pair(certificates):
    """Roots, and the device's own certificate."""
    return certificates.ssl("device")


class Relay(Proxy):
    """A proxy that takes orders from another process: a connection to `control` is for the next
    of `orders`, its own methods."""

    def __init__(self, server_port, orders=()):
        super().__init__(server_port)
        self._orders = list(orders)
        self._office = Listener(self._obey)
        self.control = self._office.port

    def close(self):
        """As any proxy's: without a word, as far as TLS goes."""
        self._office.close()
        super().close()

    def _join(self, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super()._join(client)

    def _obey(self, connection):
        getattr(self, self._orders.pop(0))()
        connection.close()


def messages(length):
    return [(b"tls/%d" % qos, b"%d" % qos * length) for qos in range(3)]


def test_messages_pass_both_ways_at_each_qos(run_signing, strict_port, pair):
    assert run_signing("messages", strict_port, pair, 900) == messages(900)


def test_messages_pass_both_ways_with_locked_heap(run_signing, strict_port, pair):
    if not run_signing.is_cpython:
        assert run_signing("locked", strict_port, pair) == ([20, 20, 20], 0)


def test_messages_pass_both_ways_in_asyncio_tasks(run_signing, strict_port, pair):
    expected = sorted((b"aio/%d" % k, b"%x" % k * 900) for k in range(12))
    assert run_signing("tasks", strict_port, pair, 900) == expected


def test_records_that_come_byte_by_byte_are_put_together(
    run_signing, strict_port, pair, monkeypatch
):
    monkeypatch.setattr("tools.demo.proxy._PIECE_BYTES", 1)
    with Relay(strict_port) as relay:
        assert run_signing("messages", relay.port, pair, 100) == messages(100)


def test_writing_without_room_waits_and_loses_nothing(run, brokers, pair):
    with Relay(brokers().port, orders=("hold", "release")) as relay:
        found = run("flood", relay.port, relay.control, {"ca": pair["ca"]}, 40, 40_000)
    assert found == list(range(40))


def test_connection_that_ends_without_a_word_was_closed(run_signing, strict_port, pair):
    """On the desk as on a board."""
    with Relay(strict_port, orders=("close",)) as relay:
        assert run_signing("cut", relay.port, relay.control, pair) == CLOSED


def test_close_after_a_failed_handshake_closes_the_socket(run, brokers, certificates):
    """MicroPython's own close() does not."""
    ssl = certificates.ssl(ca="other")
    was_open, is_open = run("closes_after", brokers().port, "localhost", ssl)
    assert not is_open
    assert was_open or run.is_cpython


def test_context_that_checks_nothing_is_used_as_it_is(run, brokers):
    cases = [[brokers("all-wrong").port, "localhost", "unchecked"]]
    assert run("outcomes", cases) == [b"\x20\x02\x00\x00"]


def test_server_name_is_told_to_the_server(run, pair):
    """Server name indication: it stands in the clear in the first record."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        first_record = pool.submit(_take_record, listener)
        run("outcomes", [[listener.getsockname()[1], "broker.example", {"ca": pair["ca"]}]])
        assert b"\x00\x0ebroker.example" in first_record.result()


def _take_record(listener):
    connection, _ = listener.accept()
    with connection:
        head = connection.recv(5, socket.MSG_WAITALL)
        return connection.recv(head[3] << 8 | head[4], socket.MSG_WAITALL)


@pytest.mark.parametrize("is_strict", [False, True], ids=["anonymous", "certificate"])
def test_second_connection_resumes_the_session_on_cpython(brokers, pair, is_strict):
    """No release of MicroPython can."""
    context = context_of(pair)
    port = brokers(is_strict=is_strict).port
    resumed = []
    for _ in range(3):
        stream, _ = steps.open_stream(port, "localhost", context)
        steps.shake(stream)
        resumed.append(stream.raw.session_reused)
        stream.close()
    assert resumed == [False, True, True]


def test_socket_of_python_itself_is_wrapped_on_the_desk(brokers, certificates):
    sock = socket.create_connection(("127.0.0.1", brokers().port))
    sock.setblocking(False)
    stream = wrap(sock, context_of(certificates.ssl()), "127.0.0.1")
    assert steps.shake(stream) == b"\x20\x02\x00\x00"
    stream.close()


def test_session_of_another_server_is_not_resumed(brokers, pair):
    context = context_of(pair)
    for server in ("localhost", "127.0.0.1"):
        stream, _ = steps.open_stream(brokers().port, server, context)
        steps.shake(stream)
        assert not stream.raw.session_reused
        stream.close()
