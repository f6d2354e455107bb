"""The lines of text in the repository: each area has at most so many.

What was there when they were set, rounded up a little: growth is a decision that shows in a
diff.  Captures and the corpus of the fuzzer are no text.
"""

import subprocess

import pytest

from tools.project import ROOT

CLIENT = ("firmware/", "boards/", "examples/", "typings/")
MOST = {  # area: folders, what of them is counted elsewhere, lines
    "library": (("lib/",), (), 6_600),
    "boards": (CLIENT, (), 5_320),
    "tools": (("tools/",), ("tools/fleet/",), 7_490),
    "fleet": (("tools/fleet/",), (), 11_680),
    "tests": (("host_tests/",), ("host_tests/fleet/",), 38_610),
    "tests of the fleet": (("host_tests/fleet/",), (), 8_560),
    "all": (("",), (), 83_210),
}


def is_text(name: str) -> bool:
    return not name.endswith(".pcap") and not name.startswith("host_tests/client/corpus/")


@pytest.fixture(scope="module")
def lines() -> dict[str, int]:
    """The lines of each tracked file of text."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in done.stdout.decode().split("\0") if name and is_text(name)]
    return {
        name: (ROOT / name).read_bytes().count(b"\n") for name in names if (ROOT / name).is_file()
    }


@pytest.mark.parametrize("area", MOST)
def test_area_has_at_most_its_lines(lines, area):
    folders, elsewhere, most = MOST[area]
    found = sum(
        count
        for name, count in lines.items()
        if name.startswith(folders) and not name.startswith(elsewhere)
    )
    assert 0 < found <= most
