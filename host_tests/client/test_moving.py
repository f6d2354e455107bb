"""umqtt31.simple with a real broker, under CPython and MicroPython; and ssl_params."""

import re
import ssl
import threading

import pytest

from host_tests import patience
from host_tests.brokers.certificates import Certificates
from host_tests.client import dialogue, moving, wire
from host_tests.client.runner import FOLDER
from host_tests.client.scripts import read_scripts
from tools.project import ROOT
from umqtt31 import robust, simple, tls
from umqtt31.handshake import _content
from umqtt31.sslparams import context_of


def test_program_with_a_real_broker_gets_its_messages(desk, mosquitto):
    assert desk(moving, "run", mosquitto.port, "moving") == [20000, 300] + [200] * 50


def test_ssl_params_become_a_context():
    """Checked, but where the program says that it shall not be."""
    for params in (None, {}, {"cert_reqs": ssl.CERT_REQUIRED}, {"do_handshake": False}):
        client = simple.MQTTClient("dev", "broker", ssl=True, ssl_params=params)
        assert client.port == 8883
        assert client.ssl.verify_mode == ssl.CERT_REQUIRED and client.ssl.check_hostname
    unchecked = context_of({"cert_reqs": ssl.CERT_NONE})
    assert unchecked.verify_mode == ssl.CERT_NONE and not unchecked.check_hostname
    for wrong in ({"nonsense": 1}, {"server_side": True}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            context_of(wrong)


def test_ssl_params_of_aws_iot_are_taken_with_roots_beside_them(tmp_path):
    """Programs for AWS IoT give PEM and server_side, and no roots."""
    Certificates.usual(tmp_path, "device")
    params = {"cert": "device.crt", "key": "device.key", "cadata": "ca.crt"}
    params = {name: (tmp_path / file).read_text() for name, file in params.items()}
    assert context_of({**params, "server_side": False})


def test_ssl_params_that_are_wrong_are_told_by_their_own_names(micropython):
    for params, told in (
        (
            "{'server_side': False}",
            "give cadata, or cert_reqs=ssl.CERT_NONE, which checks nothing",
        ),
        ("{'cadata': '-----BEGIN KEY-----'}", "cadata: no CERTIFICATE in the PEM"),
    ):
        program = f"from umqtt31.sslparams import context_of\ncontext_of({params})\n"
        done = micropython.run(program, micropypath=[ROOT / "lib"])
        assert f"ValueError: ssl_params: {told}\n" in done.stdout + done.stderr


def test_ssl_params_take_certificates_as_text_bytes_or_files(monkeypatch):
    given = []
    monkeypatch.setattr(tls, "context_of", lambda *args: given.append(args), raising=False)
    pem = "-----BEGIN CERTIFICATE-----"
    context_of({"cadata": pem, "cert": b"DER", "key": "/key.pem", "cert_reqs": 2})
    context_of({"cadata": None, "cert_reqs": 0})
    assert given == [({"ca": pem, "cert": b"DER", "key": "/key.pem"}, True), ({}, False)]
    assert _content("ca", given[0][0]["ca"]) == pem.encode()


def test_robust_prints_failures_only_where_debug_is_on(capsys):
    client = robust.MQTTClient("dev", "broker")
    client.log(False, OSError(104))
    assert capsys.readouterr().out == ""
    client.DEBUG = True
    client.log(False, OSError(104))
    client.log(True, OSError(111))
    assert capsys.readouterr().out == "mqtt: OSError(104)\nmqtt reconnect: OSError(111)\n"


def test_ssl_params_with_a_server_hostname_check_that_name():
    wrapped = []

    class Context:
        def wrap_socket(self, sock, server_hostname=None, **options):
            wrapped.append((sock, server_hostname, options))

    named = context_of({"server_hostname": "broker.example"})
    named._context = Context()
    named.wrap_socket("sock", server_hostname="10.0.0.7", do_handshake_on_connect=False)
    assert wrapped == [("sock", "broker.example", {"do_handshake_on_connect": False})]


def test_library_that_imports_umqtt_itself_gets_umqtt31(micropython, tmp_path):
    page = (ROOT / "docs" / "guides" / "moving.md").read_text(encoding="utf-8")
    line = re.findall(r"```python\n(from umqtt31\.simple import .*MQTTException\n)```", page)[0]
    (tmp_path / "umqtt").mkdir()
    for name in ("simple", "robust"):
        code = line.replace("umqtt31.simple", f"umqtt31.{name}")
        (tmp_path / "umqtt" / f"{name}.py").write_text(code)
    program = (
        "import umqtt.robust, umqtt31.robust, umqtt31.simple\n"
        "from umqtt.simple import MQTTClient, MQTTException\n"
        "print(MQTTClient is umqtt31.simple.MQTTClient)\n"
        "print(umqtt.robust.MQTTClient is umqtt31.robust.MQTTClient)\n"
    )
    done = micropython.run(program, micropypath=[tmp_path, ROOT / "lib"])
    assert done.stdout == "True\nTrue\n" and not done.stderr


def test_each_line_of_the_page_names_a_test_that_there_is():
    """docs/guides/moving.md."""
    page = (ROOT / "docs" / "guides" / "moving.md").read_text(encoding="utf-8")
    tests = [*FOLDER.rglob("test_*.py"), *(FOLDER.parent / "tls").glob("test_*.py")]
    there = "".join(path.read_text(encoding="utf-8") for path in tests)
    for path in FOLDER.rglob("dialogues/**/*.txt"):
        there += "".join(f"def test_{script.name}()" for script in read_scripts(path))
    rows = re.findall(r"^\| .* \| .* \|(?: (.+?))? \|$", page, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(test_\w+)`", row)]
    assert len(named) > 40
    assert [name for name in named if f"def {name}(" not in there] == []
    # What no test can show: what the library does not have, and what one argument is called.
    untested = [row for row in rows if not row.startswith(("`test_", "the same", "shown by"))]
    assert untested == [""] * 3


def test_publish_of_another_thread_in_the_middle_of_a_write_waits_for_its_end(monkeypatch):
    dialogue.speak(4)
    d = dialogue.Dialogue(clean=True, front=simple.MQTTClient)
    waits, is_written = threading.Event(), threading.Event()
    other = threading.Thread(target=d.client.publish, args=(b"t", b"b", False, 1), daemon=True)
    take = d.stream.write

    def write(buf, at, n):
        if not other.ident:
            other.start()
            assert waits.wait(patience.SECONDS)
        return take(buf, at, n)

    def sleep(_):
        waits.set()
        assert is_written.wait(patience.SECONDS)

    monkeypatch.setattr(d.stream, "write", write)
    monkeypatch.setattr(simple, "sleep_ms", sleep)
    d.stream.feed(wire.publish(b"t", b"a", 1, 7))
    d.stream.answer(wire.puback(7) + wire.publish(b"t", b"b", 1, 1), wire.puback(1))
    d.client.check_msg()
    is_written.set()
    other.join(patience.SECONDS)
    assert d.stream.has_answered()
