"""Packages of another Debian suite or architecture, or their source, in a folder of their own.

apt itself chooses the mirror, checks the signatures and finds the libraries; it
works on lists and a status file of ours, so the machine's packages are neither
read nor touched, and root is not needed.  Nothing is installed: `dpkg -x` only.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import SetupError

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SUITES_OF_A_MACHINE = ("stable", "oldstable", "testing", "unstable", "sid")

# During a point release a mirror may have new signatures beside old lists, for days where it
# fetches each file only when it is asked for.  Under the suite's other name it may have
# another state, whose files fit together.
_OTHER_NAMES = {"trixie": "stable", "sid": "unstable"}

# A mirror that lags behind serves lists that have expired.  Signatures are still checked.
_APT_CONF = """\
#clear APT::Architectures;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "0";
APT::Sandbox::User "root";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Debug::NoLocking "1";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "{folder}/none";
Dir::Etc::preferences "{folder}/none";
Dir::Etc::preferencesparts "{folder}/none";
"""


def mirror() -> str | None:
    """The Debian mirror in the machine's apt configuration; None where there is no Debian."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        return None
    suites = (release.get("VERSION_CODENAME", "sid"), *_SUITES_OF_A_MACHINE)
    fields = "$(RELEASE)|$(COMPONENT)|$(REPO_URI)"
    for line in _output("apt-get", "indextargets", "Created-By: Packages", "--format", fields):
        suite, component, uri = line.split("|", 2)
        if component == "main" and suite in suites:
            return uri
    return None


def architecture() -> str:
    """Debian's name for this machine's architecture, such as "amd64"."""
    return _output("dpkg", "--print-architecture")[0]


class Suite:
    """One Debian suite on `uri` for one architecture, its lists kept under `folder`: those of
    packages, or those of their sources."""

    def __init__(
        self, folder: Path, uri: str, name: str, architecture: str, *, is_source: bool = False
    ) -> None:
        self.name = name
        self.architecture = architecture
        self.title = f"Debian {name} for {architecture}"
        self._folder = folder
        self._conf = folder / "apt.conf"
        kind = "deb-src" if is_source else "deb"
        self._line = f"{kind} [signed-by={_KEYRING}] {uri} {{}} main\n"
        for needed in ("none", "state/lists/partial", "cache"):
            (folder / needed).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self._conf.write_text(_APT_CONF.format(architecture=architecture, folder=folder))

    def update(self) -> None:
        """Fetch the lists, those under the suite's other name where its own has none."""
        try:
            self._fetch_lists(self.name)
        except SetupError:
            other = _OTHER_NAMES.get(self.name)
            if other is None or not self._has_lists(other):
                raise

    def _has_lists(self, other: str) -> bool:
        try:
            self._fetch_lists(other)
        except SetupError:
            return False
        # "stable" will name another suite one day.
        targets = ("indextargets", "--format", "$(CODENAME)")
        return self.name in _output("apt-get", "-c", self._conf, *targets)

    def _fetch_lists(self, name: str) -> None:
        (self._folder / "sources.list").write_text(self._line.format(name))
        self._apt("update")

    def unpack(self, packages: Iterable[str], target: Path) -> None:
        """Download `packages` with all that they depend on, and unpack them into `target`."""
        debs = self._folder / "cache" / "archives"
        (debs / "partial").mkdir(parents=True, exist_ok=True)
        names = [f"{package}:{self.architecture}" for package in packages]
        self._apt("-y", "--download-only", "install", *names)
        target.mkdir(parents=True)
        for deb in sorted(debs.glob("*.deb")):
            if subprocess.run(["dpkg", "-x", deb, target]).returncode:
                raise SetupError(f"{deb.name} could not be unpacked; is the disk full?")

    def fetch_source(self, package: str) -> Path:
        """Download what its authors published of `package`, without Debian's changes."""
        archives = self._folder / "cache"
        self._apt("source", "--download-only", "--tar-only", package, folder=archives)
        return next(archives.glob(f"{package}_*.orig.tar.*"))

    def _apt(self, *words: str, folder: Path | None = None) -> None:
        done = subprocess.run(
            ["apt-get", "-q", "-c", self._conf, *words],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if line.startswith("E:")]
            raise SetupError(f"{self.title}: {errors[0] if errors else 'apt-get failed'}")


def loader_of(folder: Path) -> Path:
    """The dynamic loader of the C library that was unpacked into `folder`.  Raises SetupError."""
    # Debian 12 has libraries in two folders, and the loader in the first.
    for top in ("lib", "usr/lib"):
        for found in folder.glob(f"{top}/*-linux-gnu*/ld-linux*.so.*"):
            return found
    raise SetupError(f"{folder.name}: no dynamic loader in its libc6")


def write_script(path: Path, text: str) -> None:
    """A program of a few lines of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def _output(*command: str | Path) -> list[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    return done.stdout.splitlines()
