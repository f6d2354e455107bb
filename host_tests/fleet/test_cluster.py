"""The pipeline on a standalone cluster: `make test-cluster`.

These start several Java processes each and take minutes, so `make test` leaves them out.
"""

import os
import signal
import subprocess
import time

import pytest

from host_tests.fleet import store
from host_tests.fleet.captures import simulated
from host_tests.fleet.cluster import EventLog, cluster, command, environment, executors, submit
from host_tests.fleet.simulate.run import Plan
from tools.fleet import schemas, tables
from tools.fleet.spark import engine

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("spark")]
# More than what one task does alone.
_PLAN = Plan(devices=8, readings=9_000, seed=4, fault_rate=0.1, wire_rate=0.1)
_LIFE_S = 1200


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """-> (folder of captures, zipped code, tables made with local[1])."""
    folder = tmp_path_factory.mktemp("cluster")
    captures = folder / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(simulated(_PLAN)[0])
    engine.package(folder / "fleet.zip")
    code, one = folder / "fleet.zip", folder / "one"
    status, text = submit("local[1]", None, "audit", captures, "--out", one)
    assert status == 1, text
    return captures, code, one


def test_spark_submit_to_a_master_and_two_workers_gives_the_tables_of_local_1(audited, tmp_path):
    captures, code, one = audited
    with cluster(tmp_path) as master:
        out, log = tmp_path / "out", EventLog(tmp_path / "events")
        audit = ("audit", captures, "--out", out)
        status, text = submit(master, code, *audit, settings=log.settings)
        assert status == 1, text
    assert len(log.tasks()) == 2, "both executors finished tasks"
    _assert_same(out, one)


def test_audit_in_a_store_gives_the_same_tables(audited, tmp_path):
    """Captures and tables are in S3, which the machines reach without sharing a disk."""
    captures, code, one = audited
    with store.store() as (address, client), cluster(tmp_path) as master:
        client.upload_file(str(captures / "a.pcap"), "fleet", "captures/a.pcap")
        audit = ("audit", address("captures"), "--out", address("tables"))
        status, text = submit(master, code, *audit)
        assert status == 1, text
        found = client.list_objects_v2(Bucket="fleet", Prefix="tables/")["Contents"]
        for key in (one["Key"] for one in found if not one["Key"].endswith("/")):  # of a folder
            local = tmp_path / key
            local.parent.mkdir(parents=True, exist_ok=True)
            client.download_file("fleet", key, str(local))
    _assert_same(tmp_path / "tables", one)
    assert (tmp_path / "tables" / "report.html").exists()


def _assert_same(one, other):
    for name in schemas.TABLES:
        found = [sorted(map(repr, tables.read(out, name).to_pylist())) for out in (one, other)]
        assert found[0] == found[1], name


def test_audit_when_an_executor_is_killed_in_the_middle_gives_the_same_tables(audited, tmp_path):
    """What it had made is made again by another one, from the captures on."""
    captures, code, one = audited
    out, log = tmp_path / "out", EventLog(tmp_path / "events")
    with cluster(tmp_path) as master:
        audit = ("audit", captures, "--out", out)
        words = command(master, code, *audit, settings=log.settings)
        life = subprocess.Popen(words, env=environment(), cwd="/")
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
    _assert_same(out, one)
