"""The README's table says what docs/reasons/benchmarks.md does, which `make bench` writes."""

from host_tests.docs import blocks
from host_tests.sizes import measure


def measured(section, column):
    """{client: figure} of a column of the page's section, ratios left out."""
    header, *lines = blocks.table("docs/reasons/benchmarks.md", section)
    at = header.index(column)
    return {line[0]: line[at].partition(" (")[0] for line in lines}


HEADER, *ROWS = blocks.table("README.md", "Is it for you?")
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
