"""Large tables as Parquet folders: the layout is Spark's, and no half-written file shows."""

import datetime

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from host_tests.fleet.captures import rows
from tools.fleet import parquet

_SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("topic", pa.string()),
        ("payload_bytes", pa.int64()),
    ]
)
_DAY = datetime.datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
_NEXT = _DAY + datetime.timedelta(microseconds=1)


def _table(*entries):
    site, ts, topic, size = zip(*entries, strict=True)
    coded = pa.array(topic, pa.string()).dictionary_encode()
    columns = [pa.array(site), pa.array(ts, _SCHEMA.field("ts").type), coded, pa.array(size)]
    return pa.table(columns, names=_SCHEMA.names)


def _write(folder, *tables):
    writer = parquet.Writer(folder, _SCHEMA, "ts")
    for table in tables:
        writer.add(table)
    return writer.finish()


def test_rows_when_written_then_site_and_day_can_be_read_alone(tmp_path):
    one = _table(("north", _DAY, "a", 1), ("south", _DAY, None, 2), ("north", _NEXT, "b", 3))
    parquet.publish(tmp_path, _write(tmp_path, one, _table(("north", _NEXT, "c", 4))))
    folder = tmp_path / "site=north" / "day=2026-01-02"
    found = pq.read_table(folder)
    assert sorted(rows(found, "topic", "payload_bytes")) == [("b", 3), ("c", 4)]
    whole = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert whole.schema.field("topic").type == pa.string()
    assert whole.schema.field("ts").type == _SCHEMA.field("ts").type
    assert sorted(whole["payload_bytes"].to_pylist()) == [1, 2, 3, 4]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["_SUCCESS", "site=north", "site=south"]


def test_files_when_their_task_failed_then_they_never_show(tmp_path):
    _write(tmp_path, _table(("north", _DAY, "failed", 1)))
    good = _write(tmp_path, _table(("north", _DAY, "good", 2)))
    assert not list(tmp_path.glob("site=*"))
    parquet.publish(tmp_path, good)
    assert pq.read_table(tmp_path)["topic"].to_pylist() == ["good"]
    parquet.clear(tmp_path)
    _write(tmp_path, _table(("north", _DAY, "gone", 1)))
    parquet.discard(tmp_path)
    assert not list(tmp_path.iterdir())


def test_table_without_rows_when_written_then_its_folder_shows_the_columns(tmp_path):
    parquet.write_empty(tmp_path / "t", _SCHEMA, True)
    assert pq.read_table(tmp_path / "t").column_names == [*_SCHEMA.names, "day"]


@pytest.mark.parametrize(
    ("site", "name"),
    [
        ("default", "site=default"),
        ("north/gate", "site=north%2Fgate"),
        ("50% = a:b?", "site=50%25 %3D a%3Ab%3F"),
        ("été\n", "site=été%0A"),
    ],
)
def test_folder_of_a_site_when_its_name_is_unusual_then_it_is_spelled_as_by_spark(site, name):
    assert parquet.folder_name("site", site) == name


def test_unusual_sites_and_days_when_read_back_by_spark_then_they_are_the_same(spark, tmp_path):
    sites = ["north/gate", "50% = a:b?", "été\n", "[x]{y}^'\"*\\#"]
    parquet.publish(tmp_path, _write(tmp_path, _table(*((s, _DAY, "t", 1) for s in sites))))
    found = spark.read.parquet(str(tmp_path)).select("site", "day", "topic").collect()
    assert sorted(tuple(row) for row in found) == sorted(
        (site, _DAY.date(), "t") for site in sites
    )
