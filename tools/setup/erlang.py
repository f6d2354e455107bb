"""Brokers written in Erlang, with their Erlang, unpacked from packages of Debian.

Two versions of RabbitMQ cannot be installed side by side, and the newer one needs a
newer Erlang and C library than Debian 12 has.  So packages of both suites are unpacked
under `.host_tests/brokers`, and their programs started through the C library that comes with
them; nothing is installed, and no root is needed.  Only `make test-brokers` wants this.
"""

import shutil
from pathlib import Path

from tools.project import ROOT

from . import debian
from .errors import SetupError

OLDER = ROOT / ".tools" / "brokers" / "bookworm"
NEWER = ROOT / ".tools" / "brokers" / "trixie"

_PACKAGES = {OLDER: ("rabbitmq-server",), NEWER: ("rabbitmq-server", "ejabberd")}
_LISTS = ROOT / ".tools" / "apt"
_COMPLETE = "complete"
_ELF = b"\x7fELF"

# Erlang's own start script has the path of an installed Erlang written into it.
_ERL = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
export ROOTDIR=$here/../.. BINDIR=$here EMU=beam PROGNAME=erl
exec "$BINDIR/erlexec" "$@"
"""
_START = """\
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/{root}
exec "$root/{loader}" --library-path "{libraries}" "$0.elf" "$@"
"""


def install() -> bool:
    """Unpack what is missing; returns whether there was anything to do.  Raises SetupError."""
    missing = [folder for folder in _PACKAGES if not (folder / _COMPLETE).exists()]
    uri = debian.mirror() if missing else None
    if missing and uri is None:
        raise SetupError("RabbitMQ and ejabberd for tests are unpacked on Debian only")
    for folder in missing:
        print(f"setup: fetching {' and '.join(_PACKAGES[folder])} of {folder.name}", flush=True)
        _fetch(uri or "", folder)
    return bool(missing)


def programs(folder: Path) -> Path:
    """Where `erl` and `epmd` of the Erlang in `folder` are; none of it need exist."""
    return next(folder.glob("usr/lib/erlang/erts-*/bin"), folder)


def _fetch(uri: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    architecture = debian.architecture()
    suite = debian.Suite(_LISTS / folder.name, uri, folder.name, architecture)
    suite.update()
    suite.unpack(_PACKAGES[folder], folder)
    shutil.rmtree(_LISTS)
    _make_movable(folder)
    # Last: it says that all of the above is done.
    (folder / _COMPLETE).touch()


def _make_movable(folder: Path) -> None:
    """Have all programs of Erlang start through the C library in `folder`, wherever that is."""
    # Debian 12 has libraries in two places, and the loader in the first of them.
    places = [path for top in ("lib", "usr/lib") for path in folder.glob(f"{top}/*-linux-gnu*")]
    loader = next((found for path in places for found in path.glob("ld-linux*.so.*")), None)
    if loader is None:
        raise SetupError(f"Debian {folder.name}: no dynamic loader in its libc6")
    libraries = ":".join(f"$root/{path.relative_to(folder)}" for path in places)
    erlang = folder / "usr/lib/erlang"
    for program in (*erlang.glob("erts-*/bin/*"), *erlang.glob("lib/*/priv/bin/*")):
        if program.is_file() and not program.is_symlink() and _is_elf(program):
            program.rename(program.with_name(f"{program.name}.elf"))
            root = "/".join([".."] * len(program.parent.relative_to(folder).parts))
            text = _START.format(root=root, loader=loader.relative_to(folder), libraries=libraries)
            _write_script(program, text)
    _write_script(programs(folder) / "erl", _ERL)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
