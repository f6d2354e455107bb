"""The site in a real browser without a network, as wide as a desk and as a phone.

Without a Chromium nothing is collected here; `make setup` installs it.
"""

import contextlib
import re
import shutil
from collections import Counter

import pytest
from playwright.sync_api import sync_playwright

from host_tests.docs import blocks
from tools.setup.nodejs import MERMAID

pytestmark = pytest.mark.xdist_group("docs")

PICTURES = Counter(one.page.removeprefix("docs/") for one in blocks.of_kind("mermaid"))

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((found for name in _NAMES if (found := shutil.which(name))), None)
_SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}

_ELSEWHERE = re.compile("^(?!file:|data:|blob:).*")
_SCHEMES = {"light": "default", "dark": "slate"}

# What reaches beyond the right edge, but not what scrolls by itself, such as a wide table.
_TOO_WIDE = """() => {
  const scrolls = (node) => node && (["auto", "scroll", "hidden"].includes(
    getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  return [...document.querySelectorAll(".md-content *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => !scrolls(node))
    .map((node) => node.tagName + " " + node.textContent.slice(0, 40));
}"""
# Tables and blocks of code that scroll sideways by themselves.
_SCROLLING = """() => [...document.querySelectorAll(
    ".md-content pre > code, .md-content .md-typeset__scrollwrap")]
  .filter((node) => node.scrollWidth > node.clientWidth + 1)
  .map((node) => node.textContent.trim().slice(0, 40));"""
# Texts with less than 4.5 to 1 between letters and ground, as WCAG 2 counts it, in each scheme.
_PALE = """(schemes) => {
  const numbers = (text) => { const n = text.match(/[\\d.]+/g).map(Number);
    return n.length < 4 ? [...n, 1] : n; };
  const mix = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (colour) => colour.map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const pale = [];
  for (const scheme of schemes) {
    document.body.dataset.mdColorScheme = scheme;
    const known = new Map([[null, { ground: [255, 255, 255], opacity: 1 }]]);
    const look = (node) => {
      if (!known.has(node)) {
        const above = look(node.parentElement), style = getComputedStyle(node);
        known.set(node, { colour: numbers(style.color), opacity: above.opacity * style.opacity,
          ground: mix(numbers(style.backgroundColor), above.ground) });
      }
      return known.get(node);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode.parentElement;
      if (!texts.currentNode.textContent.trim() || !node.getClientRects().length) continue;
      const { colour: [r, g, b, a], ground, opacity } = look(node);
      if (!opacity) continue;
      const both = [mix([r, g, b, a * opacity], ground), ground].map(light).sort((a, b) => a - b);
      if ((both[1] + 0.05) / (both[0] + 0.05) < 4.5)
        pale.push([scheme, node.tagName, node.className, texts.currentNode.textContent].join(" "));
    }
  }
  return pale;
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


def pale(tab):
    """-> texts that are hard to read, in either scheme."""
    return tab.evaluate(_PALE, [*_SCHEMES.values()])


@pytest.fixture(params=_SIZES.values(), ids=_SIZES)
def tab(request, browser):
    with open_tab(browser, request.param) as opened:
        yield opened


@contextlib.contextmanager
def open_tab(browser, size, **options):
    """A tab that keeps what the console said and what was asked of a network."""
    context = browser.new_context(viewport=size, **options)
    opened = context.new_page()
    opened.complaints = []
    opened.on("console", lambda said: opened.complaints.append(said.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda asked: opened.complaints.extend(_ELSEWHERE.findall(asked.url)))
    yield opened
    context.close()


if _BROWSER:

    def test_every_page_fits_both_widths_and_can_be_read(site, browser):
        wrong = {}
        pages = sorted(set(site.rglob("*.html")) - {site / "404.html"})
        for number, scheme in enumerate(_SCHEMES):  # as the system says that it prefers
            with open_tab(browser, _SIZES["desk"], color_scheme=scheme) as tab:
                for path in pages[number::2]:
                    tab.set_viewport_size(_SIZES["desk"])
                    tab.goto(path.as_uri())
                    tab.wait_for_selector(f"[data-md-color-scheme={_SCHEMES[scheme]}]")
                    tab.add_style_tag(content="* { transition: none !important }")
                    page = path.relative_to(site)
                    wrong["desk", page] = too_wide(tab) + tab.evaluate(_SCROLLING) + pale(tab)
                    # Narrowed instead of loaded again, which is what takes the time.
                    tab.set_viewport_size(_SIZES["phone"])
                    wrong["phone", page] = too_wide(tab) + pale(tab)
                assert tab.complaints == []
        assert len(wrong) == 2 * len(pages)
        assert {page: found for page, found in wrong.items() if found} == {}

    def test_pictures_are_drawn(site, tab):
        assert MERMAID.exists(), "run make setup"
        for page, pictures in PICTURES.items():
            tab.goto((site / page).with_suffix(".html").as_uri())
            tab.wait_for_function(_UNDRAWN + " == 0")
            heights = tab.evaluate(_HEIGHTS)
            assert len(heights) == pictures
            assert min(heights) > 100
        assert tab.complaints == []

    @pytest.mark.parametrize(
        ("words", "page"),
        [
            ("next_due_ms", "client.html"),
            ("install", "packages.html"),
            ("Wi-Fi", "options.html"),
            ("logging", "troubleshooting.html"),
            ("license", "index.html"),
            ("Home Assistant", "home-assistant.html"),
            ("Thonny", "packages.html"),
        ],
    )
    def test_search_without_a_server_finds(site, browser, words, page):
        with open_tab(browser, _SIZES["desk"]) as tab:
            tab.goto((site / "index.html").as_uri())
            tab.keyboard.press("/")
            tab.keyboard.insert_text(words)  # as half of a word may be no query
            tab.keyboard.press("End")
            found = tab.locator(".md-search-result__link")
            found.first.wait_for()
            assert any(page in one.get_attribute("href") for one in found.all())
            assert tab.complaints == []
