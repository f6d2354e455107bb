"""What MkDocs calls while it builds the site: its scripts, lists of commands and programs."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.__main__ import main
from tools.project import ROOT
from tools.setup.nodejs import IFRAME_WORKER, MERMAID

_SCRIPTS = {"assets/mermaid.js": MERMAID, "assets/iframe-worker.js": IFRAME_WORKER}
_MERMAID_TAG = re.compile(r'<script src="[./]*assets/mermaid\.js"></script>')
_RELATIVE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)\)")
_MISSING = "console.warn('%s is not installed; see make setup');\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the scripts that `make setup` fetched, and the page of conformance."""
    for name, path in _SCRIPTS.items():
        script = path.read_text(encoding="utf-8") if path.exists() else _MISSING % name
        files.append(File.generated(config, name, content=script))
    if (ROOT / "host_tests").exists():  # a checkout, and no installed package
        subprocess.run([sys.executable, "-m", "host_tests", "conformance"], cwd=ROOT, check=True)
        content = (ROOT / "build" / "conformance.md").read_text(encoding="utf-8")
        files.append(File.generated(config, "reasons/conformance.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put lists where a page has their marks; unlink what the site has not."""

    def unlinked(link: re.Match[str]) -> str:
        path = (Path(config.docs_dir) / page.file.src_uri).parent / link[2]
        if path.resolve().is_relative_to(config.docs_dir):
            return link[0]
        if not path.exists():
            raise PluginError(f"{page.file.src_uri}: no file {link[2]}")
        return link[1]

    markdown = _RELATIVE.sub(unlinked, markdown)
    for mark, make in _LISTS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make()))
    return markdown


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Leave Mermaid, 2.4 MB, out of pages without a picture."""
    return output if 'class="mermaid"' in output else _MERMAID_TAG.sub("", output)


def _examples() -> Iterator[str]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0].rstrip(".:")
        yield from (f"### {path.name}", "", f"{about}.", "", "```python", source, "```", "")


def _targets() -> Iterator[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    yield from ("| command | does |", "|---|---|")
    for target, meaning in re.findall(r"^([a-z][a-z-]*):.*?## (.*)$", text, re.MULTILINE):
        yield f"| `make {target}` | {meaning} |"


def contexts_of(command: click.Command, name: str, **settings: Any) -> Iterator[click.Context]:
    """Those of a command and of all below it, in their order."""
    context = click.Context(command, info_name=name, **settings)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found
            yield from contexts_of(found, name, **settings | {"parent": context})


def _commands() -> Iterator[str]:
    width = {"terminal_width": 78, "max_content_width": 78}
    for context in contexts_of(main, "python -m tools", **width):
        *above, name = context.command_path.split()[2:]
        if above:
            heading = "##" + "#" * len(above) + f" {name}"
            yield from ("", heading, "", "```text", context.get_help(), "```", "")


def _deep_sleep() -> Iterator[str]:
    yield from ("```python", (ROOT / "examples" / "deep_sleep.py").read_text(), "```")


_LISTS = {
    "<!-- make -->": _targets,
    "<!-- tools -->": _commands,
    "<!-- deep_sleep.py: on the site, it stands here -->": _deep_sleep,
    "<!-- examples: on the site, each of them stands here -->": _examples,
}
