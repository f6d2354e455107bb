"""A device's settings: from `device.toml`, written by a person, to `settings.json`.

The table of keys and their bounds is the firmware's own (`firmware/settings.py`);
the board's profile fills in the buffer sizes.  Secrets appear in no message.
"""

import difflib
import json
import tomllib
from importlib.machinery import SourceFileLoader
from types import ModuleType

from .errors import BoardError
from .places import FIRMWARE, shown


def _load_firmware_settings():
    # Not by an import: the firmware's folder is no package, and its names are short.
    loader = SourceFileLoader("firmware_settings", str(FIRMWARE / "settings.py"))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    return module


keys = _load_firmware_settings()


def has_wifi(profile):
    """Whether a board of this profile needs a network name."""
    return profile.network == "wifi"


def read_config(path, profile):
    """Read device.toml -> the checked settings, a dict with the board's default sizes."""
    try:
        found = tomllib.loads(path.read_text())
    except OSError as error:
        raise BoardError(f"{shown(path)}: {error.strerror}; name a device.toml") from None
    except tomllib.TOMLDecodeError as error:
        raise BoardError(f"{shown(path)}: not valid TOML: {error}") from None
    return check_config(found, profile, shown(path))


def check_config(found, profile, where):
    """Fill in the profile's sizes and check; BoardError begins with `where`."""
    settings = profile.defaults.model_dump() | found
    problems = keys.problems(settings, has_wifi(profile))
    if problems:
        unknown = [name for name in found if name not in keys.KEYS]
        hints = [f"did you mean {near[0]}?" for name in unknown if (near := _near(name))]
        raise BoardError(f"{where}: {'; '.join(problems + hints)}")
    return settings


def settings_json(settings):
    """The bytes of settings.json for a checked dict."""
    return (json.dumps(settings, indent=1, ensure_ascii=False) + "\n").encode()


def device_files(path, profile):
    """{path on the board: bytes} of one device: settings.json, and its CA file if it uses TLS."""
    settings = read_config(path, profile)
    return ca_files([settings], path.parent) | {"settings.json": settings_json(settings)}


def ca_files(devices, folder):
    """{name: bytes} of the CA files that the settings of `devices` name, from `folder`."""
    names = {settings["tls"] for settings in devices if settings.get("tls")}
    try:
        return {name: (folder / name).read_bytes() for name in sorted(names)}
    except OSError as error:
        raise BoardError(
            f"{shown(error.filename)}: {error.strerror}; `tls` names the CA file beside it"
        ) from None


def _near(name):
    return difflib.get_close_matches(name, keys.KEYS, 1)
