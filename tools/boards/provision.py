"""Images for many devices from one base, and a manifest of what was made.

The base is built and checked once; each device costs one small change of its
filesystem.  Images hold secrets, so they are readable by their owner only, and
the manifest names hashes and no secret.
"""

import hashlib
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from .config import settings_json
from .errors import BoardError
from .places import shown

MANIFEST = "manifest.json"
_base: Any = None
_folder: Any = None


@dataclass(frozen=True)
class Made:
    """One image that was written; `sha256` in hex."""

    client_id: str
    file: str
    bytes: int
    sha256: str


def provision(base, devices, folder, shared_files, on_device=lambda name: None):
    """Write one image per device (dicts of settings) into `folder` -> its manifest's path.

    `shared_files` are further {path: bytes} for every device, e.g. the broker's CA.
    `on_device` hears each client id.  Raises BoardError when the disk is too small.
    """
    _make_room(base, devices, folder)
    # Two workers per core gain nothing: the work is hashing and writing.
    with ProcessPoolExecutor(os.cpu_count(), initializer=_begin, initargs=(base, folder)) as pool:
        jobs = [pool.submit(_make_one, settings, shared_files) for settings in devices]
        made = []
        for job in as_completed(jobs):
            made.append(job.result())
            on_device(made[-1].client_id)
    return _write_manifest(base, sorted(made, key=lambda one: one.client_id), folder)


def write_private(path, data):
    """Write a file that only its owner may read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


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


def _make_one(settings, shared_files):
    name = settings["client_id"]
    data = _base.image(shared_files | {"settings.json": settings_json(settings)})
    file = f"{name}{_base.suffix}"
    write_private(_folder / file, data)
    return Made(name, file, len(data), hashlib.sha256(data).hexdigest())


def _write_manifest(base, made, folder):
    path = folder / MANIFEST
    about = {"board": base.profile.name, "devices": [vars(one) for one in made]}
    path.write_text(json.dumps(about, indent=1) + "\n")
    return path
