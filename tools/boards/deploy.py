"""Bring library, firmware and settings onto a board, and check that it runs.

Only files whose hash differs travel.  They are staged under /staged and moved in
one decided step (`firmware/update.py`), so an unplugged board still starts.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import device
from .errors import BoardError
from .places import FIRMWARE
from .remote import Remote

SETTINGS = "settings.json"
STAGED = "/staged"
_MPY_VERSION = 6
# littlefs copies on write: a rename or a directory may need a block for a moment.
_SPARE_BLOCKS = 4


@dataclass
class Plan:
    """What a deployment changes: `changed` maps paths to bytes, `removed` are paths."""

    changed: dict
    removed: list

    def __bool__(self):
        return bool(self.changed or self.removed)


def make_plan(files, on_board):
    """Compare `files` {path: bytes} with `on_board` {path: SHA-256 in hex}.

    A .py beside a .mpy that is brought is removed: MicroPython would prefer it.
    """
    changed = {
        path: data
        for path, data in files.items()
        if hashlib.sha256(data).hexdigest() != on_board.get(path)
    }
    twins = (source_twin(path) for path in files if path.endswith(".mpy"))
    return Plan(changed, [path for path in twins if path in on_board])


def source_twin(path):
    """The source file that MicroPython would import in place of `path`."""
    return path.removesuffix(".mpy") + ".py"


def take_inventory(remote, files):
    """What is on the board: hashes of `files` and their twins, free space, versions."""
    twins = [source_twin(path) for path in files if path.endswith(".mpy")]
    paths = list(files) + twins
    return device.answer(remote.execute(device.source("inventory", paths=paths)))


def check_board(inventory, plan):
    """Raise BoardError when the board cannot take the plan."""
    found = inventory["mpy"] & 0xFF
    if found != _MPY_VERSION:
        version = ".".join(map(str, inventory["version"]))
        raise BoardError(
            f"MicroPython {version} on the board reads .mpy version {found}, "
            f"these are {_MPY_VERSION}; flash MicroPython 1.25 or later"
        )
    block = inventory["block"]
    needed = sum(-(-len(data) // block) for data in plan.changed.values()) + _SPARE_BLOCKS
    if needed * block > inventory["free"]:
        raise BoardError(
            f"filesystem full: {needed * block:,} bytes needed to replace files safely, "
            f"{inventory['free']:,} free; remove files of yours (mpremote rm)"
        )


def deploy(port, files, on_file=lambda path: None):
    """Make the board at `port` hold `files` {path: bytes} -> the Plan that was carried out.

    `on_file` hears each path before it travels.  Raises BoardError.
    """
    remote = Remote(port)
    inventory = take_inventory(remote, files)
    plan = make_plan(files, inventory["files"])
    check_board(inventory, plan)
    if plan:
        _carry_out(remote, plan, on_file)
    return plan


def keep_journal_blocks(port, profile):
    """Give a board whose journal lies inside the filesystem its blocks, once.

    An image brings them; a board that was set up by hand does not have them.
    """
    if profile.journal.place == "reserved":
        count = profile.journal.size // profile.journal.erase_unit
        script = device.source("reserve") + device.source("reserve_here", count=count)
        Remote(port).execute(script)


def check_itself(port):
    """Let the board import and check what it holds -> its report, a dict."""
    report = device.answer(Remote(port).execute(device.source("selfcheck")))
    if report["problem"]:
        raise BoardError(f"{port}: the board's own check failed: {report['problem']}")
    return report


def _carry_out(remote, plan, on_file):
    names = sorted(plan.changed, key=_move_rank)
    with tempfile.TemporaryDirectory() as folder:
        actions = [["exec", device.source("stage", folders=_folders(names))]]
        for i, name in enumerate(names):
            actions.append(_copy(Path(folder) / str(i), plan.changed[name], str(i)))
        ready = [f"{i} {name}" for i, name in enumerate(names)]
        ready += [f"- {name}" for name in plan.removed]
        actions.append(_copy(Path(folder) / "list", "\n".join(ready).encode(), "list"))
        finish = (FIRMWARE / "update.py").read_text()
        actions.append(["exec", f"{finish}\nos.rename('{STAGED}/list', READY)\nfinish()"])
        steps = iter(names)

        def hear(line):
            if line.startswith("cp "):
                on_file(next(steps, "the list"))

        remote.run(*actions, on_line=hear)


def _move_rank(path):
    # What finishes an interrupted update comes first, what needs all files last.
    return {"update.mpy": 0, "boot.py": 1, "main.py": 3}.get(path, 2)


def _copy(local, data, name):
    local.write_bytes(data)
    return ["fs", "cp", "-f", str(local), f":{STAGED}/{name}"]


def _folders(names):
    parents = {parent.as_posix() for name in names for parent in Path(name).parents}
    return sorted("/" + parent for parent in parents - {"."})
