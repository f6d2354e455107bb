"""The pages on tables and verdicts say what the schemas and the rules say."""

import re

from tools.fleet import schemas
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
