"""What may be given as `ssl`, and what is said of everything else."""

import re
import ssl
from pathlib import Path

import pytest

from umqtt31.tls import context_of

MISSING = "ca: no roots in this port"


KIND = "TypeError: ssl must be True, a dict or an SSLContext"
PAIR = "ValueError: ssl: cert and key belong together"
BOTH = "ValueError: ssl: cert, key: "


def files(certificates, **names):
    """The same with paths in place of the names of files."""
    return {key: certificates.file(name) for key, name in names.items()}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, KIND),
        ("ca.crt", KIND),
        ({"cafile": "x"}, "ValueError: ssl: 'cafile' is none of ca, cert, key"),
        ({"ca": 5}, "TypeError: ssl: ca must be a file name or bytes"),
        ({"cert": "device.crt"}, PAIR),
        ({"ca": "ca.crt", "key": "device.key"}, PAIR),
        ({"ca": "nowhere.crt"}, "ValueError: ssl: cannot read ca '.*/nowhere.crt': .*"),
        ({"ca": "device.key"}, "ValueError: ssl: ca: no CERTIFICATE in the PEM"),
        ({"ca": "device.key.der"}, "ValueError: ssl: ca: invalid.*"),
        ({"ca": "half.crt"}, "ValueError: ssl: ca: .*"),
        ({"ca": "ca.crt", "cert": "device.key", "key": "device.key"}, f"{BOTH}no CERTIFICATE.*"),
        ({"ca": "ca.crt", "cert": "device.key.der", "key": "device.key"}, f"{BOTH}.*"),
        ({"ca": "ca.crt", "cert": "device.crt", "key": "ca.crt"}, f"{BOTH}no PRIVATE KEY.*"),
        ({"ca": "ca.crt", "cert": "device.crt", "key": "device.locked.key"}, f"{BOTH}.*"),
        ({"ca": "ca.crt", "cert": "device.crt.der", "key": "ca.crt.der"}, f"{BOTH}.*"),
    ],
)
def test_wrong_value_is_an_error_that_names_it(run, certificates, value, text):
    if isinstance(value, dict) and value != {"ca": 5}:
        value = files(certificates, **value)
    assert re.fullmatch(text, run("context_error", value))


def test_text_of_a_pem_is_taken_and_never_shown(run, certificates):
    names = files(certificates, ca="ca.crt", cert="device.crt", key="device.key")
    texts = {name: Path(path).read_text() for name, path in names.items()}
    assert run("context_error", texts) == ""
    for name in texts:
        broken = texts | {name: "-----BEGIN PRIVATE KEY-----\nsecret\n"}
        found = run("context_error", broken)
        assert found.startswith("ValueError: ssl: ") and "secret" not in found


def test_pem_and_der_as_file_and_as_bytes_are_taken(run, certificates):
    for end in ("", ".der"):
        for name in ("device", "rsa-device"):
            names = {"ca": f"ca.crt{end}", "cert": f"{name}.crt{end}", "key": f"{name}.key{end}"}
            names = files(certificates, **names)
            assert run("context_error", names) == ""
            assert run("context_error", {key: [path] for key, path in names.items()}) == ""


@pytest.mark.parametrize("value", [True, {}, {"cert": "device.crt", "key": "device.key"}])
def test_ports_without_roots_say_what_to_give(run, certificates, value):
    if value and value is not True:
        value = files(certificates, **value)
    text = f'ValueError: ssl: {MISSING}, give {{"ca": file name or bytes}}'
    assert run("context_error", value) == ("" if run.is_cpython else text)


def test_contexts_that_we_make_check_certificate_and_host():
    context = context_of(True)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_context_is_taken_as_it_is():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    assert context_of(context) is context
    assert not context.check_hostname


def test_key_of_another_certificate_is_found_where_the_port_looks(run, certificates):
    """MicroPython does not look; then the peer refuses, see test_errors."""
    value = files(certificates, ca="ca.crt", cert="device.crt", key="stranger.key")
    found = run("context_error", value)
    assert found.startswith("ValueError: ssl: cert, key: ") if run.is_cpython else not found
