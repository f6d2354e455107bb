"""Tables packed for the way between workers: nothing is lost, and rows go where they belong."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from tools.fleet import schemas
from tools.fleet.spark import pack


def _table(names):
    return pa.table({"name": pa.array(names, pa.string()).dictionary_encode()})


def _parts(names, buckets):
    found = pack.split(_table(names), np.array(buckets, np.int64))
    return {bucket: part["name"].to_pylist() for bucket, part in found}


@pytest.mark.parametrize(
    ("names", "buckets", "parts"),
    [
        ([], [], {}),
        (["a", "b"], [1, 1], {1: ["a", "b"]}),
        (["a", "b", None, "d"], [2, 0, 2, 0], {0: ["b", "d"], 2: ["a", None]}),
        (["a", "b", "c"], [-1, 3, -1], {3: ["b"]}),
        (["a", "b"], [-1, -1], {}),
    ],
)
def test_split_gives_each_bucket_its_rows_in_their_order(names, buckets, parts):
    assert _parts(names, buckets) == parts


def test_part_of_many_names_carries_only_its_own():
    names = ["client %d" % n for n in range(5000)]
    _, part = next(pack.split(_table(names), np.arange(5000) // 10))
    assert part["name"].chunk(0).dictionary.to_pylist() == names[:10]


def test_parts_dumped_and_loaded_are_the_table_again():
    one, other = _table(["a", "b", None]), _table(["c", "a"])
    loaded = pack.load([pack.dump(one), pack.dump(other)])
    assert loaded["name"].to_pylist() == ["a", "b", None, "c", "a"]


def test_parts_on_a_shelf_are_the_table_again(tmp_path):
    entries = [("a", 0, _table(["a", "b", None])), ("b", 3, _table([])), ("a", 1, _table(["c"]))]
    batch = pack.rows(entries, tmp_path)
    assert batch["bucket"].to_pylist() == [0, 3, 1]
    parts = [part.as_buffer() for part in batch["part"]]
    assert all(part.size < 200 for part in parts)
    loaded = pack.load([parts[0], parts[2]])
    assert loaded["name"].to_pylist() == ["a", "b", None, "c"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="pack.forget() does nothing elsewhere: only Linux has fallocate(2)",
)
def test_forgotten_part_gives_its_blocks_back_and_the_next_one_stays(tmp_path):
    tables = [pa.table({"a": np.arange(100_000) + n}) for n in range(2)]
    parts = pack.rows([("a", n, one) for n, one in enumerate(tables)], tmp_path)["part"]
    (path,) = tmp_path.iterdir()
    before = path.stat()
    pack.forget([parts[0].as_buffer(), pa.py_buffer(pack.dump(tables[0]))])
    assert path.stat().st_size == before.st_size
    assert path.stat().st_blocks * 512 < before.st_blocks * 512 - 700_000
    assert pack.load([parts[1].as_buffer()]).equals(tables[1])


def test_rows_say_what_they_were_read_from_in_columns_of_their_own():
    batch = pack.rows([("segments", 2, _table(["a"]))], site="x\0y", capture="one.pcap", begin=24)
    assert batch.schema.names == schemas.FRAMES.names
    row = batch.to_pylist()[0]
    assert pack.load([row.pop("part")])["name"].to_pylist() == ["a"]
    assert row == {
        "kind": "segments",
        "bucket": 2,
        "site": "x\0y",
        "capture": "one.pcap",
        "first_ts": None,
        "begin": 24,
    }


def test_rows_of_one_table_for_several_buckets_lie_on_the_shelf_once(tmp_path):
    table = pa.table({"a": list(range(1000))})
    rows = pack.rows([("wild", number, table) for number in range(8)], str(tmp_path))
    assert rows["bucket"].to_pylist() == list(range(8))
    assert len(set(rows["part"].to_pylist())) == 1
    assert pack.load([rows["part"][7].as_buffer()]).equals(table)
