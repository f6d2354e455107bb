"""Tables as Parquet folders: the layout is Spark's, no half-written file shows, and the pages on
tables and verdicts say what the schemas and the rules say.
"""

import datetime
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from host_tests.fleet.captures import rows
from tools.fleet import schemas, tables
from tools.fleet.audit import rules
from tools.project import ROOT

_PAGE = ROOT / "docs" / "reference" / "fleet-tables.md"
_VERDICTS = _PAGE.with_name("fleet-verdicts.md")


def test_page_lists_every_column_with_its_type_and_meaning():
    text = _PAGE.read_text(encoding="utf-8")
    for name, schema in schemas.TABLES.items():
        part = text.split("\n## %s\n" % name)[1].split("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (.*) \|$", part, re.MULTILINE)
        kinds = ["timestamp" if one.type == schemas.TS else str(one.type) for one in schema]
        meanings = [one.metadata[b"comment"].decode() for one in schema]
        wanted = list(zip(schema.names, kinds, meanings, strict=True))
        assert listed == wanted, name


def test_every_column_has_a_meaning():
    for schema in schemas.TABLES.values():
        for field in schema:
            assert field.metadata[b"comment"], field.name


def test_page_lists_every_finding_and_cause_of_the_rules():
    text = _VERDICTS.read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (client|broker|capture) \|", text, re.MULTILINE)
    wanted = {(name.partition(".")[0], rule.about) for name, rule in rules.FINDINGS.items()}
    assert sorted(listed) == sorted(wanted)
    causes = re.findall(r"^\| `(\w+)` \|", text.split("\n## Causes\n")[1], re.MULTILINE)
    assert causes[1 : len(rules.CAUSES) + 1] == list(rules.CAUSES)


_DAY = datetime.datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
_NEXT = _DAY + datetime.timedelta(microseconds=1)


def _packets(*entries):
    names = ("site", "ts", "topic", "payload_bytes")
    found = [dict(zip(names, one, strict=True)) for one in entries]
    table = pa.Table.from_pylist(found, schemas.PACKETS)
    coded = table["topic"].combine_chunks().dictionary_encode()
    return table.set_column(table.schema.get_field_index("topic"), "topic", coded)


def _told(out, *found):
    outbox = tables.Outbox(out)
    for one in found:
        outbox.add("packets", one)
    return outbox.finish()


def test_rows_of_one_site_and_day_can_be_read_alone(tmp_path):
    one = _packets(("north", _DAY, "a", 1), ("south", _DAY, None, 2), ("north", _NEXT, "b", 3))
    tables.publish(tmp_path, [_told(tmp_path, one, _packets(("north", _NEXT, "c", 4)))])
    found = pq.read_table(tmp_path / "packets" / "site=north" / "day=2026-01-02")
    assert sorted(rows(found, "topic", "payload_bytes")) == [("b", 3), ("c", 4)]
    assert found.schema.field("topic").type == pa.string()
    whole = tables.read(tmp_path, "packets", ["site", "payload_bytes"])
    wanted = [("north", 1), ("north", 3), ("north", 4), ("south", 2)]
    assert sorted(rows(whole, "site", "payload_bytes")) == wanted


def test_files_of_a_task_that_failed_never_show(tmp_path):
    _told(tmp_path, _packets(("north", _DAY, "failed", 1)))
    good = _told(tmp_path, _packets(("north", _DAY, "good", 2)))
    assert not (tmp_path / "packets").exists()
    tables.publish(tmp_path, [good])
    assert pq.read_table(tmp_path / "packets")["topic"].to_pylist() == ["good"]
    _told(tmp_path, _packets(("north", _DAY, "gone", 1)))
    tables.discard(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(schemas.TABLES)


def test_table_without_rows_shows_its_columns(tmp_path):
    tables.publish(tmp_path, [])
    found = pq.read_table(tmp_path / "packets").column_names
    assert found == [*schemas.PACKETS.names, "day"]
    assert tables.read(tmp_path, "packets").schema.equals(schemas.PACKETS)


def test_files_tell_their_version_and_what_columns_mean(tmp_path):
    tables.publish(tmp_path, [_told(tmp_path, _packets(("north", _DAY, "a", 1)))])
    for name in ("packets", "losses"):
        (path,) = (tmp_path / name).rglob("*.parquet")
        told = pq.read_metadata(path).metadata
        assert told[b"fleet.version"] == b"%d" % schemas.VERSION
        meaning = schemas.TABLES[name].field("topic").metadata[b"comment"].decode()
        assert json.loads(told[b"fleet.columns"])["topic"] == meaning


@pytest.mark.parametrize(
    ("site", "name"),
    [
        ("default", "site=default"),
        ("north/gate", "site=north%2Fgate"),
        ("50% = a:b?", "site=50%25 %3D a%3Ab%3F"),
        ("été\n", "site=été%0A"),
    ],
)
def test_folder_of_an_unusual_site_is_spelled_as_by_spark(site, name):
    assert tables.folder_name("site", site) == name


def test_unusual_sites_and_days_read_back_by_spark_are_the_same(spark, tmp_path):
    sites = ["north/gate", "50% = a:b?", "été\n", "[x]{y}^'\"*\\#"]
    told = _told(tmp_path, _packets(*((site, _DAY, "t", 1) for site in sites)))
    tables.publish(tmp_path, [told])
    read = SparkSession(spark).read.parquet(str(tmp_path / "packets"))
    found = read.select("site", "day", "topic").collect()
    wanted = sorted((site, _DAY.date(), "t") for site in sites)
    assert sorted(tuple(row) for row in found) == wanted
    assert sorted(tables.read(tmp_path, "packets", ["site"])["site"].to_pylist()) == sorted(sites)
