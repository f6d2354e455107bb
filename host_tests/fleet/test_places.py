"""Captures and tables in a store: an S3 of moto's, in a process of its own."""

import pytest

from host_tests.fleet import store
from host_tests.fleet.captures import simulated
from host_tests.fleet.simulate.run import Plan
from tools.fleet import batch, places, tables
from tools.fleet.capture import files
from tools.fleet.spark import job


@pytest.fixture(scope="module", name="store")
def _store():
    with store.store() as found:
        yield found


def test_audit_in_a_store_writes_the_tables_of_an_audit_on_disk(store, spark, tmp_path):
    address, client = store
    data = simulated(Plan(devices=4, readings=100, seed=4, fault_rate=0.1))[0]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.pcap").write_bytes(data)
    client.put_object(Bucket="fleet", Key="in/a.pcap", Body=data)
    here, there = tmp_path / "out", places.place(address("out"))
    found = job.run(spark, tmp_path / "in", here, job.Options(buckets=2))
    for _ in range(2):  # the second one replaces the tables of the first
        result = job.run(spark, places.place(address("in")), there, job.Options(buckets=2))
    assert (result.rows, result.findings) == (found.rows, found.findings)
    for name in ("packets", "devices", "losses", "gaps"):
        one, other = tables.read(here, name), tables.read(there, name)
        assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist())), name
    for out in (here, there):
        batch._check(tmp_path / "in", out)  # which another audit may have


def test_own_capture_in_a_store_where_a_table_goes_is_wrong_use(store, tmp_path):
    address, client = store
    (tmp_path / "a.pcap").touch()
    client.put_object(Bucket="fleet", Key="own/captures/north/a.pcap", Body=b"x")
    with pytest.raises(batch.BadInput, match="captures/north/a.pcap.*another folder for OUT"):
        batch.audit(tmp_path, places.place(address("own")))
    assert client.head_object(Bucket="fleet", Key="own/captures/north/a.pcap")


def test_large_pcap_in_a_store_is_read_in_ranges(store):
    address, client = store
    data = simulated(Plan(devices=4, readings=20_000))[0]
    client.put_object(Bucket="fleet", Key="large/a.pcap", Body=data)
    path = places.place(address("large/a.pcap"))
    (source,) = files.listed(path)
    assert source.size_bytes == len(data)
    parts = job.ranges([source], True, 1 << 20)
    assert len(parts) > 2 and parts[-1].until is None
    assert [one.begin for one in parts[1:]] == [one.until for one in parts[:-1]]


def test_store_that_is_not_there_says_what_is_missing():
    with pytest.raises(places.NotReached, match="fleet-cluster.md"):
        places.place("hdfs://nowhere:1/captures")
    with pytest.raises(places.NotReached, match="gopher"):
        places.place("gopher://host/captures")


@pytest.mark.parametrize(
    ("path", "folder", "wanted"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("file:///a/b", "/a", True)],
)
def test_place_is_within_a_folder_or_not(path, folder, wanted):
    assert places.is_within(places.place(path), places.place(folder)) is wanted


def test_single_file_is_listed_as_it_is(tmp_path):
    (tmp_path / "a.pcap").write_bytes(b"x")
    ((path, name, size, _),) = places.files(tmp_path / "a.pcap")
    assert (path, name, size) == (tmp_path / "a.pcap", "a.pcap", 1)


def test_store_holds_no_lock(store):
    address, _ = store
    with batch.alone(places.place(address("out"))), batch.alone(places.place(address("out"))):
        pass
