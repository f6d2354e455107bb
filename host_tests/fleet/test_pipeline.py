"""The whole pipeline on Spark gives what its parts give without it, in any arrangement."""

import gzip
import os
import random
import re
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from host_tests.fleet.captures import Capture, audit, decode, pieces, rows, simulated
from host_tests.fleet.simulate.run import Plan, json_lines
from host_tests.fleet.test_truth import expected, found_in
from tools.fleet import batch, outcome, schemas
from tools.fleet.capture import files
from tools.fleet.report import collect, devices
from tools.fleet.spark import job

PLAN = Plan(devices=8, readings=300, seed=5, fault_rate=0.2, wire_rate=0.2, levels=(3, 4, 5))
_KEYS = {
    "packets": ("connection", "number", "direction", "packet_type", "ts", "client_id", "topic"),
    "connections": ("connection", "client_id", "session", "end_reason", "packets_c2s"),
    "flows": ("client_id", "direction", "topic", "packet_id", "first_sent", "times_sent", "state"),
    "sequences": ("client_id", "direction", "topic", "qos", "messages", "latency_p99_ms"),
    "violations": ("requirement", "client_id", "connection", "number", "by", "detail"),
    "keepalive": ("connection", "keep_alive_s", "longest_silence_s", "late", "pings"),
    "readings": ("device", "boot", "stream", "sequence", "ts", "times_delivered", "redelivered"),
    "losses": ("kind", "client_id", "device", "boot", "first_sequence", "last_sequence"),
    "gaps": ("connection", "direction", "kind", "bytes", "ts"),
}


@pytest.fixture(scope="module")
def capture():
    """-> (bytes, truth) of a small fleet with all kinds of faults."""
    return simulated(PLAN)


_MEGABYTES = [(0, 2, 1), (5, 2, 2), (60, 2, 2), (100, 2, 4), (100, 8, 8), (300, 8, 16)]


@pytest.mark.parametrize(("megabytes", "cores", "wanted"), [*_MEGABYTES, (1 << 20, 12, 4092)])
def test_all_cores_judge_as_many_buckets(megabytes, cores, wanted):
    sources = [files.Source("a.pcap", "a.pcap", "", size_bytes=megabytes << 20)]
    assert job.count_buckets(sources, cores) == wanted


@pytest.mark.parametrize(
    ("buckets", "cores", "wanted"),
    [(1, 2, 1), (2, 2, 2), (4, 2, 2), (5, 2, 4), (8, 2, 4), (8, 32, 8), (4092, 12, 2052)],
)
def test_behind_the_judging_all_cores_have_half_as_many_buckets(buckets, cores, wanted):
    assert job.count_later_buckets(buckets, cores) == wanted


def _run(spark, folder, out, **options):
    return job.run(spark, folder, out, job.Options(**options))


def _written(out, name):
    return pq.read_table(out / name)


def _sorted(table, name):
    return sorted(rows(table, *_KEYS[name]), key=repr)


@pytest.fixture(scope="module")
def audited(spark, capture, tmp_path_factory):
    """-> (folder of tables, result), from a capture split into three files."""
    folder = tmp_path_factory.mktemp("captures")
    out = tmp_path_factory.mktemp("tables")
    one, packed, other = pieces(capture[0], random.Random(1), 3)
    parts = {"m.pcap": one, "a.pcap.gz": gzip.compress(packed), "z.cap": other}
    for name, part in parts.items():
        (folder / name).write_bytes(part)
    for name in ("broken.pcap", "live.pcap"):
        (folder / name).write_bytes(b"\xd4\xc3\xb2\xa1 no capture")
    os.utime(folder / "broken.pcap", (0, 0))
    (folder / "notes.txt").write_text("no capture")
    return out, _run(spark, folder, out, buckets=3)


