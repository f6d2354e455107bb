"""The fenced blocks of the documents: what kind each is, what it says, where it stands."""

import re
from dataclasses import dataclass

from tools.project import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS += sorted(p for p in ROOT.glob("*.md") if p.name not in ("README.md", "CHANGELOG.md"))
DOCUMENTS += [ROOT / "examples" / "README.md", ROOT / "boards" / "README.md"]

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^|\n)\n((?: {4}.*\n)+)")


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


def blocks_of(path):
    """-> the blocks of one document, in their order."""
    counts = {}
    found = []
    for kind, text in _FENCE.findall(path.read_text(encoding="utf-8")):
        number = counts[kind] = counts.get(kind, -1) + 1
        found.append(Block(str(path.relative_to(ROOT)), kind, number, text))
    return found


def indented_code(path):
    """-> pieces of code that are indented instead of fenced, so that nobody checks them."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return [code for code in _INDENTED.findall(text) if not _is_list(text, code)]


def _is_list(text, code):
    """Is the text above `code` an item of a list, which `code` then belongs to?"""
    above = text[: text.index(code)].rstrip().rpartition("\n\n")[2]
    return re.match(r" *([-*]|\d+\.) ", above) is not None


ALL = [block for path in DOCUMENTS for block in blocks_of(path)]


def of_kind(kind):
    return [block for block in ALL if block.kind == kind]
