"""Every wrong certificate, on both sides, against mosquitto: which text says what."""

import re
import ssl
import subprocess
import time

import pytest

from host_tests.brokers import TLSMosquitto
from host_tests.client.listener import CLOSE, RESET, Broker
from host_tests.docs import blocks
from umqtt31 import tls

ACCEPTED = b"\x20\x02\x00\x00"
TRUST = "certificate of localhost: not trusted"
CLOCK = "certificate of localhost: expired or not yet valid (set the clock first: it says {today})"
HOST = "certificate of localhost: for another host"
REFUSED = "localhost ended the handshake: it wants another certificate from us, or one at all"

# The broker's certificate, the roots, and what the client says.
SERVERS = [
    ("server", "ca", ACCEPTED),
    ("server", "roots", ACCEPTED),
    ("rsa", "ca", ACCEPTED),
    ("server", "other", TRUST),
    ("self-signed", "ca", TRUST),
    ("self-signed", "self-signed", ACCEPTED),
    ("expired", "ca", CLOCK),
    ("future", "ca", CLOCK),
    ("elsewhere", "ca", HOST),
]
# The client's certificate, its key, and the beginning of what it says; mosquitto asks for one.
CLIENTS = [
    ("device", "device", ACCEPTED),
    ("rsa-device", "rsa-device", ACCEPTED),
    ("odd", "odd", ACCEPTED),
    ("chain", "device", ACCEPTED),
    (None, None, REFUSED),
    ("stranger", "stranger", REFUSED),
    ("old-device", "old-device", REFUSED),
]


def test_certificates_made_by_the_commands_of_the_guide_are_accepted(run, tmp_path):
    commands = blocks.texts("docs/guides/tls.md", "sh")
    assert len(commands) == 2
    for block in commands:
        subprocess.run(["sh", "-ec", block], cwd=tmp_path, check=True, capture_output=True)
    roots = {"ca": str(tmp_path / "ca.crt")}
    with TLSMosquitto(tmp_path, "broker") as broker:
        names = ("broker.example", "192.0.2.7")
        assert run("outcomes", [[broker.port, name, roots] for name in names]) == [ACCEPTED] * 2


def test_each_certificate_of_a_server_is_taken_or_named(run, brokers, certificates):
    cases = [
        [brokers(name).port, "localhost", certificates.ssl(ca=roots)] for name, roots, _ in SERVERS
    ]
    days = [time.gmtime()]
    found = run("outcomes", cases)
    days.append(time.gmtime())
    clocks = [CLOCK.format(today=time.strftime("%Y-%m-%d", day)) for day in days]
    for (name, roots, wanted), text in zip(SERVERS, found):
        assert text in (clocks if wanted == CLOCK else [wanted]), (name, roots)


def test_each_certificate_of_a_client_is_taken_or_refused(run_signing, strict_port, certificates):
    cases = [[strict_port, "localhost", certificates.ssl(cert, key)] for cert, key, _ in CLIENTS]
    found = run_signing("outcomes", cases)
    for (cert, _, wanted), text in zip(CLIENTS, found):
        is_right = text == wanted if wanted == ACCEPTED else str(text).startswith(wanted)
        assert is_right, (cert, text)


def test_key_of_another_certificate_is_refused_by_the_peer(run, strict_port, certificates):
    if not run.is_cpython:  # where context_of() says so before
        ssl = certificates.ssl("device", "stranger")
        [text] = run("outcomes", [[strict_port, "localhost", ssl]])
        assert text.startswith(REFUSED)


def test_address_in_place_of_a_name_is_checked_too(run, brokers, certificates):
    ports = brokers().port, brokers("elsewhere").port
    found = run("outcomes", [[port, "127.0.0.1", certificates.ssl()] for port in ports])
    assert found == [ACCEPTED, HOST.replace("localhost", "127.0.0.1")]


def test_every_reason_is_told_where_the_port_tells_it(run, brokers, certificates):
    ssl = certificates.ssl()
    [text] = run("outcomes", [[brokers("all-wrong").port, "localhost", ssl]])
    if run.is_cpython:  # OpenSSL stops at the first
        assert text == TRUST
    else:
        assert text.startswith(TRUST + ", expired or not yet valid (set the clock first")
        assert text.endswith(", for another host")


def test_error_of_the_socket_below_is_named(run):
    """MicroPython gives its number with the wrong sign once the handshake is over."""
    if not run.is_cpython:
        text = run("text_of_number", -104)
        assert text == run("text_of_number", 104) == "[Errno 104] ECONNRESET"


def test_alert_on_a_connection_in_use_is_none_of_the_handshake(run):
    """It says nothing of certificates then: a record that was changed on its way, for one."""
    text = run("text_of_number", -0x7780, True)
    assert "lost: " in text and "30592" in text and "handshake" not in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12, "no memory for TLS: it takes 50,000 bytes.*"),
        (16, "no memory for TLS: it takes 50,000 bytes.*"),  # of Mbed TLS's large numbers
        (-0x6600, "TLS: .*"),
        ("no such name", "no such name"),  # MicroPython's unix port puts words in its place
    ],
)
def test_number_of_an_error_is_told_in_words(run, number, text):
    assert re.fullmatch(text, run("text_of_number", number))


def test_handshake_without_memory_says_how_much_it_takes(run_signing, brokers, certificates):
    """At whatever point of the handshake the memory ends."""
    if not run_signing.is_cpython:
        ca = certificates.file("ca.crt")
        found = [run_signing("starved", brokers().port, ca, kb) for kb in (20, 45, 200)]
        text = "no memory for TLS: it takes 50,000 bytes, 17,000 of them in one piece"
        assert found == [text, text, ACCEPTED]


@pytest.mark.parametrize("end", [CLOSE, RESET])
def test_peer_that_hangs_up_in_the_handshake_is_named(run, certificates, end):
    with Broker((end,)) as peer:
        [text] = run("outcomes", [[peer.port, "localhost", certificates.ssl()]])
    assert text.startswith(REFUSED) and "((" not in text
    assert "30592" not in text  # as CPython and MicroPython alike


class Ended:
    """A socket of Debian 12's Python, 3.11.2, whose peer hung up in the handshake."""

    def recv_into(self, buf):
        raise ssl.SSLZeroReturnError(ssl.SSL_ERROR_ZERO_RETURN, "TLS/SSL connection closed (EOF)")

    send = recv_into


@pytest.mark.parametrize(("name", "numbers"), [("readinto", (4,)), ("write", (0, 4))])
def test_peer_that_hangs_up_on_debian_12s_python_is_named(name, numbers):
    stream = tls.wrap(Ended(), None, "localhost")
    stream._is_wrapped = True
    with pytest.raises(OSError, match="EOF") as caught:
        getattr(stream, name)(bytearray(4), *numbers)
    assert tls.text_of(caught.value, "localhost").startswith(REFUSED)
