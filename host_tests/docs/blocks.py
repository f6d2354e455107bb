"""The fenced blocks of the documents: what kind each is, what it says, where it stands; and their
tables."""

import re
from collections import Counter
from dataclasses import dataclass

from markdown_it import MarkdownIt

from tools.project import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS += sorted(p for p in ROOT.glob("*.md") if p.name not in ("README.md", "CHANGELOG.md"))
DOCUMENTS += [ROOT / "examples" / "README.md", ROOT / "boards" / "README.md"]


@dataclass(frozen=True)
class Block:
    """One block: `page` from the root, `number` among those of its kind on that page."""

    page: str
    kind: str
    number: int
    text: str

    @property
    def id(self):
        return f"{self.page}-{self.kind}-{self.number}"


ALL = []
INDENTED = []  # (page, code) that is indented instead of fenced, so that nobody checks it
for _path in DOCUMENTS:
    _page, _counts = str(_path.relative_to(ROOT)), Counter()
    for _token in MarkdownIt().parse(_path.read_text(encoding="utf-8")):
        if _token.type == "fence":
            ALL.append(Block(_page, _token.info, _counts[_token.info], _token.content))
            _counts[_token.info] += 1
        elif _token.type == "code_block":
            INDENTED.append((_page, _token.content))


def of_kind(kind):
    return [block for block in ALL if block.kind == kind]


def texts(page, kind):
    """-> what the blocks of a kind on a page say, in their order."""
    return [block.text for block in of_kind(kind) if block.page == page]


def table(page, heading):
    """-> the cells of each line of the first table below `heading`, header first, without rule."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    lines = re.search(r"^\|.*?(?=^[^|]|\Z)", text, re.MULTILINE | re.DOTALL)[0].splitlines()
    header, _, *rows = ([c.strip() for c in re.split(r"(?<!\\)\|", x)[1:-1]] for x in lines)
    return [header, *rows]
