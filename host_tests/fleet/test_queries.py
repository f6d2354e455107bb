"""The queries of docs/guides/fleet-queries.md, on the tables of a small audit."""

import re

import duckdb
import pytest

from host_tests.fleet.captures import simulated
from host_tests.fleet.simulate.run import Plan
from tools.fleet.spark import job
from tools.project import ROOT

_PAGE = (ROOT / "docs" / "guides" / "fleet-queries.md").read_text(encoding="utf-8")
_QUERIES = re.findall(r"```sql\n(.*?)```", _PAGE, re.DOTALL)
_PROGRAMS = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """The folder in which `tables` is."""
    folder = tmp_path_factory.mktemp("queries")
    (folder / "in").mkdir()
    data = simulated(Plan(devices=6, readings=300, fault_rate=0.2, seed=3))[0]
    (folder / "in" / "a.pcap").write_bytes(data)
    job.run(spark, folder / "in", folder / "tables", job.Options())
    return folder


@pytest.mark.parametrize("place", range(len(_QUERIES)))
def test_query_of_the_page_gives_rows(place, tables, monkeypatch):
    monkeypatch.chdir(tables)
    assert duckdb.sql(_QUERIES[place]).fetchall()


@pytest.mark.parametrize("place", range(len(_PROGRAMS)))
def test_program_of_the_page_prints_a_table(place, tables, monkeypatch, capsys):
    monkeypatch.chdir(tables)
    # Spark's Java stays in the folder in which it was started.
    exec(_PROGRAMS[place].replace('"tables/', '"%s/tables/' % tables), {})
    assert "dev-000" in capsys.readouterr().out
