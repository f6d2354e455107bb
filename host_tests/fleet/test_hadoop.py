"""Captures and tables that no local path reaches: everything goes through Hadoop's file system.

The file system is WebHDFS in memory (`webhdfs`).  What is found there is what a run over local
files finds, and nothing is written beside it.
"""

import gzip
import io
import json

import pytest

from host_tests.fleet.captures import simulated
from host_tests.fleet.webhdfs import webhdfs
from host_tests.fleet.written import assert_same, rows
from tools.fleet import batch, places, schemas
from tools.fleet.places import place
from tools.fleet.simulate.run import Plan
from tools.fleet.spark import job, stream, transforms

_PLAN = Plan(devices=6, readings=120, seed=8, fault_rate=0.2, wire_rate=0.2)


@pytest.fixture(scope="module")
def store(spark):
    with webhdfs() as started:
        yield started


@pytest.fixture(scope="module")
def captures():
    """-> {name: bytes} of two sites: plain, packed, without an ending, and no capture."""
    whole, other = simulated(_PLAN)[0], simulated(Plan(devices=2, readings=20, seed=9))[0]
    place = 24
    while place < len(whole) // 2:
        place += 16 + int.from_bytes(whole[place + 8 : place + 12], "little")
    return {
        "north/a 1%.pcap": whole[:place],
        "north/b.pcap.gz": gzip.compress(whole[:24] + whole[place:]),
        "south/trace": other,
        "notes.txt": b"no capture",
    }


def _put(store, folder, files, to):
    for name, data in files.items():
        store.put("%s/%s" % (to, name), data)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.fixture(scope="module")
def local(spark, captures, store, tmp_path_factory):
    """-> the tables of a run over local files; the same files are in the store, too."""
    folder, out = tmp_path_factory.mktemp("captures"), tmp_path_factory.mktemp("tables")
    _put(store, folder, captures, "/captures")
    job.run(spark, folder, out, job.Options(buckets=2, range_bytes=20_000))
    return out


def test_audit_through_hadoop_gives_the_tables_of_local_files(spark, store, local, monkeypatch):
    """A large file is read in parts; more files than a few are planned by tasks."""
    monkeypatch.setattr(transforms, "_FEW_FILES", 1)
    folder, out = place(store.address + "/captures"), place(store.address + "/out/tables")
    options = {"buckets": 2, "range_bytes": 20_000}
    assert batch.run(folder, out, options, since=place(str(local))) == batch.FINDINGS
    assert_same(out, local)
    names = {path.split("/")[3] for path in store.files if path.startswith("/out/")}
    assert names == {*schemas.TABLES, "report.html", "metrics.prom"}
    assert "<html" in (out / "report.html").read_text()
    assert "mqtt_fleet_findings" in (out / "metrics.prom").read_text()
    assert job.load(spark, out, "packets").count() == len(rows(local, "packets"))


def test_audit_through_hadoop_when_used_wrongly_says_so(store, captures, local):
    with pytest.raises(batch.BadInput, match="does not exist"):
        batch.run(place(store.address + "/nothing"), place(store.address + "/out"), {})
    folder = place(store.address + "/captures")
    with pytest.raises(batch.BadInput, match="another one for OUT"):
        batch.run(folder, folder / "tables", {})


def test_stream_through_hadoop_when_started_again_gives_the_tables_of_local_files(
    spark, store, captures, local
):
    """Checkpoint, state and tables are there as well."""
    for source in stream.sources():
        spark.dataSource.register(source)
    out = place(store.address + "/stream")
    first = "north/a 1%.pcap"
    for names in ([first], captures):
        for name in names:
            store.put("/growing/" + name, captures[name])
        target = stream.Stream(spark, out, 2)
        reader = spark.readStream.format("mqtt_growing")
        options = {"path": store.address + "/growing", "buckets": 2, "rangebytes": 20_000}
        frame = reader.options(**options, hadoop=places.java.settings()).load()
        writer = frame.writeStream.foreachBatch(target.take)
        query = writer.option("checkpointLocation", str(out / "_stream" / "checkpoint")).start()
        query.processAllAvailable()
        query.stop()
    target.refresh()
    for name in schemas.TABLES:
        assert rows(out, name) == rows(local, name), name
    assert any(path.startswith("/stream/_stream/checkpoint/offsets/") for path in store.files)
    assert not target.is_behind


def test_file_when_read_anywhere_fetches_what_is_asked_for_once(store):
    data = bytes(range(256)) * (5 << 12)
    store.put("/large/file", data)
    with places.open_binary(store.address + "/large/file") as file:
        assert file.seek(-100, io.SEEK_END) == len(data) - 100
        assert file.read() == data[-100:]
        file.seek(1 << 20)
        assert file.read(300) == data[1 << 20 : (1 << 20) + 300]
        with places.mapped(file) as whole:
            assert whole[:] == data
    assert store.read_bytes["/large/file"] < 3 * len(data)


def test_text_when_replaced_is_there_at_once_and_alone(store):
    folder = place(store.address + "/texts")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2):
        places.replace_text(folder / "one.json", json.dumps(number))
        assert (folder / "one.json").read_text() == str(number)
    assert folder.iterdir() == [folder / "one.json"]
    (folder / "one.json").replace(folder / "two")
    with pytest.raises(OSError, match="cannot be renamed"):
        (folder / "one.json").replace(folder / "three")
    places.remove(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("captures/a", "captures/a"),
        ("/a b/c%20d", "/a b/c%20d"),
        ("file:///a b/c", "/a b/c"),
        ("file:/a", "/a"),
        ("s3a://bucket/day/", "s3a://bucket/day"),
        ("abfss://box@account.example/day", "abfss://box@account.example/day"),
    ],
)
def test_place_is_a_local_path_or_an_address(text, wanted):
    found = place(text)
    assert str(found) == wanted
    assert places.is_remote(found) == ("://" in wanted)
    assert place(found) is found
    assert places.is_within(found / "more", found) and not places.is_within(found, found / "more")
