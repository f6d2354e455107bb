"""The report in a real browser, headless and without a network: it opens, filters, sorts.

Without a Chromium nothing is collected here; `make setup` installs it.
"""

import json
import re
import shutil
import subprocess

from tools.fleet.report import page

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((found for name in _NAMES if (found := shutil.which(name))), None)
_HOSTILE = '<img src=x onerror="document.body.dataset.hit=1">\u202e\x00</script>'
_DARK, _LIGHT = "0", "1"

# What a person does, and what is then to be seen.
_ACTIONS = """
const rows = () => [...byId("devices").rows].slice(1).map((row) => row.cells[1].textContent);
const filter = byId("filter");
const type = (text) => { filter.value = text; filter.dispatchEvent(new Event("input")); };
const heads = () => [...byId("devices").rows[0].cells];
const click = (name) => heads().find((cell) => cell.textContent === name).click();
const seen = { first: rows().length, hostile: rows()[0] };
byId("next").click(); seen.second = rows()[0];
type("dev-00012"); seen.filtered = rows();
type("lost > 9998"); seen.bad = rows();
type(""); click("lost"); seen.most = rows()[0];
click("lost"); seen.least = rows()[0];
draw().then(() => {
  seen.lines = document.querySelectorAll("#loss svg path").length;
  seen.theme = document.documentElement.className;
  seen.hit = document.body.dataset.hit ?? null;
  seen.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.body.textContent = "seen" + JSON.stringify(seen) + "end";
});
</script>
"""


def _data():
    devices = [["default", "dev-%06d" % n, "1.0", n, 1.5] for n in range(10_000)]
    devices[0][1] = _HOSTILE
    hours = [
        {"hour": "2026-01-01T%02d:00:00" % hour, "lost": hour, "violations": 1, "readings": 9}
        | {"packets": 50, "p50": 1.0, "p95": 2.0, "max": None}
        for hour in range(24)
    ]
    example = {"requirement": "RT-SEQ", "ts": "", "client_id": _HOSTILE, "by": "client"}
    example |= {"detail": _HOSTILE, "connection": _HOSTILE, "capture": _HOSTILE, "offset": 1}
    strip = {"client": _HOSTILE, "topic": _HOSTILE, "qos": 1, "before": 1}
    return {
        "rows": {"packets": 1, "connections": 1, "readings": 0},
        "findings": {"violations": 1},
        "span": ["2026-01-01 00:00:00.000", None],
        "files": [{"capture": _HOSTILE, "errors": 1}],
        "devices": {"columns": ["site", "client", "firmware", "lost", "p50 ms"], "data": devices},
        "device_count": len(devices),
        "groups": {"firmware": [{"firmware": "1.0", "clients": 3}], "site": []},
        "hours": hours,
        "hot": [{"client": _HOSTILE, "hour": "2026-01-01T00:00:00", "findings": 3}],
        "violations": [{"requirement": "RT-SEQ", "by": "client", "number": 1, "clients": 1}],
        "examples": [example | {"around": []}],
        "strips": [strip | {"cells": [["1", "new"], ["2", "again"], [_HOSTILE, "late"]]}],
        "statements": {},
    }


def _look(tmp_path, scheme):
    text = page.page(_data())
    end = text.rindex("</script>")
    path = tmp_path / "report.html"
    path.write_text(text[:end] + _ACTIONS + "</body></html>", encoding="utf-8")
    command = [_BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000"]
    command += ["--blink-settings=preferredColorScheme=" + scheme]
    command += ["--user-data-dir=%s" % (tmp_path / "profile"), path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r"seen(\{.*\})end", done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


if _BROWSER:

    def test_report_of_10_000_devices_when_opened_offline_filters_and_sorts(tmp_path):
        seen = _look(tmp_path, _LIGHT)
        assert seen["first"] == 100  # one page of rows, not all
        assert seen["second"] == "dev-000100"
        assert seen["filtered"] == ["dev-%06d" % number for number in range(120, 130)]
        assert seen["bad"] == ["dev-009999"]
        assert seen["most"] == "dev-009999"
        assert seen["least"] == seen["hostile"]
        assert seen["lines"] > 10
        assert seen["theme"] == "light"
        assert seen["loaded"] == []

    def test_report_with_html_in_names_when_opened_shows_it_as_text(tmp_path):
        seen = _look(tmp_path, _DARK)
        assert seen["hit"] is None
        assert seen["hostile"].startswith('<img src=x onerror="')
        assert "\\u202e\\u0000</script>" in seen["hostile"]
        assert seen["theme"] == "dark"
