"""Bring library, firmware and settings onto a board, and check that it runs.

Only files whose hash differs travel.  They are staged under /staged and moved in
one decided step (`firmware/update.py`), so an unplugged board still starts.  What
somebody else wrote and we replace is copied to /backup first.
"""

import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import device
from .config import SETTINGS, keys, names_of_files
from .errors import BoardError
from .places import FIRMWARE
from .profile import board_names, chip_of, load_profile
from .remote import Remote

DEPLOYED = "deployed.txt"  # which files of the board are ours, and how they were
RELEASE = "release.txt"  # the number that an update over the air has to exceed
STAGED = "/staged"
# Order of the moves: first what finishes an interrupted update, last what needs all files.
_MOVED = {"update.mpy": 0, "boot.py": 1, "main.py": 3, DEPLOYED: 4}
_JOURNAL_PLACE = "/journal/place"
_MPY_VERSION = 6
# littlefs copies on write: a rename or a directory may need a block for a moment.
_SPARE_BLOCKS = 4
# Files that a person writes by hand are small.
_BACKUP_BLOCKS = 2


@dataclass
class Plan:
    """What a deployment changes: `changed` maps paths to bytes, `removed` are paths.

    `foreign` are those of them that somebody else wrote: copies go to /backup.
    """

    changed: dict
    removed: list
    foreign: list = field(default_factory=list)

    def __bool__(self):
        return bool(self.changed or self.removed)


def make_plan(files, inventory):
    """Compare `files` {path: bytes} with what take_inventory() found.

    A .py beside a .mpy that is brought is removed: MicroPython would prefer it.
    """
    on_board, deployed = inventory["files"], _deployed(inventory)
    files = with_list(files)
    # Files of the device, not of a person.  No second copy of a key.
    not_kept = _device_names(files.get(SETTINGS)) | {DEPLOYED}
    changed = {path: data for path, data in files.items() if digest(data) != on_board.get(path)}
    twins = (source_twin(path) for path in files if path.endswith(".mpy"))
    removed = [path for path in twins if path in on_board]
    foreign = [
        path
        for path in [*changed, *removed]
        if path in on_board and path not in not_kept and on_board[path] != deployed.get(path)
    ]
    return Plan(changed, removed, foreign)


def with_list(files):
    """`files` with the list that tells the next deployment which ones are ours: "SHA-256 PATH"
    each, without those of the device."""
    device = _device_names(files.get(SETTINGS))
    lines = [f"{digest(data)} {path}\n" for path, data in files.items() if path not in device]
    return files | {DEPLOYED: "".join(sorted(lines)).encode()}


def numbered(files, number):
    """`files` as the release of this number: no update over the air brings older ones."""
    return files | {RELEASE: b"%d\n" % number}


def _not_older(files, inventory):
    # The release number of a board never gets smaller.
    on_board = inventory["texts"].get(RELEASE) or ""
    if RELEASE in files and on_board.strip().isdecimal() and int(on_board) > int(files[RELEASE]):
        return files | {RELEASE: on_board.encode()}
    return files


def _device_names(settings):
    try:
        return names_of_files(json.loads(settings or "{}"))
    except ValueError:
        return {SETTINGS}


def _deployed(inventory):
    text = inventory["texts"].get(DEPLOYED) or ""
    lines = (line.partition(" ") for line in text.splitlines())
    return {path: found for found, _, path in lines}


def digest(data):
    """SHA-256 as hex digits."""
    return hashlib.sha256(data).hexdigest()


def source_twin(path):
    """The source file that MicroPython would import in place of `path`."""
    return path.removesuffix(".mpy") + ".py"


def take_inventory(remote, files):
    """What is on the board: hashes of `files` and their twins, settings, free space, versions."""
    twins = [source_twin(path) for path in files if path.endswith(".mpy")]
    paths = [*files, DEPLOYED, *twins]
    texts = [SETTINGS, DEPLOYED, RELEASE, _JOURNAL_PLACE]
    return device.answer(remote.execute(device.source("inventory", paths=paths, texts=texts)))


