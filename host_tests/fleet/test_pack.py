"""Tables packed for the way between workers: nothing is lost, and rows go where they belong."""

import numpy as np
import pyarrow as pa
import pytest

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
    loaded = pack.named(pack.rows([("a", 0, one), ("a", 1, other)]), "a")
    assert loaded["name"].to_pylist() == ["a", "b", None, "c", "a"]


def test_rows_say_what_they_were_read_from():
    rows = pack.rows([("segments", 2, _table(["a"]))], site="x\0y", capture="one.pcap", begin=24)
    ((bucket, row),) = rows
    assert pack.load(row.part)["name"].to_pylist() == ["a"]
    assert (bucket, row._replace(part=b"")) == (
        2,
        pack.Row("segments", b"", "x\0y", "one.pcap", None, 24),
    )


def test_one_table_for_several_buckets_is_packed_once():
    table = pa.table({"a": list(range(1000))})
    rows = list(pack.rows([("wild", number, table) for number in range(8)]))
    assert [bucket for bucket, _ in rows] == list(range(8))
    assert len({id(row.part) for _, row in rows}) == 1
    assert pack.load(rows[7][1].part).equals(table)
