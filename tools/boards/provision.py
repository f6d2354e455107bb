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
from typing import Any

from .errors import BoardError
from .places import shown, write_private

_base: Any = None
_folder: Any = None


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
        for job in as_completed(jobs):
            made.append(job.result())
            on_device(made[-1]["client_id"])
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


def _make_one(name, files):
    data = _base.image(files)
    file = f"{name}{_base.suffix}"
    write_private(_folder / file, data)
    digest = hashlib.sha256(data).hexdigest()
    return {"client_id": name, "file": file, "bytes": len(data), "sha256": digest}
