"""Images for many devices from one base, and a manifest of what was made.

The batch is a CSV file with a row for each device.  A column is a settings key; `id` and
`broker` are short for `client_id` and `server`.  What all share comes from one device.toml.
Errors name the line and never show a secret.

The base is built and checked once; each device costs one small change of its
filesystem.  Images hold secrets, so they are readable by their owner only, and
the manifest names hashes and no secret.
"""

import csv
import hashlib
import json
import os
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from .config import check_config, keys
from .errors import BoardError
from .places import read_toml, shown, write_private

_SHORT = {"id": "client_id", "broker": "server"}

_base: Any = None
_folder: Any = None


def read_batch(path, profile, shared_path=None):
    """The checked settings of each device in `path`, a list of dicts, ids unique.

    Reports the first problems of up to five rows in one BoardError.
    """
    shared = read_toml(shared_path) if shared_path else {}
    rows = _read_rows(path)
    devices, problems = [], []
    for line, row in rows:
        try:
            devices.append(check_config(shared | row, profile, f"line {line}"))
        except BoardError as error:
            problems.append(error.message)
    problems += _duplicates(rows)
    if problems:
        more = f" … and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise BoardError(f"{shown(path)}: {'; '.join(problems[:5])}{more}")
    if not devices:
        raise BoardError(f"{shown(path)}: no devices; write one row each below the column names")
    return devices


def _read_rows(path):
    # (line number, settings) of each row; an empty cell means: the default.
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = [_SHORT.get(name, name) for name in reader.fieldnames or []]
            wrong = [f"unknown column {name!r}" for name in names if name not in keys.KEYS]
            wrong += [f"column {name!r} twice" for name in names if names.count(name) > 1]
            if wrong or "client_id" not in names:
                allowed = ", ".join([*_SHORT, *keys.KEYS])
                why = wrong[0] if wrong else "no column id"
                raise BoardError(f"{shown(path)}: {why}, allowed: {allowed}")
            return [(reader.line_num, _settings(names, row.values())) for row in reader]
    except (csv.Error, UnicodeDecodeError, AttributeError):
        raise BoardError(f"{shown(path)}: not a CSV file in UTF-8 with equal columns") from None


def _settings(names, cells):
    return {name: _value(name, cell) for name, cell in zip(names, cells) if cell}


def _value(name, cell):
    kind = keys.KEYS[name][1]
    try:
        if kind == "number":
            return int(cell)
        if kind == "qos list":
            return [int(part) for part in cell.split()]
    except ValueError:
        pass  # check_config() says what is allowed
    return cell


def _duplicates(rows):
    first = {}
    for line, row in rows:
        name = row.get("client_id")
        if name is not None and first.setdefault(name, line) != line:
            yield f"line {line}: client id {name!r} is already on line {first[name]}"


def provision(base, devices, folder, on_device=lambda name: None):
    """Write one image per device into `folder` -> its manifest's path.

    `devices` has the files {path: bytes} of each device by its client id.
    `on_device` hears each client id.  Raises BoardError when the disk is too small.
    """
    _make_room(base, devices, folder)
    # Two workers per core gain nothing: the work is hashing and writing.
    with ProcessPoolExecutor(os.cpu_count(), initializer=_begin, initargs=(base, folder)) as pool:
        jobs = [pool.submit(_make_one, name, files) for name, files in devices.items()]
        made = []
        try:
            for job in as_completed(jobs):
                made.append(job.result())
                on_device(made[-1]["client_id"])
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C, too
    about = {"board": base.profile.name, "devices": sorted(made, key=lambda x: x["client_id"])}
    path = folder / "manifest.json"
    path.write_text(json.dumps(about, indent=1) + "\n")
    return path


def _make_room(base, devices, folder):
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    needed = len(base.image({})) * len(devices)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise BoardError(
            f"{shown(folder)}: {needed >> 20:,} MB needed, {free >> 20:,} MB free; "
            f"name another folder with --out"
        )


def _begin(base, folder):
    # In each worker: what all its devices share.
    global _base, _folder
    _base, _folder = base, folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits


def _make_one(name, files):
    data = _base.image(files)
    file = f"{name}{_base.suffix}"
    write_private(_folder / file, data)
    digest = hashlib.sha256(data).hexdigest()
    return {"client_id": name, "file": file, "bytes": len(data), "sha256": digest}
