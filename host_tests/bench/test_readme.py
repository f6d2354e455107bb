"""The README's table says what docs/reasons/benchmarks.md does, which `make bench` writes."""

import re

from host_tests.bench.page import PAGE
from host_tests.sizes import measure
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
(HEADER, *ROWS) = lines_of(README)
OTHERS = HEADER[1:-1]  # the last column is ours


def row(title):
    """{client: cell} of the row of the README."""
    (cells,) = (row for row in ROWS if row[0] == title)
    return dict(zip(HEADER[1:], cells[1:], strict=True))


def test_bytes_of_the_readme_are_those_of_the_page_and_of_the_core():
    cells = row("bytes of `.mpy`, core")
    found = measured("Size", "bytecode")
    assert [cells[client] for client in OTHERS] == [found[client] for client in OTHERS]
    size = measure.sizes()["__init__"]
    assert abs(int(cells["umqtt31"].replace(",", "")) - size) <= 100, size


def test_smallest_heaps_of_the_readme_are_those_of_the_page():
    cells = row("smallest heap from `.mpy`, KB")
    found = measured("Size", "smallest heap")
    for client in OTHERS:
        kilobytes = int(found[client].replace(",", "")) / 1024
        assert abs(float(cells[client]) - kilobytes) < 0.1, client


def test_heap_for_a_message_is_that_of_the_page():
    cells = row("heap for a message at QoS 1, out and in")
    out, back = (measured("Heap", column) for column in ("publish QoS 1", "receive QoS 1"))
    for client in HEADER[1:]:
        assert cells[client] == f"{out[client]}, {back[client]}", client


def test_milliseconds_awake_are_those_of_the_page():
    cells, found = row("milliseconds awake for a reading"), measured("Awake", "awake")
    assert [cells[client] for client in HEADER[1:]] == [found[client] for client in HEADER[1:]]
