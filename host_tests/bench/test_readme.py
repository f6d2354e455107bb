"""The README's table says what docs/reasons/benchmarks.md does, which `make bench` writes."""

import re

import pytest

from host_tests.bench.peers.page import PAGE
from tools.project import ROOT


def lines_of(text):
    """The cells of each line of the first table in `text`, the rule left out."""
    table = re.search(r"^\|.*?(?=^[^|]|\Z)", text, re.MULTILINE | re.DOTALL)[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return [line for line in cells if not set(line[0] + line[1]) <= set("-: ") or line[1] == ""]


def measured(section, column):
    """{client: figure} of a column of the page's section, ratios left out."""
    (header, *lines) = lines_of(PAGE.read_text().partition(f"## {section}\n")[2])
    at = header.index(column)
    return {line[0]: line[at].partition(" (")[0] for line in lines}


README = (ROOT / "README.md").read_text().partition("## Is it for you?")[2]
HEADER, *ROWS = lines_of(README)
# What a row's cells are made of: section and columns, and what stands between figures.
FROM = {
    "bytecode, bytes": ("Bytecode", ["bytecode"], ""),
    "smallest heap, bytes, QoS 1 both ways, from .mpy": ("Smallest heap", ["smallest heap"], ""),
    "heap for a publish and a received message at QoS 1, bytes": (
        "Heap",
        ["publish QoS 1", "receive QoS 1"],
        ", ",
    ),
    "instructions, publish at QoS 1": ("Instructions", ["publish QoS 1"], ""),
    "messages/s over 20 ms, window 1 / 10 / 100": (
        "Rate",
        ["window 1", "window 10", "window 100"],
        " / ",
    ),
}


@pytest.mark.parametrize("title", FROM)
def test_figures_of_the_readme_are_those_of_the_page(title):
    section, columns, between = FROM[title]
    found = [measured(section, column) for column in columns]
    (row,) = (row for row in ROWS if row[0] == title)
    for client, cell in zip(HEADER[1:], row[1:], strict=True):
        figures = between.join(figure[client] for figure in found)
        assert cell.replace("*", "") == figures, client


def test_readme_counts_what_a_program_cannot_live_with():
    _, *lines = lines_of(PAGE.read_text().partition("## When something goes wrong\n")[2])
    row = ROWS[-1]
    assert row[1].replace("*", "").endswith(f"of {len(lines)}")
    for client, cell in zip(HEADER[1:], row[1:], strict=True):
        bad = sum(f", {client} (" in ", " + line[-1] for line in lines)
        assert cell.replace("*", "").split()[0] == str(bad), client
