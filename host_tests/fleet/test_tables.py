"""The page on the tables says what the schemas say."""

import re

from tools.fleet import schemas
from tools.project import ROOT

_PAGE = ROOT / "docs" / "reference" / "fleet-tables.md"


def test_page_lists_every_column_with_its_type_and_meaning():
    text = _PAGE.read_text(encoding="utf-8")
    for name, schema in schemas.TABLES.items():
        part = text.split("\n## %s\n" % name)[1].split("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (.*) \|$", part, re.MULTILINE)
        wanted = []
        for field in schema:
            kind = "timestamp" if field.type == schemas.TS else str(field.type)
            wanted.append((field.name, kind, field.metadata[b"comment"].decode()))
        assert listed == wanted, name


def test_every_column_has_a_meaning():
    for schema in schemas.TABLES.values():
        for field in schema:
            assert field.metadata[b"comment"], field.name
