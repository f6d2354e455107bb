"""A batch of devices: the CSV file that says what differs from one to the next.

One row per device.  A column is a settings key; `id` and `broker` are short for
`client_id` and `server`.  What all share comes from one device.toml.  Errors name
the line and never show a secret.
"""

import csv

from .config import check_config, keys
from .errors import BoardError
from .places import read_toml, shown

_SHORT = {"id": "client_id", "broker": "server"}


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
            unknown = [name for name in names if name not in keys.KEYS]
            if unknown or "client_id" not in names:
                wrong = f"unknown column {unknown[0]!r}" if unknown else "no column id"
                allowed = ", ".join([*_SHORT, *keys.KEYS])
                raise BoardError(f"{shown(path)}: {wrong}, allowed: {allowed}")
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
