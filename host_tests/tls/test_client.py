"""connect() and reconnect() with `ssl`: whatever is wrong is an MQTTError that says so."""

import contextlib
import socket
import ssl as python_ssl

import pytest

from host_tests.brokers import Mosquitto, free_port
from host_tests.standin import packets
from host_tests.tls.test_errors import CLIENTS, REFUSED, SERVERS
from tools.demo.listener import Listener
from umqtt31 import NETWORK, TIMEOUT, MQTTClient, MQTTError
from umqtt31.simple import MQTTClient as SimpleClient

SERVER = "127.0.0.1"
WRONG_SERVERS = [one for one in SERVERS if isinstance(one[2], str)]
GONE = (None, 32, 104)  # an alert, or what a socket says whose peer did not wait for us
WRONG_CLIENTS = [one for one in CLIENTS if isinstance(one[2], str)]


def check(found, text, *numbers):
    """Both calls failed in the same way, and say `text`; `numbers` may be the system's."""
    assert [code for code, _, _ in found] == [NETWORK] * 2
    assert {errno for _, errno, _ in found} <= set(numbers or [None])
    for _, _, said in found:
        assert text.replace("localhost", SERVER) in said


def test_wrong_certificate_of_the_server_is_an_mqtt_error(run, brokers, certificates):
    cases = [
        [brokers(name).port, SERVER, certificates.ssl(ca=roots)]
        for name, roots, _ in WRONG_SERVERS
    ]

    def accepted():
        return [brokers(x).log_text().count("Sending CONNACK") for x, _, _ in WRONG_SERVERS]

    before = accepted()
    for found, (_, _, text) in zip(run("refusals", cases), WRONG_SERVERS):
        check(found, text.partition(" (")[0])
    assert accepted() == before  # so neither client id nor password was sent


def test_name_that_ssl_params_give_is_the_one_in_the_error(brokers, certificates):
    params = {"cadata": certificates.file("ca.crt"), "server_hostname": "broker.example"}
    client = SimpleClient("tls", SERVER, brokers("elsewhere").port, ssl=True, ssl_params=params)
    with pytest.raises(MQTTError, match="certificate of broker.example: "):
        client.connect()


def test_refused_certificate_of_ours_is_an_mqtt_error(run, strict_port, certificates):
    cases = [[strict_port, SERVER, certificates.ssl(cert, key)] for cert, key, _ in WRONG_CLIENTS]
    for found in run("refusals", cases):
        check(found, REFUSED, *GONE)


def test_peer_without_tls_or_without_a_broker_is_an_mqtt_error(run, certificates):
    ssl = certificates.ssl()
    with Mosquitto() as broker:
        cases = [[broker.port, SERVER, ssl], [free_port(), SERVER, ssl]]
        without_tls, nobody = run("refusals", cases)
    check(without_tls, REFUSED, *GONE)
    check(nobody, "[Errno 111] ", 111)


def test_handshake_without_an_answer_ends_in_a_time_out(run, certificates):
    """connect_timeout is 3 s here."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert run("silence", port, certificates.ssl()) == (TIMEOUT, 3)


def test_program_that_waits_with_select_gets_all_messages_of_a_record(run, certificates):
    """The broker writes all of them as one TLS record, and nothing more."""
    context = python_ssl.SSLContext(python_ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.file("server.crt"), certificates.file("server.key"))
    messages = [b"%d" % number for number in range(5)]

    def serve(connection):
        with contextlib.suppress(OSError), context.wrap_socket(connection, True) as link:
            link.recv(4096)  # CONNECT
            link.sendall(packets.connack(0))
            link.sendall(b"".join(packets.publish(b"burst", one) for one in messages))
            while link.recv(4096):
                pass

    with Listener(serve) as broker:
        assert run("waiting", broker.port, certificates.ssl(), len(messages)) == messages


@pytest.mark.parametrize("ssl", [7, {"cafile": "ca.crt"}, {"cert": b""}])
def test_wrong_option_is_refused_by_the_constructor(ssl):
    with pytest.raises((TypeError, ValueError), match="ssl"):
        MQTTClient("a", "b", ssl=ssl)


@pytest.mark.parametrize(("ssl", "port"), [(None, 1883), (False, 1883), (True, 8883), ({}, 8883)])
def test_port_follows_the_option(ssl, port):
    assert MQTTClient("a", "b", ssl=ssl)._address[1] == port
