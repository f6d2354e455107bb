"""Programs of the operating system: tshark, Java, Chromium, and Python's venv.

Debian and its relatives get them through apt-get (as root or with sudo), macOS
through brew; elsewhere one line says what to install.  None of them starts a service;
brokers are unpacked by `programs`.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tools.project import ROOT

from . import SetupError

BIN = ROOT / ".tools" / "bin"

# Debian installs brokers where an ordinary user's PATH does not look.
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), str(BIN), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"]
)
JAVA_MAJOR = 17

# A machine that was just installed updates itself.  Wait up to ten minutes for its locks;
# apt does not wait for those of the lists.
_APT = """
export DEBIAN_FRONTEND=noninteractive
n=0
until said=$(LC_ALL=C apt-get -q update 2>&1); do
    case $said in
    *"Could not get lock"*) ;;
    *) n=120 ;;
    esac
    if [ $n -ge 120 ]; then
        echo "$said" >&2
        exit 100
    fi
    [ $n -gt 0 ] || echo "setup: waiting for another apt"
    n=$((n + 1))
    sleep 5
done
exec apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
"""


@dataclass(frozen=True)
class Need:
    """One program: how to see that it is there, and its package where it is not."""

    title: str
    is_met: Callable[[], bool]
    debian: str
    brew: str
    without: str = ""  # what does not work without it; empty: set-up cannot go on
    layers: tuple[str, ...] = ("all",)  # of steps.LAYERS, which need it


def find(program: str) -> str | None:
    """The path of `program`, looked for in PATH and where daemons are installed."""
    return shutil.which(program, path=SEARCH_PATH)


def find_java() -> str | None:
    """The path of the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else find("java")


def java_major() -> int:
    """The major version of it, 0 when there is none."""
    java = find_java()
    if java is None:
        return 0
    shown = subprocess.run([java, "-version"], capture_output=True, text=True)
    match = re.search(r'version "(\d+)', shown.stderr + shown.stdout)
    return int(match[1]) if match else 0


def _has(program: str) -> Callable[[], bool]:
    return lambda: find(program) is not None


MOSQUITTO = Need(
    "mosquitto",
    lambda: all(map(find, ("mosquitto", "mosquitto_sub"))),
    "mosquitto mosquitto-clients",
    "mosquitto",
)
NEEDS = (
    Need(
        "Python's venv",
        lambda: all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
        f"python3.{sys.version_info[1]}-venv",
        "python",
        layers=("client", "boards", "demo", "fleet", "docs", "all"),
    ),
    Need("tshark", _has("tshark"), "tshark", "wireshark"),
    Need(
        "npm",
        _has("npm"),
        "npm",
        "node",
        "tests against the broker aedes, pictures of the site",
        ("docs", "all"),
    ),
    Need("valgrind", _has("valgrind"), "valgrind", "valgrind", "counting instructions"),
    Need(
        "Chromium",
        lambda: any(_has(name)() for name in ("chromium", "chromium-browser", "google-chrome")),
        "chromium",
        "chromium",
        "the tests that look at pages",
    ),
    Need(
        f"Java {JAVA_MAJOR}+",
        lambda: java_major() >= JAVA_MAJOR,
        "default-jre-headless",
        "openjdk",
        "the fleet pipeline",
        ("fleet", "all"),
    ),
)


def needs_of(layer: str) -> tuple[Need, ...]:
    """What of `NEEDS` the layer needs."""
    return tuple(need for need in NEEDS if layer in need.layers)


def install_missing(needs: tuple[Need, ...] = NEEDS) -> bool:
    """Install what is missing; returns whether there was anything to do.

    Raises SetupError naming what a person has to install.  What only a part of
    the project needs is warned about instead, and set-up goes on.
    """
    missing = [need for need in needs if not need.is_met()]
    firm = [need for need in missing if not need.without]
    if firm:
        _install(firm)
        if still := [need for need in firm if not need.is_met()]:
            raise SetupError(f"{_titles(still)} still not found after installing; see above")
    did = [_install_or_warn(need) for need in missing if need.without]
    return bool(firm) or any(did)


def _install_or_warn(need: Need) -> bool:
    try:
        _install([need])
    except SetupError as error:
        print(f"setup: {error} ({need.without} will not work; all else does)", flush=True)
        return False
    return True


def _install(needs: list[Need]) -> None:
    print(f"setup: installing {_titles(needs)}", flush=True)
    is_broker = MOSQUITTO in needs
    if shutil.which("apt-get") and not is_broker:
        packages = [need.debian for need in needs]
        command = [*_as_root(packages), "sh", "-c", _APT, "sh", *packages]
        by_hand = " as root: apt-get install " + " ".join(packages)
    elif shutil.which("brew"):
        packages = sorted({need.brew for need in needs})
        command = ["brew", "install", "--quiet", *packages]
        by_hand = ": brew install " + " ".join(packages)
    else:
        raise SetupError(f"please install {_titles(needs)}, then run `make setup` again")
    if subprocess.call(command):
        raise SetupError(f"could not install {_titles(needs)}; try yourself{by_hand}")


def _as_root(packages: list[str]) -> list[str]:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        return ["sudo"]
    raise SetupError(f"please run as root: apt-get install {' '.join(packages)}")


def _titles(needs: list[Need]) -> str:
    return ", ".join(need.title for need in needs)
