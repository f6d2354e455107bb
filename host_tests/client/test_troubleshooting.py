"""docs/reference/troubleshooting.md: every code of the library has its line there."""

import re

import pytest

from host_tests.client.runner import ROOT
from umqtt31 import MQTTError, codes

PAGE = ROOT / "docs" / "reference" / "troubleshooting.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
][1:]
CODES = {name: value for name, value in vars(codes).items() if name.isupper() and name[0] != "_"}
CODES.pop("NAMES")


@pytest.mark.parametrize(("name", "value"), CODES.items())
def test_code_has_a_line_that_names_it_and_its_number(name, value):
    assert [row for row in ROWS if row[1] == f"`{name}` {value}" and all(row)]


def test_line_names_a_code_that_there_is():
    for row in ROWS:
        found = re.fullmatch(r"`(\w+)` (\d+)", row[1])
        assert not row[1] or CODES[found[1]] == int(found[2])


@pytest.mark.parametrize("value", sorted(set(CODES.values()) - {1, 256}))
def test_line_begins_as_the_message_does(value):
    """Of 1 and 256 the text is made where it happens."""
    said = [
        row[0].strip("`").partition("…")[0].strip() for row in ROWS if row[1].endswith(f" {value}")
    ]
    assert any(str(MQTTError(value)).startswith(text) for text in said)


@pytest.mark.parametrize("code", range(1, 6))
def test_refusal_names_host_and_port(code):
    error = codes.refusal(code, 4, ("broker.example", 1883, None))
    assert "(broker.example port 1883)" in str(error)
