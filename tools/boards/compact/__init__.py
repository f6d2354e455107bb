"""The library as boards get it: the same, in fewer files and with short names.

`compact()` reads the modules and writes new sources, which mpy-cross then compiles:
`reading` leaves out what no board runs, `linking` makes one file of what is always
loaded, `public` says which names stay, `names` gives the others short ones, `rewriting`
writes, `ordering` numbers names by use.  `mapping` leads back to the library's lines.
No check, no text and no public name is changed; the same library gives the same bytes.
"""

from dataclasses import dataclass
from pathlib import Path

from .linking import Library
from .mapping import Map, make_map
from .ordering import in_order
from .public import read_public
from .reading import PACKAGE, LinkError, read_modules
from .rewriting import Writer

__all__ = ["PACKAGE", "Compact", "LinkError", "Map", "compact"]


@dataclass(frozen=True)
class Compact:
    """`sources` {module: source}, `labels` {module: what tracebacks call its file}."""

    sources: dict
    labels: dict
    map: Map


def compact(paths, typings, package):
    """The package of the modules at `paths`, of which `typings` says what is public.

    Raises LinkError where the library does something that is not understood.
    """
    modules = read_modules(paths)
    library = Library(modules, read_public(typings, modules))
    writer = Writer(library, package)
    sources = {name: in_order(text) for name, text in writer.write().items()}
    labels = {name: package if name == PACKAGE else f"{package}.{name}" for name in sources}
    return Compact(sources, labels, make_map(writer, labels, Path(paths[0]).parent))
