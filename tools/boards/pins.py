"""A board's board.py: pins as constants, checked before anything is compiled.

What each is for says docs/reference/board-profiles.md.
"""

import ast

from .errors import BoardError
from .places import shown

# The defaults of boards/ports/, but for the time of the watchdog.
_LEFT_OUT = {"LED_PIN": None, "LED_ON": 1, "WATCHDOG_MS": None}


def check_pins(profile):
    """Raise a BoardError that names file, name, what was found and what is allowed."""
    path = profile.folder / "board.py"
    try:
        body = ast.parse(path.read_bytes()).body
    except OSError:
        raise BoardError(f"{shown(path)}: found nothing, allowed: constants, as of a like board")
    except SyntaxError as error:
        raise BoardError(f"{shown(path)}: line {error.lineno}: {error.msg}") from None
    problems = []
    if not any(isinstance(node, ast.ImportFrom) and node.module == "port" for node in body):
        problems.append("found no line `from port import *`")
    found: dict[str, ast.expr] = {name: ast.Constant(value) for name, value in _LEFT_OUT.items()}
    found |= {ast.unparse(x.targets[0]): x.value for x in body if isinstance(x, ast.Assign)}
    for name, (is_allowed, allowed) in _rules(profile).items():
        if name not in found:
            problems.append(f"{name}: found nothing, allowed: {allowed}")
        elif not is_allowed(_value(found[name])):
            problems.append(f"{name}: found {ast.unparse(found[name])}, allowed: {allowed}")
    if problems:
        raise BoardError("; ".join(f"{shown(path)}: {one}" for one in problems))


def _value(node):
    # What is no constant is returned as it is, and no rule allows it.
    try:
        return ast.literal_eval(node)
    except ValueError:
        return node


def _rules(profile):
    # -> {name: (is this value allowed?, text of what is)}.
    numbers = "a number, not negative, or None"
    pin = _is_number, numbers
    if profile.port == "rp2":  # the pins of a radio have names there
        pin = (lambda value: _is_number(value) or isinstance(value, str)), f"{numbers}, or a name"
    rules = {
        "LED_PIN": pin,
        "LED_ON": ((lambda value: value in (0, 1)), "0 or 1"),
        "WATCHDOG_MS": (_is_number, numbers),
        "SDA_PIN": pin,
        "SCL_PIN": pin,
    }
    if profile.network == "ethernet" and profile.port == "esp32":
        rules["ETHERNET"] = (lambda value: isinstance(value, dict)), "a dict of the cable's chip"
    return rules


def _is_number(value):
    return value is None or type(value) is int and value >= 0
