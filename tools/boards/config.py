"""A device's settings: from `device.toml`, written by a person, to `settings.json`.

The table of keys and their bounds is the firmware's own (`firmware/settings.py`);
the board's profile fills in the buffer sizes.  Secrets appear in no message.
"""

import contextlib
import difflib
import json
import ssl
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from .errors import BoardError
from .places import FIRMWARE, read_toml, shown, write_private

SETTINGS = "settings.json"
# Measured with few and small messages: docs/reference/board-profiles.md.
NODE_HEAP = 86 * 1024
# The largest packet of which a journal has room for two in a block of 4096 bytes.
JOURNAL_PACKET = 1771


# Not imported by name: the firmware's folder is no package, and its names are short.
_loader = SourceFileLoader("firmware_settings", str(FIRMWARE / "settings.py"))
keys = ModuleType(_loader.name)
_loader.exec_module(keys)


def read_config(path, profile):
    """Read device.toml -> the checked settings, a dict with the board's default sizes."""
    return check_config(read_toml(path), profile, shown(path))


def check_config(found, profile, where):
    """Fill in the profile's sizes and check; BoardError begins with `where`."""
    settings = profile.defaults.model_dump() | found
    problems = keys.problems(settings, profile.network == "wifi")
    if problems:
        unknown = [name for name in found if name not in keys.KEYS]
        nearest = [difflib.get_close_matches(name, keys.KEYS, 1) for name in unknown]
        hints = [f"did you mean {near[0]}?" for near in nearest if near]
        raise BoardError(f"{where}: {'; '.join(problems + hints)}")
    if text := _lack_of_room(keys.complete(settings), profile):
        raise BoardError(f"{where}: {text}")
    return settings


def _lack_of_room(settings, profile):
    # -> what this board has no room for.  It would find out only after it lost its old files.
    size = settings["buffer_size"]
    if settings["store"] == "journal":
        if size <= JOURNAL_PACKET:
            return None
        return f"buffer_size is {size}; allowed with the journal: up to {JOURNAL_PACKET}"
    taken = _queue_bytes(settings)
    most = max(profile.memory.heap - NODE_HEAP, _queue_bytes(profile.defaults.model_dump()))
    if taken <= most:
        return None
    return (
        f"max_inflight and max_mqueue_len messages of buffer_size are {taken:,} bytes; "
        f"allowed on {profile.name}: {most:,}"
    )


def _queue_bytes(settings):
    return (settings["max_inflight"] + settings["max_mqueue_len"]) * settings["buffer_size"]


def lack_of_memory(profile):
    """What to say of a board in which the sensor node finds too little heap, or None."""
    if profile.memory.heap >= NODE_HEAP:
        return None
    return (
        f"{profile.name} has about {profile.memory.heap:,} bytes of heap, the sensor node "
        f"needs {NODE_HEAP:,}: use the library alone there, or freeze it"
    )


def device_files(path, profile):
    """{path on the board: bytes} of one device: settings.json, and its files for TLS."""
    return files_of(read_config(path, profile), path.parent)


def files_of(settings, *folders):
    """{path on the board: bytes} of the device with these checked settings.

    The files that they name are looked for in each of `folders`.  BoardError.
    """
    found = {}
    for key in keys.FILES:
        if name := settings.get(key):
            found[name] = _read(key, name, folders)
    if settings.get("tls_cert"):
        _check_pair(found, settings["tls_cert"], settings["tls_key"])
    text = json.dumps(settings, indent=1, ensure_ascii=False) + "\n"
    return found | {SETTINGS: text.encode()}


def names_of_files(settings):
    """The names of files_of(), with those of the settings on a board too."""
    return {SETTINGS} | {settings[key] for key in keys.FILES if settings.get(key)}


def _read(key, name, folders):
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            return (folder / name).read_bytes()
    where = " or ".join(shown(folder) for folder in folders)
    raise BoardError(f"{key}: there is no {name} in {where}")


def _check_pair(files, certificate, key):
    # A board would learn only from its broker that they do not fit.  Python reads PEM only.
    # Contents are never shown.
    names = certificate, key
    if not all(b"-----BEGIN " in files[name] for name in names):
        return
    with tempfile.TemporaryDirectory() as folder:
        public, private = Path(folder) / "crt", Path(folder) / "key"
        write_private(public, files[certificate])
        write_private(private, files[key])
        try:
            # With an empty password, as no board asks for one.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(public, private, "")
        except ssl.SSLError as error:
            why = "the key is not the certificate's"
            if error.reason != "KEY_VALUES_MISMATCH":
                reason = f" ({error.reason})" if error.reason else ""
                why = f"not a certificate and its key, without password, as PEM{reason}"
            raise BoardError(f"{certificate}, {key}: {why}") from None
