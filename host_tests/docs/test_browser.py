"""The site in a real browser without a network, as wide as a desk and as a phone.

Without a Chromium nothing is collected here; `make setup` installs it.
"""

import contextlib
import re
import shutil

import pytest
from playwright.sync_api import sync_playwright

from tools.project import ROOT
from tools.setup.nodejs import MERMAID

pytestmark = pytest.mark.xdist_group("docs")

DOCS = ROOT / "docs"
PICTURES = {
    path.relative_to(DOCS): len(re.findall(r"^```mermaid$", path.read_text(), re.MULTILINE))
    for path in sorted(DOCS.rglob("*.md"))
    if "```mermaid" in path.read_text()
}

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((found for name in _NAMES if (found := shutil.which(name))), None)
_SIZES = {
    "desk": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}

# What reaches beyond the right edge, but not what scrolls by itself, such as a wide table.
_TOO_WIDE = """() => {
  const scrolls = (node) => node && (["auto", "scroll", "hidden"].includes(
    getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  return [...document.querySelectorAll(".md-content *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => !scrolls(node))
    .map((node) => node.tagName + " " + node.textContent.slice(0, 40));
}"""
# Of the table of outcomes, the widest, scrolled to its end: are its first cells to be seen?
_SCROLLED_CELLS = """() => {
  const table = [...document.querySelectorAll("table")].find((one) =>
    one.querySelector("th:nth-child(10)"));
  const scroller = table.closest(".md-typeset__scrollwrap");
  scroller.scrollLeft = scroller.scrollWidth;
  const left = scroller.getBoundingClientRect().left;
  const isSeen = (cell) => cell.getBoundingClientRect().left >= left - 1;
  const [first, second] = table.querySelectorAll("td");
  return {first: isSeen(first), second: isSeen(second)};
}"""
# Material draws each picture into a shadow tree that scripts cannot see into; text stays a
# `pre` until then.
_UNDRAWN = "document.querySelectorAll('pre.mermaid').length"
_HEIGHTS = "[...document.querySelectorAll('div.mermaid')].map((node) => node.offsetHeight)"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=_BROWSER,
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        yield started
        started.close()


def too_wide(tab):
    """-> what of the page reaches beyond the right edge."""
    found = tab.evaluate(_TOO_WIDE)
    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page scrolls sideways")
    return found


def from_elsewhere(address):
    return [] if address.startswith(("file:", "data:", "blob:")) else [address]


@pytest.fixture(params=_SIZES.values(), ids=_SIZES)
def tab(request, browser):
    """A tab of either size."""
    with open_tab(browser, request.param) as opened:
        yield opened


@contextlib.contextmanager
def open_tab(browser, size):
    """A tab that keeps what the console said and what was asked of a network."""
    context = browser.new_context(viewport=size)
    opened = context.new_page()
    opened.complaints = []
    opened.on("console", lambda said: opened.complaints.append(said.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda asked: opened.complaints.extend(from_elsewhere(asked.url)))
    yield opened
    context.close()


if _BROWSER:

    def test_every_page_fits_both_widths_and_complains_of_nothing(site, browser):
        wrong = {}
        with open_tab(browser, _SIZES["desk"]) as tab:
            for path in sorted(set(site.rglob("*.html")) - {site / "404.html"}):
                tab.set_viewport_size(_SIZES["desk"])
                tab.goto(path.as_uri())
                wrong["desk", path.name] = too_wide(tab)
                # Narrowed instead of loaded again, which is what takes the time.
                tab.set_viewport_size(_SIZES["phone"])
                wrong["phone", path.name] = too_wide(tab)
            assert tab.complaints == []
        assert {page: found for page, found in wrong.items() if found} == {}

    def test_wide_table_keeps_what_its_rows_are_about_in_sight(site, tab):
        tab.goto((site / "reasons" / "benchmarks.html").as_uri())
        assert tab.evaluate(_SCROLLED_CELLS) == {"first": True, "second": False}
        assert tab.complaints == []

    def test_pictures_are_drawn(site, tab):
        assert MERMAID.exists(), "run make setup"
        for page, pictures in PICTURES.items():
            tab.goto((site / page).with_suffix(".html").as_uri())
            tab.wait_for_function(_UNDRAWN + " == 0")
            heights = tab.evaluate(_HEIGHTS)
            assert len(heights) == pictures
            assert min(heights) > 100
        assert tab.complaints == []

    def test_search_without_a_server_finds_a_method(site, tab):
        tab.goto((site / "index.html").as_uri())
        tab.keyboard.press("/")
        tab.keyboard.type("next_due_ms")
        found = tab.locator(".md-search-result__link")
        found.first.wait_for()
        assert any("client.html" in one.get_attribute("href") for one in found.all())
        assert tab.complaints == []
