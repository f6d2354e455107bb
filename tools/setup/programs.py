"""Brokers of Debian, unpacked and started through the C library that came with them.

apt would start a broker as soon as it is installed, and cannot install two versions side by
side.  So the packages are unpacked under `.tools`; nothing is installed, no root is needed.
"""

import shutil
from pathlib import Path

from tools.project import ROOT

from . import SetupError, debian, system

_BROKERS = ROOT / ".tools" / "brokers"
MOSQUITTO = _BROKERS / "mosquitto"
OLDER = _BROKERS / "bookworm"
NEWER = _BROKERS / "trixie"

# folder: (Debian's suite, packages)
_PACKAGES = {
    MOSQUITTO: ("bookworm", ("mosquitto", "mosquitto-clients")),
    OLDER: ("bookworm", ("rabbitmq-server",)),
    NEWER: ("trixie", ("rabbitmq-server", "ejabberd")),
}
_LISTS = ROOT / ".tools" / "apt-brokers"
_COMPLETE = "complete"
_ELF = b"\x7fELF"
_PROGRAMS = (
    "usr/sbin/mosquitto*",
    "usr/bin/mosquitto_*",
    "usr/lib/erlang/erts-*/bin/*",
    "usr/lib/erlang/lib/*/priv/bin/*",
)

# Erlang's own start script contains the path of an installed Erlang.
_ERL = """\
here=$(dirname "$(readlink -f "$0")")
export ROOTDIR=$here/../.. BINDIR=$here EMU=beam PROGNAME=erl
exec "$BINDIR/erlexec" "$@"
"""
_START = """\
root=$(dirname "$(readlink -f "$0")")/{root}
exec "$root/{loader}" --library-path "{libraries}" "$0.elf" "$@"
"""


def install_mosquitto() -> bool:
    """Unpack mosquitto where there is none; returns whether there was anything to do."""
    if all(map(system.find, ("mosquitto", "mosquitto_sub"))):
        return False
    if debian.mirror() is None:  # brew starts no broker; elsewhere a person installs it
        return system.install_missing((system.MOSQUITTO,))
    _unpack(MOSQUITTO)
    for program in (*MOSQUITTO.glob("usr/sbin/mosquitto"), *MOSQUITTO.glob("usr/bin/mosquitto_*")):
        if not program.name.endswith(".elf"):
            _link(program)
    return True


def install_others() -> bool:
    """Unpack RabbitMQ 3 and 4 and ejabberd; returns whether there was anything to do."""
    missing = [folder for folder in (OLDER, NEWER) if not (folder / _COMPLETE).exists()]
    if missing and debian.mirror() is None:
        raise SetupError("RabbitMQ and ejabberd for tests are unpacked on Debian only")
    for folder in missing:
        _unpack(folder)
    return bool(missing)


def erlang_of(folder: Path) -> Path:
    """Where `erl` and `epmd` of the Erlang in `folder` are; none of it need exist."""
    return next(folder.glob("usr/lib/erlang/erts-*/bin"), folder)


def _unpack(folder: Path) -> None:
    name, packages = _PACKAGES[folder]
    print(f"setup: fetching {' and '.join(packages)} of Debian {name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    suite = debian.Suite(_LISTS, debian.mirror() or "", name, debian.architecture())
    try:
        suite.update()
        suite.unpack(packages, folder)
    finally:
        shutil.rmtree(_LISTS)
    _make_movable(folder)
    # Written last: it says that all of the above is done.
    (folder / _COMPLETE).touch()


def _make_movable(folder: Path) -> None:
    """Have the programs start through the C library in `folder`, wherever that is moved to."""
    loader = debian.loader_of(folder)
    places = [path for top in ("lib", "usr/lib") for path in folder.glob(f"{top}/*-linux-gnu*")]
    libraries = ":".join(f"$root/{path.relative_to(folder)}" for path in places)
    for program in (path for pattern in _PROGRAMS for path in folder.glob(pattern)):
        is_ours = program.is_file() and not program.is_symlink()
        if is_ours and program.read_bytes().startswith(_ELF):
            program.rename(program.with_name(f"{program.name}.elf"))
            root = "/".join([".."] * len(program.parent.relative_to(folder).parts))
            text = _START.format(root=root, loader=loader.relative_to(folder), libraries=libraries)
            debian.write_script(program, text)
    if erlang_of(folder) != folder:
        debian.write_script(erlang_of(folder) / "erl", _ERL)


def _link(program: Path) -> None:
    place = Path("..") / program.relative_to(ROOT / ".tools")
    text = f'exec "$(dirname "$(readlink -f "$0")")/{place}" "$@"\n'
    debian.write_script(system.BIN / program.name, text)
