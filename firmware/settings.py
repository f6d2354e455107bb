"""The settings of one device: a flat JSON file, checked key by key.

`KEYS` is the one table of what may stand in the file; the host tools that write
settings import it too, so this module runs under CPython and touches no hardware.
An error names the key, the value found and the values allowed; secrets are never
shown.  `docs/guides/sensor-node.md` explains the keys.
"""

import json

FILE = "settings.json"

# name: (default, kind, lowest, highest).  No default: the key must be there.
# The bounds limit the value of a "number", and the length of everything else.  A "choice"
# has its words in place of the lowest.
KEYS = {
    "client_id": (None, "name", 1, 23),
    "server": (None, "server", 1, 255),
    "port": (0, "number", 0, 65535),
    "user": ("", "text", 0, 128),
    "password": ("", "text", 0, 128),
    "level": (3, "number", 3, 5),
    "tls": ("", "file", 0, 64),
    "tls_cert": ("", "file", 0, 64),
    "tls_key": ("", "file", 0, 64),
    "wifi_ssid": ("", "text", 0, 32),
    "wifi_password": ("", "text", 0, 64),
    "prefix": ("sensors", "topic", 1, 64),
    "site": ("", "name", 0, 32),
    "interval_ms": (10000, "number", 10, 86400000),
    "streams": ((1,), "qos list", 1, 8),
    "sensors": ("", "sensors", 0, 128),
    "format": ("binary", "choice", ("binary", "json"), None),
    "discovery": ("", "topic", 0, 64),
    "keepalive": (60, "number", 5, 65535),
    "max_inflight": (4, "number", 1, 64),
    "max_mqueue_len": (16, "number", 1, 1024),
    "buffer_size": (256, "number", 128, 4096),
    "store": ("ram", "choice", ("ram", "journal"), None),
    "power_save": ("performance", "choice", ("none", "performance", "powersave"), None),
    "ntp_server": ("pool.ntp.org", "host", 0, 255),
    "time_topic": ("", "topic", 0, 64),
    "update_key": ("", "text", 0, 128),
    "commands": ("any", "choice", ("any", "signed"), None),
    "trial_s": (300, "number", 30, 86400),
    "sleep_above_ms": (0, "number", 0, 86400000),
    "sleep_after": ("acknowledged", "choice", ("acknowledged", "stored"), None),
    "awake_ms": (30000, "number", 1000, 600000),
}
SECRETS = ("password", "wifi_password", "update_key")
# What `sensors` may name, and how many numbers may follow: at least one, unless 0.
SENSORS = {"bme280": 0, "sht3x": 0, "ds18b20": 1, "battery": 2}
# Files beside the settings, on the computer and on the board.
FILES = ("tls", "tls_cert", "tls_key")

_ALLOWED = {
    "name": "%s to %s characters without / + # or control characters",
    "file": "the name of a file, none of the node's own, "
    "%s to %s characters without / + # or control characters",
    "topic": "%s to %s characters without + # or control characters, / only between levels",
    "text": "%s to %s characters",
    "sensors": "%s to %s characters: bme280, sht3x, ds18b20:PIN, battery:PIN or "
    "battery:PIN:PERCENT, a space between",
    "server": "a name or an address of %s to %s characters without a port: port is a key",
    "host": "%s to %s characters, behind : a port",
    "number": "a whole number from %s to %s",
    "qos list": "a list of %s to %s numbers, each 0, 1 or 2",
}

# Bytes of the largest reading as JSON without the device, and of a description for Home
# Assistant without names.
_JSON_BYTES = 440
_DESCRIPTION_BYTES = 300
# What packets have besides the names: a PUBLISH (header, topic length, packet id, topic, the
# largest reading) and the CONNECT (header, its fixed part, five lengths, will).
_PUBLISH_BYTES = 5 + 2 + 2 + len("///reading/0") + 90
_CONNECT_BYTES = 5 + 12 + 5 * 2 + len("///status") + len("offline")
# A SUBSCRIBE has header and packet id, and for each filter its length and its QoS.
_SUBSCRIBE_BYTES = 3 + 2
_FILTER_BYTES = 2 + 1
# Properties of CONNECT at level 5: two lengths, session expiry, receive maximum, packet
# size, aliases.
_PROPERTY_BYTES = 2 + 5 + 3 + 5 + 3


class SettingsError(ValueError):
    """The settings cannot be used; the text says which key, why and what is allowed."""


def load(path=FILE, has_wifi=False):
    """Read and check the file `path` -> dict with every key of `KEYS`.

    `has_wifi` says that this board needs a network name.  Raises SettingsError.
    """
    wrong = ['holds no JSON object; write {"client_id": …}']
    try:
        with open(path) as file:
            found = json.load(file)
        if isinstance(found, dict):
            wrong = problems(found, has_wifi)
    except OSError:
        wrong = ["not found; write one with at least client_id and server"]
    except ValueError:
        wrong = ["not valid JSON; check commas, quotes and brackets"]
    if wrong:
        raise SettingsError("%s: %s" % (path, "; ".join(wrong)))
    return complete(found)


def complete(found):
    """`found` with the default of every key that it does not name, as a new dict."""
    settings = {name: KEYS[name][0] for name in KEYS}
    settings.update(found)
    return settings


def problems(found, has_wifi=False):
    """What is wrong with the dict `found` -> list of one-line texts, empty when good."""
    keys = ", ".join(sorted(KEYS))
    wrong = ["%s is no known key; known: %s" % (name, keys) for name in found if name not in KEYS]
    for name in sorted(KEYS):
        if name in found:
            value = found[name]
            if not is_allowed(name, value):
                wrong.append("%s is %s; allowed: %s" % (name, shown(name, value), allowed(name)))
        elif KEYS[name][0] is None:
            wrong.append("%s is missing; allowed: %s" % (name, allowed(name)))
    return wrong or _clashes(complete(found), has_wifi)


