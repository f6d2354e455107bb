"""The report's data and charts -> one HTML file.

All text from captures travels as JSON and is shown by `textContent` only, so that
nothing in a client id or topic can become markup or script.
"""

import datetime
import decimal
import json
import math
from importlib import resources

import vl_convert

from .charts import charts


def write(data, path):
    """Write the page for the data of `collect`."""
    path.write_text(page(data), encoding="utf-8")


def page(data):
    """The HTML text."""
    parts = {
        "css": _file("page.css"),
        "vega": vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"),
        "script": _file("page.js"),
        "data": to_json(data),
        "charts": to_json(charts()),
    }
    text = _file("page.html")
    for name, part in parts.items():
        # A closing tag inside a script would end it.
        safe = part.replace("</script", "<\\/script") if name in ("vega", "script") else part
        text = text.replace("{{%s}}" % name, safe, 1)
    return text


def to_json(value):
    """JSON that may stand inside a script element."""
    text = json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value):
    # NaN and dates have no place in JSON, and numpy's numbers are not Python's.
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) or math.isinf(value) else value
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if hasattr(value, "item"):
        return _plain(value.item())
    return value


def _file(name):
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
