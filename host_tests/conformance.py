"""build/conformance.md, a page of the site: each statement and the tests that show it.

A test shows a statement by naming its id in its docstring or in the comment right
above it; a script of the client's dialogues, in a comment of its own.
"""

import ast
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click

from tools.project import ROOT

PAGE = ROOT / "build" / "conformance.md"
_ID = re.compile(r"\b(?:31-[A-Z0-9.]+|311-[\d.]+|MQTT-[\d.]+|RT|SIB)-[A-Z0-9][A-Z0-9-]*\b")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_MUST_HAVE_TEST = ("client", "codec")

_HEADER = """\
# Conformance, statement by statement

Made by `python -m host_tests conformance` from `requirements.tsv` and from the tests that name
each id. A test fails when a statement of side `client` or `codec` has no test, and when a test
names an unknown id.

Tests in `client/dialogues/` are whole dialogues on the wire with a scripted broker;
they run at levels 3, 4 and 5 where they apply, under CPython and under each real
MicroPython. Statements of MQTT 3.1.1 and of MQTT 5 have the standards' own numbers.

"""


class Requirement(NamedTuple):
    """One row of docs/requirements.tsv."""

    id: str
    source: str
    side: str
    statement: str


class Test(NamedTuple):
    """One test function or script: its file, relative to host_tests/, and its name."""

    file: str
    name: str


def read_requirements() -> list[Requirement]:
    """All rows in their order."""
    with (ROOT / "docs" / "requirements.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Requirement(**row) for row in rows]


def find_tests(folder: Path = ROOT / "host_tests") -> dict[str, list[Test]]:
    """The tests below `folder` that name each id, known or not."""
    found: defaultdict[str, list[Test]] = defaultdict(list)
    scripts = *folder.glob("client/dialogues/**/*.txt"), *folder.glob("fleet/traces/*.txt")
    for path in sorted([*folder.rglob("test_*.py"), *scripts]):
        source = path.read_text(encoding="utf-8")
        file = path.relative_to(folder).as_posix()
        texts = _scripts(source) if path.suffix == ".txt" else _named_texts(source)
        for name, text in texts:
            for requirement_id in dict.fromkeys(_ID.findall(text)):
                found[requirement_id].append(Test(file, name))
    return dict(found)


def _named_texts(source: str) -> Iterator[tuple[str, str]]:
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _FUNCTION) and node.name.startswith("test_"):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
            comment = []
            while first and lines[first - 1].lstrip().startswith("#"):
                first -= 1
                comment.append(lines[first])
            yield node.name, "\n".join([ast.get_docstring(node) or "", *comment])


def _scripts(source: str) -> Iterator[tuple[str, str]]:
    for name, steps in re.findall(r"^(\w+).*\n((?: .*\n)+)", source, re.MULTILINE):
        yield name, "\n".join(line for line in steps.splitlines() if "#" in line[:5])


def find_faults(requirements: list[Requirement], tests: dict[str, list[Test]]) -> list[str]:
    """One line for each statement without test and each unknown id."""
    known = {one.id for one in requirements}
    faults = [
        f"{one.id}: no test names it"
        for one in requirements
        if one.side in _MUST_HAVE_TEST and one.id not in tests
    ]
    for unknown in sorted(set(tests) - known):
        where = ", ".join(f"{test.file}::{test.name}" for test in tests[unknown])
        faults.append(f"{unknown}: named by {where}, but not in docs/requirements.tsv")
    return faults


def render(requirements: list[Requirement], tests: dict[str, list[Test]]) -> str:
    """The text of the page."""
    parts = [_HEADER, _summary(requirements, tests)]
    source = ""
    for one in requirements:
        if one.source != source:
            source = one.source
            parts.append(f"\n## {source}\n")
        parts.append(f"\n**{one.id}** ({one.side}) {one.statement}\n\n")
        by_file = groupby(sorted(tests.get(one.id, [])), lambda test: test.file)
        for file, found in by_file:
            parts.append(f"- `{file}`: {', '.join(f'`{test.name}`' for test in found)}\n")
        if one.id not in tests:
            parts.append("- no test\n")
    return "".join(parts)


def _summary(requirements: list[Requirement], tests: dict[str, list[Test]]) -> str:
    rows = Counter((_level_of(one), one.side) for one in requirements)
    shown = Counter((_level_of(one), one.side) for one in requirements if one.id in tests)
    lines = ["| level | side | statements | shown by tests |", "|---|---|---:|---:|"]
    lines += [f"| {' | '.join(key)} | {rows[key]} | {shown[key]} |" for key in rows]
    return "\n".join(lines) + "\n"


def _level_of(one: Requirement) -> str:
    levels = {"31": "3: MQTT 3.1", "311": "4: MQTT 3.1.1", "MQTT": "5: MQTT 5"}
    return levels.get(one.id.partition("-")[0], "all")


@click.command()
def cli() -> None:
    """Write build/conformance.md; exit status 1 if a statement has no test."""
    requirements, tests = read_requirements(), find_tests()
    faults = find_faults(requirements, tests)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(requirements, tests), encoding="utf-8")
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        raise SystemExit(1)
