"""The site: it builds, its links lead somewhere, and the reference has every public name."""

import ast
import inspect
import json
import re
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import click
import pytest

import umqtt31
from firmware import settings
from tools.__main__ import main
from tools.project import ROOT

pytestmark = pytest.mark.xdist_group("docs")

DOCS = ROOT / "docs"
TYPINGS = ROOT / "typings" / "umqtt31"

SOURCES = (".py", ".pyi", ".toml", ".yml", ".md", "Makefile")

# What programs import, and what of the types' own modules they meet.
PUBLIC = [path.stem for path in TYPINGS.glob("*.pyi")]


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


def public_names():
    """umqtt31.module.Class.member of all that the types say in public."""
    for module in PUBLIC:
        prefix = "umqtt31" if module == "__init__" else f"umqtt31.{module}"
        for node in ast.parse((TYPINGS / f"{module}.pyi").read_text()).body:
            yield from names_in(node, prefix)


def names_in(node, prefix):
    if isinstance(node, ast.AnnAssign):
        names = [node.target.id]
    elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        names = [node.name]
    else:
        names = []
    for name in names:
        if not name.startswith("_"):
            yield f"{prefix}.{name}"
            if isinstance(node, ast.ClassDef):
                for member in node.body:
                    yield from names_in(member, f"{prefix}.{name}")


def test_reference_has_every_public_name(pages):
    ids = set().union(*(page.ids for path, page in pages.items() if "reference" in path.parts))
    names = set(public_names())
    assert {"umqtt31.MQTTClient.publish", "umqtt31.FULL", "umqtt31.Stats.retried"} < names
    assert {"umqtt31.aio.MQTTClient.messages", "umqtt31.queueing.extend"} < names
    assert names - ids == set()


def rows(page, heading):
    """{first cell: cells} of the first table below `heading`, without back quotes."""
    part = (DOCS / page).read_text().split(f"\n## {heading}\n" if heading else "\n", 1)[1]
    lines = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("|")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]
    return {row[0].replace("`", ""): row for row in cells}


def test_table_of_arguments_is_that_of_the_constructor():
    parameters = inspect.signature(umqtt31.MQTTClient).parameters
    table = rows("reference/client.md", "Arguments")
    assert list(table) == list(parameters)
    for name, parameter in parameters.items():
        empty = parameter.default is inspect.Parameter.empty
        shown = "–" if empty else json.dumps(parameter.default)
        shown = {"null": "None", "false": "False", "true": "True"}.get(shown, shown)
        assert table[name][1].strip("`") == shown, name


def test_table_of_settings_is_that_of_the_node():
    table = rows("guides/sensor-node.md", "Settings")
    told = {name.strip(): row for cell, row in table.items() for name in cell.split(",")}
    assert list(told) == list(settings.KEYS)
    for name, (default, kind, low, high) in settings.KEYS.items():
        shown = told[name]
        if len([one for one in told.values() if one is shown]) > 1:
            continue  # two keys in one row
        expected = default if default is None else list(default) if name == "streams" else default
        assert shown[1] == ("–" if default is None else json.dumps(expected)), name
        if kind == "number":
            assert shown[2] == f"{low} to {high}", name


def commands(group, words):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, [*words, name])
        else:
            yield [*words, name], command


def test_page_of_commands_has_every_command_and_option(site):
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "commands.html").read_text())
    found = list(commands(main, []))
    assert len(found) > 25
    for words, command in found:
        usage = "Usage: python -m tools " + " ".join(words) + " "
        assert usage in text
        shown = text.partition(usage)[2].partition("Usage: ")[0]
        for option in command.params:
            assert option.opts[0] in shown or isinstance(option, click.Argument), (words, option)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^([a-z][a-z-]*):.*##", makefile, re.MULTILINE):
        assert f"make {target}" in text
