"""Programs of the operating system: brokers, tshark, Java, and Python's venv.

Debian and its relatives get them through apt-get (as root or with sudo), macOS
through brew; elsewhere one line says what to install.  Debian's own mosquitto
service is neither started nor left enabled: demo and tests start brokers of their own.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from .errors import SetupError

# Debian installs brokers where an ordinary user's PATH does not look.
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"]
)
JAVA_MAJOR = 17

# Packages may start their service as soon as they are installed; policy-rc.d is
# Debian's way to say no.  An existing one is the administrator's, and stays, unless a
# killed set-up left it.  They also enable it for the next start of the machine: what came
# anew is disabled again.  A unit's links are all that enables it; Debian's helper for them
# refuses whoever is not dpkg.  Both is tidied up after Ctrl-C, too, where sh by itself
# would not run its EXIT trap.  A machine that was just installed is busy with updates of its
# own: for ten minutes their locks are waited for, those of the lists here, as apt does not.
_APT = """
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
mark='# umqtt31: no service starts while its package is installed'
enabled() {
    cd "${ETC:-/etc}"
    find systemd/system -path '*.wants/*.service' 2>/dev/null | sed 's|.*/||'
    find rc2.d -name 'S??*' 2>/dev/null | sed 's|.*/S..||'
}
is_ours() { [ ! -e $policy ] || grep -qxF "$mark" $policy; }
tidy() {
    if is_ours; then rm -f $policy; fi
    for name in $(enabled | sort -u); do
        case "
$before
" in
        *"
$name
"*) continue ;;
        esac
        case $name in
        *.service) find "${ETC:-/etc}/systemd/system" -path "*.wants/$name" -delete ;;
        *) update-rc.d "$name" disable >/dev/null ;;
        esac
    done
}
before=$(enabled | sort -u)
trap tidy EXIT
trap 'exit 130' HUP INT TERM
if is_ours; then
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >$policy
    chmod 755 $policy
fi
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
apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
"""


@dataclass(frozen=True)
class Need:
    """One program: how to see that it is there, and its package where it is not."""

    title: str
    is_met: Callable[[], bool]
    debian: str
    brew: str
    without: str = ""  # what does not work without it; empty: set-up cannot go on
    jobs: tuple[str, ...] = ("all",)  # of steps.JOBS, which need it


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


def _has_venv() -> bool:
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def _has(program: str) -> Callable[[], bool]:
    return lambda: find(program) is not None


NEEDS = (
    Need(
        "Python's venv",
        _has_venv,
        f"python3.{sys.version_info[1]}-venv",
        "python",
        jobs=("boards", "fleet", "all"),
    ),  # fmt: skip
    Need("mosquitto", _has("mosquitto"), "mosquitto", "mosquitto"),
    Need("mosquitto_sub", _has("mosquitto_sub"), "mosquitto-clients", "mosquitto"),
    Need("tshark", _has("tshark"), "tshark", "wireshark"),
    Need("npm", _has("npm"), "npm", "node", without="tests against the broker aedes, pictures"),
    Need("valgrind", _has("valgrind"), "valgrind", "valgrind", without="counting instructions"),
    Need(
        "Chromium",
        lambda: any(_has(name)() for name in ("chromium", "chromium-browser", "google-chrome")),
        "chromium",
        "chromium",
        without="the test that looks at the fleet report",
    ),
    Need(
        f"Java {JAVA_MAJOR}+",
        lambda: java_major() >= JAVA_MAJOR,
        "default-jre-headless",
        "openjdk",
        without="the fleet pipeline",
        jobs=("fleet", "all"),
    ),
)


def needs_of(job: str) -> tuple[Need, ...]:
    """What of `NEEDS` the job needs."""
    return tuple(need for need in NEEDS if job in need.jobs)


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
    if shutil.which("apt-get"):
        packages = [need.debian for need in needs]
        command = [*_as_root(packages), "sh", "-c", _APT, "sh", *packages]
        by_hand = " as root: apt-get install " + " ".join(packages)
    elif shutil.which("brew"):
        packages = sorted({need.brew for need in needs})
        command = ["brew", "install", "--quiet", *packages]
        by_hand = ": brew install " + " ".join(packages)
    else:
        raise SetupError(f"please install {_titles(needs)}, then run `make setup` again")
    if _run(command):
        raise SetupError(f"could not install {_titles(needs)}; try yourself{by_hand}")


def _run(command: list[str]) -> int:
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # it tidies up, for which subprocess.run would leave it a quarter second
        raise


def _as_root(packages: list[str]) -> list[str]:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        return ["sudo"]
    raise SetupError(f"please run as root: apt-get install {' '.join(packages)}")


def _titles(needs: list[Need]) -> str:
    return ", ".join(need.title for need in needs)
