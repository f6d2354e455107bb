"""The report's data -> one HTML file that needs nothing else.

All text from captures travels as JSON and is shown by `textContent` only, so that
nothing in a client id or topic can become markup or script.  Devices travel in packed
blocks, the worst first: a page of 100,000 unpacks the few that it shows.
"""

import base64
import json
import math
import zlib
from importlib import resources

import jinja2
from markupsafe import Markup

BLOCK_ROWS = 1000


def page(data):
    """The HTML text of the page for the data of `collect`."""
    devices = data["devices"]
    rows = devices["data"]
    blocks = [_packed(rows[at : at + BLOCK_ROWS]) for at in range(0, len(rows), BLOCK_ROWS)]
    names = [[row[0], row[1], row[2], row[4]] for row in rows]
    rest = data | {"devices": {"columns": devices["columns"], "block_rows": BLOCK_ROWS}}
    template = jinja2.Environment(autoescape=True).from_string(_file("page.html"))
    # Our own, and what `to_json` made safe; all else is escaped.
    trusted = {"css": _file("page.css"), "script": _file("page.js"), "data": to_json(rest)}
    trusted = {name: Markup(text) for name, text in trusted.items()}
    return template.render(trusted, names=_packed(names), blocks=blocks)


def _packed(rows):
    # What the page's DecompressionStream("deflate-raw") takes.
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    text = json.dumps(_plain(rows), separators=(",", ":")).encode()
    return base64.b64encode(packer.compress(text) + packer.flush()).decode()


def to_json(value):
    """JSON that may stand inside a script element."""
    text = json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value):
    # NaN has no place in JSON.
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _file(name):
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
