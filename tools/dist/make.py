"""Makes everything that `make dist` hands out, into one folder."""

from tools.project import ROOT
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from tools import archives
from tools.boards.compile import compile_library, library_sources, make_romfs
from tools.boards.packaging import package_files, version
from tools.folders import make_empty

from .mip import write_index

# Without native code it is the same for every board.
_ARCH = "armv6m"
SUMS = "SHA256SUMS"


class DistError(click.ClickException):
    """Something could not be built; the message is one line."""


def make_all(out: Path) -> Iterator[Path]:
    """Empty `out` and fill it -> what was made, as it is made.

    Raises click.ClickException: DistError, BoardError, one if `out` holds what is not ours.
    """
    make_empty(out)
    with tempfile.TemporaryDirectory() as name:
        compiled = Path(name) / "lib" / "umqtt31"
        compile_library(compiled, _ARCH)
        write_index(out / "mip", compiled)
        yield out / "mip"
        romfs = out / f"umqtt31-{version()}.romfs"
        romfs.write_bytes(make_romfs(Path(name)))
        yield romfs
    yield make_frozen(out / "freeze")
    yield from make_python_packages(out)
    yield _write_sums(out)


def make_frozen(folder: Path) -> Path:
    """Fill `folder` with the library and its manifest, as they lie in the project."""
    library = folder / "lib" / "umqtt31"
    library.mkdir(parents=True)
    for source in library_sources():
        shutil.copyfile(source, library / source.name)
    (folder / "manifest.py").write_text(package_files()["manifest.py"])
    return folder


def make_python_packages(out: Path) -> Iterator[Path]:
    """The sdist, then the wheel from what is in the sdist."""
    yield _hatch(ROOT, out, "sdist")
    sdist = out / f"umqtt31-{version()}.tar.gz"
    with tempfile.TemporaryDirectory() as name, tarfile.open(sdist) as archive:
        archives.unpack(archive, name)
        yield _hatch(Path(name) / f"umqtt31-{version()}", out, "wheel")


def _hatch(project: Path, out: Path, target: str) -> Path:
    before = set(out.iterdir())
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out.resolve())]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    made = set(out.iterdir()) - before
    if done.returncode or len(made) != 1:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise DistError(f"hatchling made no {target}: {last[0] if last else 'no output'}")
    return made.pop()


def _write_sums(out: Path) -> Path:
    lines = []
    for path in sorted(out.rglob("*")):
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(out).as_posix()}\n")
    (out / SUMS).write_text("".join(lines))
    return out / SUMS