def check_board(profile, inventory, plan, port):
    """Raise BoardError when the board at `port` is another one or cannot take the plan."""
    machine = inventory["machine"]
    if chip_of(machine) != (profile.chip if profile.port != "unix" else ""):
        raise BoardError(f"{port}: this is a {machine}; {profile.name} has {profile.mcu}: BOARD=?")
    found = inventory["mpy"] & 0xFF
    if found != _MPY_VERSION:
        version = ".".join(map(str, inventory["version"]))
        raise BoardError(
            f"MicroPython {version} on the board reads .mpy version {found}, "
            f"these are {_MPY_VERSION}; flash MicroPython 1.25 or later"
        )
    if SETTINGS not in plan.changed:
        _check_settings(inventory, profile, port)
    block = inventory["block"]
    blocks = sum(-(-len(data) // block) for data in plan.changed.values()) + _SPARE_BLOCKS
    blocks += len(plan.foreign) * _BACKUP_BLOCKS
    if _lacks_journal(profile, inventory):
        blocks += profile.journal.size // block
    if blocks * block > inventory["free"]:
        raise BoardError(
            f"filesystem full: {blocks * block:,} bytes needed to replace files safely, "
            f"{inventory['free']:,} free; remove files of yours (mpremote rm)"
        )


def other_board(profile, machine):
    """The profile of a board of that name whose network is another one, or None.

    It may be the right one: upstream's generic firmware runs on many boards.
    """
    name = machine.rpartition(" with ")[0]
    if name == profile.firmware.machine:
        return None
    others = (load_profile(one) for one in board_names())
    found = [one for one in others if name and one.firmware.machine == name]
    return next((one for one in found if one.network != profile.network), None)


def _check_settings(inventory, profile, port):
    text = inventory["texts"][SETTINGS]
    if text is None:
        raise BoardError(f"{port}: the board has no settings yet: add CONFIG=device.toml")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BoardError(f"{port}: settings.json on the board is damaged: add CONFIG=device.toml")
    if problems := keys.problems(found, profile.network == "wifi"):
        raise BoardError(f"{port}: settings.json on the board: {problems[0]}: add CONFIG=")


def _check_journal(port, inventory, plan):
    # -> has it to be erased?  A journal is of one client, and of level 5 or of the others: the
    # node would not start.  The files that are on the board now can say whether it is empty.
    before, after = (
        _journal_of(text) for text in (inventory["texts"][SETTINGS], plan.changed.get(SETTINGS))
    )
    if None in (before, after) or before == after:
        return False
    report = device.answer(Remote(port).execute(device.source("selfcheck")))
    if count := sum(report.get("journal", {}).values()):
        raise BoardError(
            f"{port}: its journal holds {count} messages that cannot be sent at another level or "
            "with another client_id: let them go out first, or leave both as they are"
        )
    return "journal" in report and before[1] != after[1]


def _journal_of(settings):
    # -> (is it of level 5?, client id); None if there is no journal, or nobody can tell.
    try:
        found = json.loads(settings)
        if found.get("store") == "journal":
            return found.get("level", 3) == 5, found.get("client_id")
    except (TypeError, ValueError, AttributeError):
        pass
    return None


def _lacks_journal(profile, inventory):
    return profile.journal.place == "reserved" and inventory["texts"][_JOURNAL_PLACE] is None


def deploy(port, files, profile, on_file=lambda path: None, on_doubt=lambda text: None):
    """Make the board at `port` hold `files` {path: bytes} -> the Plan that was carried out.

    All that can be refused is refused before anything is changed.  `on_file` hears
    each path before it travels, `on_doubt` whether it may be another board.  BoardError.
    """
    remote = Remote(port)
    inventory = take_inventory(remote, files)
    plan = make_plan(_not_older(files, inventory), inventory)
    check_board(profile, inventory, plan, port)
    is_of_another = _check_journal(port, inventory, plan)
    if other := other_board(profile, inventory["machine"]):
        on_doubt(
            f"{port} has the MicroPython of {other.name}, with {other.network}; "
            f"{profile.name} has {profile.network}: BOARD=?"
        )
    if _lacks_journal(profile, inventory):
        keep_journal_blocks(port, profile)
    if is_of_another:
        Remote(port).execute(device.source("erase_journal"))
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
    names = sorted(plan.changed, key=lambda path: _MOVED.get(path, 2))
    parents = {parent.as_posix() for name in names for parent in Path(name).parents} - {"."}
    folders = sorted("/" + parent for parent in parents)
    with tempfile.TemporaryDirectory() as folder:
        stage = device.source("stage", folders=folders, foreign=plan.foreign)
        actions = [["exec", stage]]
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


def _copy(local, data, name):
    local.write_bytes(data)
    return ["fs", "cp", "-f", str(local), f":{STAGED}/{name}"]
