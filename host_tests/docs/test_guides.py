"""The programs of guides that need something around them: a broker, files, a board's modules."""

import re
import subprocess
import sys
import types
import unittest.mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host_tests.docs import blocks
from host_tests.docs.typed import Terminal
from host_tests.lint import ports
from host_tests.patience import SECONDS
from host_tests.running import CPYTHON
from tools.fleet import schemas
from tools.project import ROOT
from umqtt31 import FULL, FileBlockDevice, Journal, MQTTClient, MQTTError


def started(folder, code, port, interpreter):
    """A program of a page in a terminal, its broker at this port."""
    path = folder / "program.py"
    path.write_text(re.sub(r'"(127\.0\.0\.1|broker\.local)"', f'"127.0.0.1", {port}', code))
    return Terminal(interpreter.argv(path), folder, interpreter.environment())


def publish(port, topic, payload, *more):
    command = ["mosquitto_pub", "-p", str(port), "-q", "1", "-t", topic, "-m", payload, *more]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("is_board", [False, True], ids=["cpython", "micropython"])
def test_asyncio_md_program_switches_the_lamp(is_board, tmp_path, mosquitto, micropythons):
    (code,) = blocks.texts("docs/guides/asyncio.md", "python")
    states = ["mosquitto_sub", "-p", str(mosquitto.port), "-q", "1", "-i", "receiver", "-c"]
    states += ["-t", "lamp/state"]
    subprocess.run([*states, "-E"], check=True)  # the broker keeps what comes from here on
    interpreter = micropythons[-1] if is_board else CPYTHON
    with (
        Terminal(states, tmp_path) as receiver,
        started(tmp_path, code, mosquitto.port, interpreter) as program,
    ):
        assert receiver.wait_for("on") == ["on"]
        publish(mosquitto.port, "lamp/set", "off")
        assert program.wait_for("b'lamp/set' b'off'") == ["b'lamp/set' b'off'"]
        assert receiver.wait_for("off") == ["off"]


@pytest.mark.parametrize(("number", "name"), [(0, "simple"), (2, "robust")])
def test_moving_md_changes_one_line_of_umqtt_programs(
    number, name, tmp_path, mosquitto, micropythons
):
    """The program before it finds umqtt, as the page says a library does."""
    page = (ROOT / "docs/guides/moving.md").read_text(encoding="utf-8")
    assert f"`from umqtt.{name} import MQTTClient`" in page
    found = blocks.texts("docs/guides/moving.md", "python")
    program = found[number].replace('.1"', f'.1", {mosquitto.port}')
    (tmp_path / "umqtt").mkdir()
    shim = found[1].replace("31.simple", f"31.{name}")
    (tmp_path / "umqtt" / f"{name}.py").write_text(shim)
    path = tmp_path / "program.py"
    for text in (program, program.replace("umqtt31.", "umqtt.")):
        path.write_text(text)
        done = micropythons[-1].run(path, timeout=SECONDS, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == {"simple": "b'lamp-1/set' b'on'\n", "robust": ""}[name]


@pytest.mark.parametrize(("before", "after"), [(3, 4), (5, 6)], ids=["mqtt_as", "MiniMQTT"])
def test_moving_md_program_behind_the_move_gets_its_message(
    before, after, tmp_path, mosquitto, micropythons
):
    """The one before it is only compiled: neither client is a part of this project."""
    found = blocks.texts("docs/guides/moving.md", "python")
    compile(found[before], "before", "exec")
    publish(mosquitto.port, "lamp-1/set", "on", "-r")
    with started(tmp_path, found[after], mosquitto.port, micropythons[-1]) as program:
        assert program.wait_for("b'lamp-1/set' b'on'") == ["b'lamp-1/set' b'on'"]


def test_tls_md_program_takes_the_certificate_made_above_it(tmp_path, micropythons):
    for text in blocks.texts("docs/guides/tls.md", "sh"):
        subprocess.run(["sh", "-ec", text], cwd=tmp_path, check=True, capture_output=True)
    (code,) = blocks.texts("docs/guides/tls.md", "python")
    path = tmp_path / "program.py"
    path.write_text(code)
    for one in (CPYTHON, micropythons[-1]):
        done = one.run(path, timeout=SECONDS, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_sensor_node_md_sensors_measure(monkeypatch):
    """On a stand-in for the bus: who made them knows which they are."""
    (code,) = blocks.texts("docs/guides/sensor-node.md", "python")
    monkeypatch.syspath_prepend(ROOT / "firmware")
    machine = types.SimpleNamespace(ADC=unittest.mock.Mock())
    monkeypatch.setitem(sys.modules, "machine", machine)
    scope = {"i2c": lambda: "bus"}
    exec(compile(code, "sensor-node.md", "exec"), scope)
    assert [type(one).__name__ for one in scope["sensors"]()] == ["RP2Temperature", "SHT3x"]


def test_fleet_tables_md_program_finds_its_columns(tmp_path):
    (code,) = blocks.texts("docs/reference/fleet-tables.md", "python")
    for name in re.findall(r'"OUT/(\w+)"', code):
        schema = schemas.TABLES[name]
        (tmp_path / "OUT" / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([], schema), tmp_path / "OUT" / name / "part.parquet")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kilobytes", [16, 32])
def test_qos_md_says_how_many_messages_fit(kilobytes, tmp_path):
    scope = {}
    exec(compile(blocks.texts("docs/guides/qos.md", "python")[1], "qos.md", "exec"), scope)
    store = Journal(FileBlockDevice(str(tmp_path / "journal"), kilobytes // 4))
    client = MQTTClient("sensor-7", "127.0.0.1", store=store, max_mqueue_len=1000)
    fit = scope["room"](kilobytes * 1024)
    for number in range(fit):
        client.publish(b"home/room", b"%d" % number, qos=1)
    with pytest.raises(MQTTError) as full:
        client.publish(b"home/room", b"one more", qos=1)
    assert full.value.code == FULL


def test_packages_md_installs_with_what_the_port_has(tmp_path):
    installs, freezes = blocks.texts("docs/guides/packages.md", "python")
    path = tmp_path / "install.py"
    path.write_text(installs)
    assert not ports.missing_on("esp32", (str(path),))
    included = []
    exec(compile(freezes, "packages.md", "exec"), {"include": included.append})
    assert included == ["dist/freeze/manifest.py"]  # host_tests/frozen builds with it