def allowed(name):
    """The values that the key `name` may have, in words."""
    _, kind, low, high = KEYS[name]
    if kind == "choice":
        return " or ".join('"%s"' % one for one in low)
    return _ALLOWED[kind] % (low, high)


def shown(name, value):
    """`value` as it may be printed: secrets are not."""
    if name not in SECRETS:
        return json.dumps(value)
    return "(not shown)" if isinstance(value, str) else "not in quotes"


def is_allowed(name, value):
    """May the key `name` have this value, looked at by itself?"""
    _, kind, low, high = KEYS[name]
    if kind == "choice":
        return value in low
    if kind == "number":
        # A bool is an int to isinstance().
        return type(value) is int and low <= value <= high
    if kind == "qos list":
        return (
            isinstance(value, (list, tuple))
            and low <= len(value) <= high
            and all(type(one) is int and 0 <= one <= 2 for one in value)
        )
    if not isinstance(value, str) or not low <= len(value) <= high:
        return False
    if kind == "sensors":
        return all(_is_sensor(word) for word in value.split())
    if kind == "host":
        port = value.partition(":")[2] or "123"
        return value[:1] != ":" and _is_number(port) and 0 < int(port) < 65536
    if kind == "server":  # an address of IPv6 has two colons or more
        return value.count(":") != 1 and not any(one in value for one in " /[")
    if kind == "file" and value.split(".")[-1] in ("py", "mpy", "json"):
        return False  # it would replace a file of the node
    # Where a length of 0 is allowed, an empty value means: not used.
    return kind == "text" or not value or _is_topic(value, kind != "topic")


def _is_sensor(word):
    name, *numbers = word.split(":")
    most = SENSORS.get(name, -1)
    is_right = (most > 0) <= len(numbers) <= most and all(map(_is_number, numbers))
    return is_right and all(map(int, numbers[1:]))  # with 0 percent it would always read 0 mV


def _is_number(text):
    # Under CPython str.isdigit() accepts digits that int() does not.
    return text and all(one in "0123456789" for one in text)


def _is_hex(value):
    return all(one in "0123456789abcdefABCDEF" for one in value)


def _is_topic(value, is_one_level):
    for character in value:
        if character in "+#" or ord(character) < 32 or (is_one_level and character == "/"):
            return False
    return "" not in value.split("/") or is_one_level


def _clashes(settings, has_wifi):
    # -> what is wrong where each key is right, but not beside the others.
    wrong = []
    if has_wifi and not settings["wifi_ssid"]:
        wrong.append("wifi_ssid is missing; this board needs it: 1 to 32 characters")
    password = settings["wifi_password"]
    if 0 < len(password) < 8:
        wrong.append("wifi_password is too short; allowed: 8 to 63 characters, or none at all")
    if len(password.encode()) > 63 and not (len(password) == 64 and _is_hex(password)):
        wrong.append("wifi_password is too long; allowed: up to 63 bytes, or 64 hex digits")
    if settings["password"] and not settings["user"]:
        wrong.append("user is missing; a password needs a user name")
    if bool(settings["tls_cert"]) != bool(settings["tls_key"]):
        wrong.append("tls_cert and tls_key belong together")
    elif settings["tls_cert"] and not settings["tls"]:
        wrong.append("tls is missing; a certificate of ours needs that of the broker's authority")
    wrong += [
        "%s is too long; allowed: up to %d bytes in UTF-8" % (name, KEYS[name][3])
        for name in ("client_id", "wifi_ssid")
        if len(settings[name].encode()) > KEYS[name][3]
    ]
    # HMAC-SHA256 takes up to 64 bytes as they are; fewer than 16 can be guessed.
    key = settings["update_key"]
    if key and not (_is_hex(key) and len(key) >= 32 and len(key) % 2 == 0):
        wrong.append("update_key is (not shown); allowed: 32 to 128 hex digits, or none at all")
    if settings["commands"] == "signed" and not settings["update_key"]:
        wrong.append("update_key is missing; signed commands need it")
    if settings["sleep_above_ms"] and settings["store"] != "journal":
        wrong.append('store is "ram"; deep sleep forgets it: "journal"')
    if settings["discovery"] and settings["format"] != "json":
        wrong.append('format is "binary"; discovery is for "json"')
    needed = _largest_packet(settings)
    if settings["buffer_size"] < needed:
        wrong.append(
            "buffer_size is %d; these names need at least %d" % (settings["buffer_size"], needed)
        )
    return wrong


def _largest_packet(settings):
    def size(*names):
        return sum(len(settings[name].encode()) for name in names)

    topic = size("prefix", "site", "client_id")
    connect = _CONNECT_BYTES + topic + size("client_id", "user", "password")
    needed = max(_PUBLISH_BYTES + topic, connect)
    if settings["format"] == "json":
        needed = max(needed, _PUBLISH_BYTES + _JSON_BYTES - 90 + topic + size("client_id"))
    if settings["discovery"]:
        needed = max(
            needed, _DESCRIPTION_BYTES + 2 * topic + size("discovery") + 4 * size("client_id")
        )
    if settings["level"] == 5:
        return needed + _PROPERTY_BYTES  # filters may be sent in several packets
    root = topic + (2 if settings["site"] else 1)
    filters = [root + len("/command")]
    if settings["update_key"]:
        filters.append(root + len("/update"))
    if settings["time_topic"]:
        filters.append(size("time_topic"))
    return max(needed, _SUBSCRIBE_BYTES + sum(filters) + _FILTER_BYTES * len(filters))