def test_tables_of_a_split_capture_equal_those_made_without_spark(audited, capture, tmp_path):
    """Order of files, splitting and partitions change nothing."""
    out, _ = audited
    path = tmp_path / "whole.pcap"
    path.write_bytes(capture[0])
    events, _ = decode(path)
    plain = audit(events)
    # Those that can be answered: not with packet id 0.
    plain["flows"] = plain["messages"].filter(plain["messages"]["state"].is_valid())
    for name in _KEYS:
        if name in plain:
            assert _sorted(_written(out, name), name) == _sorted(plain[name], name), name
    is_packet = pa.compute.is_in(events["packet_type"], pa.array(schemas.PACKET_TYPES))
    packets = events.filter(is_packet)
    assert _sorted(_written(out, "packets"), "packets") == _sorted(packets, "packets")


def test_one_bucket_behind_two_gets_what_both_had(spark, audited, capture, tmp_path, monkeypatch):
    """As on a computer with one core."""
    (tmp_path / "a.pcap").write_bytes(capture[0])
    monkeypatch.setattr(job, "count_later_buckets", lambda *_: 1)
    found = _run(spark, tmp_path, tmp_path.with_name("tables"), buckets=2)
    for name in ("readings", "losses", "sequences", "violations"):
        assert found.rows[name] == audited[1].rows[name], name


def test_latency_of_a_device_is_of_its_slowest_topic_wherever_each_was_judged():
    parts = []
    for topic, waits in (("fast", [1.0, 2, 3, 4, 5]), ("slow", [10.0, 20, 30])):
        same = {"site": "default", "device": "dev", "topic": topic}
        parts.append(pa.Table.from_pylist([same | {"latency_ms": one} for one in waits]))
    for tables in (parts, [pa.concat_tables(parts)]):
        found = devices.merge([devices.partial({"latency": table}) for table in tables])
        assert rows(found, "client_id", "latency_p50_ms", "latency_p95_ms") == [("dev", 20, 20)]


def test_tables_hold_what_the_simulator_did(audited, capture):
    out, result = audited
    tables = {name: _written(out, name) for name in schemas.TABLES}
    sequences = tables["sequences"]
    tables["routes"] = sequences.filter(pa.compute.equal(sequences["direction"], "s2c"))
    found = found_in(tables)
    for name, wanted in expected(capture[1]).items():
        assert found[name] == wanted, name
    assert result.findings["violations"] == len(capture[1].violations)


def test_tables_have_the_columns_of_the_schemas(audited):
    out, _ = audited
    for name, schema in schemas.TABLES.items():
        names = set(_written(out, name).column_names) - {"day"}
        assert names == set(schema.names), name


def test_damaged_file_is_named_with_its_byte_and_the_job_goes_on(audited):
    out, result = audited
    captures = _written(out, "captures").to_pylist()
    errors = [row for row in captures if row["counter"] == "error"]
    assert [(row["capture"], row["offset"]) for row in errors] == [("broken.pcap", 15)]
    unfinished = [row for row in captures if row["counter"] == "unfinished"]
    assert [row["capture"] for row in unfinished] == ["live.pcap"]
    unread = [row for row in captures if row["counter"] == "not_read"]
    assert [(row["capture"], row["detail"][:7]) for row in unread] == [("notes.txt", "neither")]
    assert result.findings["damaged places in files"] == 1


def test_clients_without_a_message_are_audited_too(spark, tmp_path):
    capture = Capture()
    for number in range(5):
        capture.connection(b"idle%d" % number)
    (tmp_path / "captures").mkdir()
    capture.write(tmp_path / "captures" / "idle.pcap")
    result = _run(spark, tmp_path / "captures", tmp_path / "out", buckets=3)
    assert result.rows["connections"] == 5
    assert not any(result.findings.values())


def test_whole_files_in_another_number_of_buckets_give_the_same_tables(
    spark, audited, capture, tmp_path
):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.pcap").write_bytes(capture[0])
    out = tmp_path / "out"
    _run(spark, tmp_path / "in", out, whole_files=True, buckets=5)
    for name in _KEYS:
        assert _sorted(_written(out, name), name) == _sorted(_written(audited[0], name), name)


def test_tables_are_joined_in_sql(spark, audited):
    out, session = audited[0], SparkSession(spark)
    for name in ("devices", "violations", "connections"):
        session.read.parquet(str(out / name)).createOrReplaceTempView(name)
    query = """
        SELECT d.client_id, d.state, count(v.requirement) AS broken
        FROM devices d JOIN violations v ON v.site = d.site AND v.client_id = d.client_id
        JOIN connections c ON c.site = v.site AND c.connection = v.connection
        WHERE v.by = 'client' GROUP BY d.client_id, d.state
    """
    found = {row.client_id: row.broken for row in session.sql(query).collect()}
    own = _written(out, "devices").to_pylist()
    assert found
    assert found == {row["client_id"]: row["violations"] for row in own if row["violations"]}


