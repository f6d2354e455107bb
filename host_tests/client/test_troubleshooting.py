"""docs/reference/troubleshooting.md: every code of the library has its line there."""

import re

import pytest

from tools.project import ROOT
from umqtt31 import MQTTError, errors, queueing, reasons

PAGE = ROOT / "docs" / "reference" / "troubleshooting.md"


def rows_of(part):
    lines = [line for line in part.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


ROWS, REASONS = map(rows_of, PAGE.read_text(encoding="utf-8").split("\n## ")[:2])
CODES = {name: value for name, value in vars(errors).items() if name.isupper() and name[0] != "_"}


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


def texts_raised():
    """Of each MQTTError that the library raises with a text of its own, what it begins with."""
    for path in sorted((ROOT / "lib" / "umqtt31").glob("*.py")):
        code = path.read_text(encoding="utf-8")
        for found in re.finditer(r'MQTTError\(\s*_(\w+),\s*"([^"%]*)', code):
            yield found[1], found[2]
    yield "BUSY", queueing._ONE_TASK
    yield "TOO_LARGE", str(MQTTError(errors.TOO_LARGE, 7)).partition("7")[0]
    yield "REFUSED_FILTER", str(MQTTError(errors.REFUSED_FILTER, ([b"a"], 0x80))).partition("a")[0]


def test_line_begins_as_each_text_that_is_raised_beside_the_codes():
    texts = list(texts_raised())
    assert ("JOURNAL", "journal has no spare block left") in texts
    assert [name for name, text in texts if text.startswith("journal holds more than fits")]
    rows = [(row[0].strip("`"), row[1]) for row in ROWS]
    for name, text in texts:
        assert [
            said
            for said, code in rows
            if code.startswith(f"`{name}` ") and (said.startswith(text) or text.startswith(said))
        ], text


def test_line_says_each_reason_why_a_journal_is_refused():
    code = (ROOT / "lib" / "umqtt31" / "opening.py").read_text(encoding="utf-8")
    said = " ".join(row[0] for row in ROWS)
    texts = re.findall(r'_refuse\(\s*"([^"%]*)', code)
    assert len(texts) > 3
    for text in texts:
        assert "journal " + text.strip() in said


@pytest.mark.parametrize("code", range(1, 6))
def test_refusal_names_host_and_port(code):
    error = MQTTError(code, None, (("broker.example", 1883, None), 4, True))
    assert "(broker.example port 1883)" in str(error)


def test_reason_codes_of_level_5_are_listed_with_what_is_said():
    listed = {}
    for row in REASONS:
        code, number, _ = row[0].replace("`", "").split(maxsplit=2)
        assert int(code, 16) == int(number)
        listed[int(number)] = "%s (reason %s)" % (row[1].strip("`"), number)
    assert listed == {code: str(MQTTError(code)) for code in reasons.TEXTS}
    assert str(MQTTError(0x91)) == "broker refused: 145"
