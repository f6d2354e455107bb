"""The report's data -> one HTML file that needs nothing else.

All text from captures travels as JSON and is shown by `textContent` only, so that
nothing in a client id or topic can become markup or script.  Devices travel in packed
blocks, the worst first: a page of 100,000 unpacks the few that it shows.
"""

import base64
import json
import math
import zlib

import jinja2

BLOCK_ROWS = 1000


def page(data):
    """The HTML text of the page for the data of `collect`."""
    devices = data["devices"]
    rows = devices["data"]
    blocks = [_packed(rows[at : at + BLOCK_ROWS]) for at in range(0, len(rows), BLOCK_ROWS)]
    names = [[row[0], row[1], row[2], row[4]] for row in rows]
    rest = data | {"devices": {"columns": devices["columns"], "block_rows": BLOCK_ROWS}}
    loader = jinja2.PackageLoader(__package__, "")
    environment = jinja2.Environment(loader=loader, autoescape=True)
    # In their order, as the page shows them.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    template = environment.get_template("page.html")
    return template.render(data=_plain(rest), names=_packed(names), blocks=blocks)


def _packed(rows):
    # What the page's DecompressionStream("deflate-raw") takes.
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    text = json.dumps(_plain(rows), separators=(",", ":")).encode()
    return base64.b64encode(packer.compress(text) + packer.flush()).decode()


def _plain(value):
    # NaN has no place in JSON.
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