def test_json_lines_give_readings_and_their_losses(spark, tmp_path):
    with (tmp_path / "seen.jsonl").open("w") as stream:
        plan = Plan(devices=4, readings=200, fault_rate=0.1, kinds=("never_sent",))
        truth = json_lines(plan, stream)
        stream.write("{ no json\n")
    result = _run(spark, tmp_path, tmp_path / "out", buckets=2)
    assert result.rows["readings"] == truth.readings
    losses = _written(tmp_path / "out", "losses").to_pylist()
    found = sorted((row["device"], row["first_sequence"]) for row in losses)
    assert found == sorted((device, number) for device, _, _, number in truth.never_sent)
    (cause,) = _written(tmp_path / "out", "causes").to_pylist()
    assert cause["messages"] + cause["at_qos_0"] + cause["not_knowable"] == len(found)
    assert cause["clients"] == len({device for device, _ in found})
    assert cause["why"].startswith("%d devices counted them" % cause["clients"])
    assert result.findings["damaged places in files"] == 1


def test_command_when_findings_are_there_exits_1_and_writes_the_report(
    spark, capture, tmp_path, monkeypatch, capsys
):
    from tools.fleet.spark import engine

    monkeypatch.setattr(engine, "start", lambda *_: spark)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.pcap").write_bytes(capture[0])
    wish = batch.Wish()
    assert batch.run(tmp_path / "in", tmp_path / "out", wish) == batch.FINDINGS
    page = (tmp_path / "out" / "report.html").read_text()
    assert "MQTT-4.6.0-5" in page
    metrics = (tmp_path / "out" / "metrics.prom").read_text()
    assert re.search(r'^mqtt_fleet_findings\{what="violations"\} [1-9]', metrics, re.MULTILINE)
    assert not re.search(r'(src|href)\s*=\s*"(https?:)?//', page), "loads something"
    (tmp_path / "in" / "one.pcap").write_bytes(simulated(Plan(devices=2, readings=20))[0])
    more = batch.Wish(since=tmp_path / "out")  # read before it is replaced
    assert batch.run(tmp_path / "in", tmp_path / "out", more) == batch.CLEAN
    page = (tmp_path / "out" / "report.html").read_text()
    assert '"change":"not seen any more"' in page
    (tmp_path / "in" / "one.pcap").write_bytes(b"not a capture")
    before = _files(tmp_path / "out")
    assert batch.run(tmp_path / "in", tmp_path / "out", wish) == batch.BAD_INPUT
    told = capsys.readouterr().err
    assert "one.pcap: byte 0: " in told
    assert "left as it was" in told
    assert _files(tmp_path / "out") == before


def _files(out):
    # What readers look at, and when it was written.
    found = [one for one in out.rglob("*.*") if one.suffix in (".parquet", ".html", ".prom")]
    return sorted((one, one.stat().st_mtime_ns) for one in found)


def _sum(rows, name, **only):
    some = [row for row in rows if all(row[key] == value for key, value in only.items())]
    return sum(row[name] or 0 for row in some)


