"""TLS with checked certificates against mosquitto's own TLS listener.

The packaged unix builds of MicroPython have no `ssl` module, so this runs under
CPython only.
"""

import ssl
import subprocess

import pytest

from host_tests.client.dialogue import code_of
from tools.brokers import Mosquitto
from umqtt31 import NETWORK, MQTTClient

DAYS = ["-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def make_certificate(folder, name, subject_names, issuer=None):
    """Write NAME.crt and NAME.key; signed by `issuer`, or by itself."""
    command = ["openssl", "req", "-x509", *DAYS, "-subj", f"/CN={name}"]
    command += ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
    if subject_names:
        command += ["-addext", f"subjectAltName={subject_names}"]
    if issuer:
        command += ["-CA", folder / f"{issuer}.crt", "-CAkey", folder / f"{issuer}.key"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with a ca, two server certificates that it signed, and another ca."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder, "ca", "")
    make_certificate(folder, "other", "")
    make_certificate(folder, "server", "DNS:localhost,IP:127.0.0.1", "ca")
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example", "ca")
    return folder


def tls_broker(folder, name):
    """A mosquitto that shows the certificate NAME."""
    files = {"certfile": folder / f"{name}.crt", "keyfile": folder / f"{name}.key"}
    return Mosquitto(cafile=folder / "ca.crt", **files)


def context_of(authority, name="ca"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority / f"{name}.crt")
    return context


def test_messages_pass_both_ways_at_each_qos(authority):
    with tls_broker(authority, "server") as broker:
        pass_messages(broker, authority)


def pass_messages(broker, authority):
    client = MQTTClient("tls", "127.0.0.1", broker.port, ssl=context_of(authority))
    received = []
    client.set_callback(lambda topic, msg: received.append((topic, msg)))
    client.connect()
    assert client.subscribe("tls/#", 2) == [2]
    sent = [(b"tls/%d" % qos, b"%d" % qos * 200) for qos in (0, 1, 2)]
    for qos, (topic, payload) in enumerate(sent):
        client.publish(topic, payload, qos=qos)
    for _ in range(100):
        if len(received) == 3 and not client.inflight:
            break
        client.poll(100)
    assert sorted(received) == sent
    client.disconnect()


def check_refused(broker, context):
    client = MQTTClient("tls", "127.0.0.1", broker.port, user="u", password="p", ssl=context)
    assert code_of(client.connect) == NETWORK
    assert not client.is_connected
    assert "as tls" not in broker.log_text()  # so neither CONNECT nor password was sent


def test_broker_of_an_unknown_authority_is_refused(authority):
    with tls_broker(authority, "server") as broker:
        check_refused(broker, context_of(authority, "other"))


def test_broker_with_the_certificate_of_another_host_is_refused(authority):
    with tls_broker(authority, "elsewhere") as broker:
        check_refused(broker, context_of(authority))


def test_broker_without_tls_is_refused(authority):
    with Mosquitto() as broker:
        check_refused(broker, context_of(authority))
