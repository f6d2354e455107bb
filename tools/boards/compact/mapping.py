"""From the names in a board's traceback back to the library's functions and lines.

Without a table of lines a board tells the file and the function: `File "umqtt31", line 1,
in IndexError`.  The map says which function that is and where it begins; which of its
lines it was, nobody knows.  An attribute in an error's text may have been any of several.
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_FRAME = re.compile(r'File "(?P<file>[\w.]+)", line \d+, in (?P<name>\S+)')
_ATTRIBUTE = re.compile(r"(no attribute '|AttributeError: )(?P<name>\w+)")


@dataclass(frozen=True)
class Map:
    """`functions` {file as boards call it: {function as boards call it: [[path, line, name]]}},
    `attributes` {short name: [names]}; paths are as of the library's own folder."""

    functions: dict
    attributes: dict

    def save(self, path: Path) -> None:
        """Write it, the same bytes for the same map."""
        text = json.dumps(vars(self), indent=1, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Map":
        """Read what `save()` wrote.  ValueError, KeyError, TypeError."""
        read = json.loads(path.read_text(encoding="utf-8"))
        return cls(read["functions"], read["attributes"])

    def restored(self, text: str) -> str:
        """`text` as a board printed it, with the library's names and places."""
        return _ATTRIBUTE.sub(self._attribute, _FRAME.sub(self._frame, text))

    def _frame(self, found: re.Match[str]) -> str:
        places = self.functions.get(found["file"], {}).get(found["name"])
        if not places:
            return found[0]
        return " or ".join(f'File "{path}", line {line}, in {name}' for path, line, name in places)

    def _attribute(self, found: re.Match[str]) -> str:
        names = self.attributes.get(found["name"])
        return found[1] + " or ".join(names) if names else found[0]


def make_map(writer, labels, folder):
    """The map of what `writer` wrote; `folder` is the library's."""
    functions = defaultdict(lambda: defaultdict(list))
    for home, new, old, path, line in writer.functions:
        place = [path.relative_to(folder.parent).as_posix(), line, old]
        functions[labels[home]][new].append(place)
    for home, members in writer.library.order.items():
        for name in members:
            place = [f"{folder.name}/{name}.py", 1, "<module>"]
            functions[labels[home]]["<module>"].append(place)
    files = {file: dict(found) for file, found in functions.items()}
    return Map(files, dict(writer.attributes))
