"""Bytes of .mpy: what the client takes in a board's flash."""

import ast
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.micropython import ROOT

from .figures import Figure
from .subjects import Bench

TITLE = "Bytes of .mpy"

# Loaded with the client but no layer of it: the budget is for the layers.
_BESIDE = {"errors", "ram"}
_BUDGET = 9000
_PUBLISHED = 2515
_PACKAGE = ROOT / "lib" / "umqtt31"


def measure(bench: Bench) -> Iterator[Figure]:
    """The layers of the client together, then each module."""
    with tempfile.TemporaryDirectory() as folder:
        files = bench.ours.compile("publish", Path(folder) / "ours")
        sizes = {path.stem: path.stat().st_size for path in files}
        peer = None
        if bench.simple:
            files = bench.simple.compile("publish", Path(folder) / "peer")
            peer = sum(path.stat().st_size for path in files)
    layers = sum(sizes[name] for name in loaded_with("client") - _BESIDE)
    yield Figure("client, all layers", layers, _BUDGET, peer, _PUBLISHED)
    for name, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        yield Figure(f"  {name}", size)


def loaded_with(module: str) -> set[str]:
    """The modules of ours that importing `module` loads, itself included."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imported(_PACKAGE / f"{name}.py")
    return found - {"cpython"}


def _imported(path: Path) -> list[str]:
    # What is imported inside a function is loaded when it is needed, not before.
    names: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names += [node.module] if node.module else [alias.name for alias in node.names]
    return names