def test_tables_report_and_findings_tell_the_same_numbers(spark, tmp_path):
    """Two sites, of which one has places with missing bytes at the ends of connections."""
    for site, plan in (("north", PLAN), ("south", replace(PLAN, seed=9, gap_rate=0.05))):
        (tmp_path / "in" / site).mkdir(parents=True)
        (tmp_path / "in" / site / "a.pcap").write_bytes(simulated(plan)[0])
    out = tmp_path / "out"
    result = _run(spark, tmp_path / "in", out)
    data, found = collect.collect(out, result), result.findings
    tables = {name: _written(out, name).to_pylist() for name in schemas.TABLES}
    assert {name: len(some) for name, some in tables.items()} == result.rows
    devices, sequences = tables["devices"], tables["sequences"]
    losses = [row for row in tables["losses"] if row["sure"] != "not_knowable" and row["qos"]]
    told = {
        "lost messages": [_sum(losses, "messages"), _moments(data, "losses")],
        "violations": [_sum(data["violations"], "times"), _moments(data, "violations")],
        "overtaking messages": [_sum(sequences, "overtaking"), _sum(devices, "overtaking")],
        "incomplete messages": [_sum(sequences, "incomplete")],
        "places where bytes are missing": [_sum(data["files"], "missing")],
    }
    for name, numbers in told.items():
        assert found[name] > 0 and set(numbers) == {found[name]}, name
    heard = [row for row in losses if row["client_id"] is not None]
    assert _sum(sequences, "lost") == _sum(devices, "missed") == _sum(heard, "messages")
    known = [row for row in losses if row["published_by"] is not None]
    assert _sum(devices, "lost") + _sum(devices, "undelivered") == _sum(known, "messages")
    never_seen = [row for row in known if row["kind"] == "never_seen"]
    assert _sum(devices, "lost") == _sum(never_seen, "messages")
    assert _sum(data["losses"], "messages") == _sum(tables["losses"], "messages")
    for name in ("packets", "connections", "readings"):
        assert _moments(data, name) == result.rows[name], name
    assert _sum(devices, "connects") == result.rows["connections"] == len(tables["keepalive"])
    assert _sum(devices, "sent") == _sum(sequences, "messages", direction="c2s")
    assert sum(data["states"].values()) == data["device_count"] == len(devices)
    ends = {(row["site"], row["connection"]) for row in tables["connections"]}
    for name in ("packets", "flows", "violations", "gaps"):
        assert {(row["site"], row["connection"]) for row in tables[name]} <= ends, name
    names = {row["capture"] for row in tables["captures"]}
    assert {row["capture"] for row in [*tables["packets"], *tables["gaps"]]} <= names


def _moments(data, name):
    return sum(one.get(name, 0) for one in data["moments"])


def test_devices_tell_in_words_what_is_wrong_with_whom(audited, capture):
    out, _result = audited
    devices = {row["client_id"]: row for row in _written(out, "devices").to_pylist()}
    connections = _written(out, "connections").to_pylist()
    assert len(devices) == len({row["client_id"] for row in connections})
    for name, row in devices.items():
        mine = [one for one in connections if one["client_id"] == name]
        assert row["connects"] == len(mine)
        assert row["last_seen"] == max(one["end"] for one in mine)
        assert (row["why"] is None) == (row["state"] == "well")
    lost = sum(row["lost"] for row in devices.values())
    assert lost > 0
    assert "messages of it lost: " in str([row["why"] for row in devices.values()])
    assert {row["state"] for row in devices.values()} > {"losing", "well"}
    own = [one for one in _written(out, "violations").to_pylist() if one["by"] == "client"]
    assert sum(row["violations"] for row in devices.values()) == len(own)


def test_tables_when_an_audit_fails_stay_those_of_the_one_before(spark, audited, monkeypatch):
    out, _ = audited
    before = sorted(path for path in out.rglob("*") if path.is_file())
    monkeypatch.setattr(devices, "merge", None)
    with pytest.raises(TypeError):
        _run(spark, out.parent, out, buckets=2)
    assert sorted(path for path in out.rglob("*") if path.is_file()) == before


def test_tables_and_report_stay_together_when_there_is_no_room_for_the_report(
    audited, monkeypatch, tmp_path
):
    """A disk that is full behind the tables."""
    out = tmp_path / "out"
    shutil.copytree(audited[0], out)
    captures = tmp_path / "captures"
    captures.mkdir()
    capture = Capture()
    capture.connection(b"only")
    capture.write(captures / "one.pcap")
    before = _files(out)

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome, "metrics", fails)
    with pytest.raises(OSError, match="No space"):
        batch.audit(captures, out)
    assert _files(out) == before
    monkeypatch.undo()
    result = batch.audit(captures, out)
    assert sorted(one.name for one in out.glob("*.*")) == ["metrics.prom", "report.html"]
    assert "only" in (out / "report.html").read_text() and result.rows["devices"] == 1
