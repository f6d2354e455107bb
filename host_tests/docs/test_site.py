"""The site: it builds, its links lead somewhere, and the reference has every public name."""

import inspect
import json
import re
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import click
import griffe
import pytest

import umqtt31
from firmware import settings
from host_tests.docs import blocks
from tools.__main__ import main
from tools.docs.hooks import contexts_of
from tools.project import ROOT

pytestmark = pytest.mark.xdist_group("docs")

DOCS = ROOT / "docs"

SOURCES = (".py", ".pyi", ".toml", ".yml", ".md", "Makefile")


class Reader(HTMLParser):
    """Collects what a page refers to and what can be referred to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids.add(attributes.get("id"))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in ("script", "img", "iframe") and attributes.get("src"):
            self.loaded.append(attributes["src"])
        if tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(attributes["href"])


@pytest.fixture(scope="module")
def pages(site):
    """{path: what is in it} of all pages but the one for wrong addresses, which says "/"."""
    found = {path: Reader(path.read_text()) for path in site.rglob("*.html")}
    found.pop(site / "404.html")
    return found


def test_links_of_the_site_lead_to_a_page_and_a_place_in_it(pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(("https:", "mailto:")):
                continue
            name, place = urldefrag(unquote(link))
            target = (path.parent / name).resolve() if name else path
            if not target.is_file() or (place and place not in pages[target].ids):
                wrong.append((path.name, link))
    assert wrong == []


def test_pages_load_only_what_the_site_itself_has(pages):
    for path, page in pages.items():
        assert page.loaded
        assert [one for one in page.loaded if not (path.parent / one).exists()] == []


def test_style_sheets_fetch_nothing_from_elsewhere(site):
    sheets = list(site.rglob("*.css"))
    assert sheets
    assert [
        one for one in sheets if re.search(r"(url\(|@import)\s*[\"']?http", one.read_text())
    ] == []


def test_every_document_is_in_the_menu(pages, site):
    links = {(site / link).resolve() for link in pages[site / "index.html"].links}
    built = {(site / p.relative_to(DOCS)).with_suffix(".html") for p in DOCS.rglob("*.md")}
    assert built - links == set()


@pytest.mark.parametrize("folder", ["start", "guides", "reference", "reasons"])
def test_first_page_of_a_folder_leads_to_all_others(folder):
    text = (DOCS / folder / "index.md").read_text()
    names = {path.name for path in (DOCS / folder).glob("*.md")} - {"index.md"}
    assert {name for name in names if f"({name}" not in text} == set()


def test_pages_that_code_and_settings_name_are_there():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = [ROOT / name for name in tracked.stdout.splitlines() if name.endswith(SOURCES)]
    named = re.compile(r"\bdocs/[\w/-]+\.(?:md|tsv)\b")
    found = {name for path in files for name in named.findall(path.read_text(encoding="utf-8"))}
    assert len(found) > 10
    assert {name for name in found if not (ROOT / name).exists()} == set()


def public_names(thing):
    """umqtt31.module.Class.member of all that the types say in public."""
    for name, one in thing.members.items():
        if one.is_alias:
            continue
        if one.is_module:
            yield from public_names(one)
        elif not name.startswith("_"):
            yield one.path
            if one.is_class:
                yield from public_names(one)


def test_reference_has_every_public_name(pages):
    ids = set().union(*(page.ids for path, page in pages.items() if "reference" in path.parts))
    names = set(public_names(griffe.load("umqtt31", search_paths=[ROOT / "typings"])))
    assert {"umqtt31.MQTTClient.publish", "umqtt31.FULL", "umqtt31.Stats.retried"} < names
    assert {"umqtt31.aio.MQTTClient.messages", "umqtt31.queueing.extend"} < names
    assert names - ids == set()


def test_table_of_arguments_is_that_of_the_constructor():
    parameters = inspect.signature(umqtt31.MQTTClient).parameters
    _, *rows = blocks.table("docs/reference/client.md", "Arguments")
    table = {row[0].strip("`"): row for row in rows}
    assert list(table) == list(parameters)
    for name, parameter in parameters.items():
        empty = parameter.default is inspect.Parameter.empty
        shown = "–" if empty else json.dumps(parameter.default)
        shown = {"null": "None", "false": "False", "true": "True"}.get(shown, shown)
        assert table[name][1].strip("`") == shown, name


def test_table_of_settings_is_that_of_the_node():
    _, *rows = blocks.table("docs/guides/sensor-node.md", "Settings")
    told = {name: row for row in rows for name in row[0].replace("`", "").split(", ")}
    assert list(told) == list(settings.KEYS)
    for name, (default, kind, low, high) in settings.KEYS.items():
        shown = told[name]
        if len([one for one in told.values() if one is shown]) > 1:
            continue  # two keys in one row
        expected = default if default is None else list(default) if name == "streams" else default
        assert shown[1] == ("–" if default is None else json.dumps(expected)), name
        if kind == "number":
            assert shown[2] == f"{low} to {high}", name


def test_page_of_commands_has_every_command_and_option(site):
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "commands.html").read_text())
    contexts = list(contexts_of(main, "python -m tools"))
    assert len(contexts) > 25
    for context in contexts:
        if isinstance(context.command, click.Group):
            continue
        usage = f"Usage: {context.command_path} "
        assert usage in text
        shown = text.partition(usage)[2].partition("Usage: ")[0]
        for option in context.command.params:
            assert option.opts[0] in shown or isinstance(option, click.Argument), (usage, option)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^([a-z][a-z-]*):.*##", makefile, re.MULTILINE):
        assert f"make {target}" in text
