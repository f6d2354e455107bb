"""The pipeline on a standalone cluster, and a stream killed as a whole: `pytest -m cluster`.

These start several Java processes each and take minutes, so `make test` leaves them out.
"""

import os
import signal
import subprocess
import sys
import time

import paho.mqtt.client as paho
import pyarrow.parquet as pq
import pytest

from host_tests.fleet.captures import simulated
from host_tests.fleet.cluster import (
    EventLog,
    cluster,
    command,
    environment,
    executors,
    submit,
)
from host_tests.fleet.webhdfs import webhdfs
from host_tests.fleet.written import assert_same
from tools.fleet import package
from tools.fleet.simulate.envelope import reading
from tools.fleet.simulate.run import Plan

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark")]
_PLAN = Plan(devices=8, readings=400, seed=4, fault_rate=0.1, wire_rate=0.1)
_LIFE_S = 1200


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """-> (folder of captures, zipped code, tables made with local[1])."""
    folder = tmp_path_factory.mktemp("cluster")
    captures = folder / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(simulated(_PLAN)[0])
    package.write(folder / "fleet.zip")
    status, text = submit(
        "local[1]", folder / "fleet.zip", "audit", captures, "--out", folder / "one"
    )
    assert status == 1, text
    return captures, folder / "fleet.zip", folder / "one"


def test_spark_submit_to_a_master_and_two_workers_gives_the_tables_of_local_1(audited, tmp_path):
    captures, code, one = audited
    with cluster(tmp_path) as master:
        out, log = tmp_path / "out", EventLog(tmp_path / "events")
        audit = ("audit", captures, "--out", out)
        status, text = submit(master, code, *audit, settings=log.settings)
        assert status == 1, text
    assert len(log.tasks()) == 2, "both executors finished tasks"
    assert_same(out, one)


def test_audit_through_hadoop_gives_the_same_tables_from_machines_that_share_nothing(
    audited, tmp_path
):
    """Captures and tables are in WebHDFS, which each executor reaches by a Java of its own."""
    captures, code, one = audited
    with webhdfs() as store, cluster(tmp_path) as master:
        store.put("/captures/a.pcap", (captures / "a.pcap").read_bytes())
        audit = ("audit", store.address + "/captures", "--out", store.address + "/tables")
        status, text = submit(master, code, *audit)
        assert status == 1, text
        for path, (data, _) in store.files.items():
            if path.startswith("/tables/"):
                local = tmp_path / path[1:]
                local.parent.mkdir(parents=True, exist_ok=True)
                local.write_bytes(data)
    assert_same(tmp_path / "tables", one)
    assert (tmp_path / "tables" / "report.html").exists()


def test_audit_when_an_executor_is_killed_in_the_middle_gives_the_same_tables(audited, tmp_path):
    """What it had made is made again by another one, from the captures on."""
    captures, code, one = audited
    out, log = tmp_path / "out", EventLog(tmp_path / "events")
    with cluster(tmp_path) as master:
        audit = ("audit", captures, "--out", out)
        life = subprocess.Popen(
            command(master, code, *audit, settings=log.settings), env=environment(), cwd="/"
        )
        deadline = time.monotonic() + _LIFE_S
        # One may be there much later than the other, if the computer is busy.
        while not log.events("SparkListenerStageCompleted") or len(log.tasks()) < 2:
            assert life.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        running = executors(tmp_path)
        assert len(running) == 2
        killed = min(running)
        os.kill(running[killed], signal.SIGKILL)
        assert life.wait(_LIFE_S) == 1
    removed = {event["Executor ID"] for event in log.events("SparkListenerExecutorRemoved")}
    assert killed in removed
    assert len(log.tasks()) >= 2, "tasks ran on several executors"
    assert_same(out, one)


def _stream(captures, out, *arguments):
    command = [sys.executable, "-m", "tools", "fleet", "stream", captures, "--out", out]
    return subprocess.Popen(
        [str(part) for part in [*command, "--buckets", 2, *arguments]],
        env={**environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def test_stream_when_killed_with_java_and_all_then_started_again_has_the_tables_of_a_batch(
    audited, tmp_path
):
    captures, _, one = audited
    growing, out = tmp_path / "captures", tmp_path / "out"
    growing.mkdir()
    data = (captures / "a.pcap").read_bytes()
    steps = 4
    for step in range(1, steps):
        (growing / "a.pcap").write_bytes(data[: len(data) * step // steps])
        life = _stream(growing, out, "--trigger", 0, "--refresh", 5)
        deadline = time.monotonic() + _LIFE_S
        # Killed at different moments: a batch begun, its rows there, its tables there.
        sign = ("packets", "_stream/manifest.json", "connections")[step - 1]
        before = _changed(out / sign)
        while _changed(out / sign) == before:
            assert life.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(life.pid, signal.SIGKILL)
        life.wait()
    (growing / "a.pcap").write_bytes(data)
    assert _stream(growing, out, "--once").wait(_LIFE_S) == 1
    assert_same(out, one)


def test_live_stream_when_killed_with_java_and_all_then_each_reading_is_a_row_once(
    mosquitto, tmp_path
):
    """QoS 2 throughout, so that each message is a row of `packets` exactly once as well."""
    out, address = tmp_path / "out", "mqtt://%s:%d/k/#" % (mosquitto.host, mosquitto.port)
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="fleet-publisher")
    client.connect(mosquitto.host, mosquitto.port)
    client.loop_start()
    sent = 0

    def publish(count):
        nonlocal sent
        for _ in range(count):
            sent += 1
            payload = reading(257, 1, sent, sent, 1, b"dev", (2100, 3300))
            last = client.publish("k/dev", payload, 2)
        last.wait_for_publish(_LIFE_S)

    signs = (out / "packets", out / "_stream" / "manifest.json", out / "readings")
    for sign in signs:
        before = _changed(sign)
        life = _stream(address, out, "--trigger", 0.5, "--refresh", 2)
        deadline = time.monotonic() + _LIFE_S
        while not sent and "k/#" not in mosquitto.log_text():
            assert life.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        while _changed(sign) == before:
            assert life.poll() is None and time.monotonic() < deadline
            publish(5)
            time.sleep(0.1)
        os.killpg(life.pid, signal.SIGKILL)
        life.wait()
        publish(50)  # while nobody is there: the session keeps them
    life = _stream(address, out, "--trigger", 0.5, "--refresh", 2)
    deadline = time.monotonic() + _LIFE_S
    while _count(out, "readings") < sent:
        assert life.poll() is None and time.monotonic() < deadline
        time.sleep(0.5)
    life.send_signal(signal.SIGINT)
    assert life.wait(_LIFE_S) == 0
    client.disconnect()
    client.loop_stop()
    numbers = sorted(pq.read_table(out / "readings")["sequence"].to_pylist())
    assert numbers == list(range(1, sent + 1))
    assert _count(out, "packets") == sent
    assert _count(out, "losses") == 0


def _count(out, name):
    try:
        return pq.read_table(out / name).num_rows
    except (OSError, ValueError):
        return 0  # not there yet, or just being replaced


def _changed(path):
    return path.stat().st_mtime_ns if path.exists() else 0
