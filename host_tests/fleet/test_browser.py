"""The report in a real browser, headless and without a network: it opens, filters, sorts.

Without a Chromium nothing is collected here; `make setup` installs it.
"""

import json
import re
import shutil
import subprocess

from host_tests.fleet.captures import C2S, connected
from tools.fleet.report import page

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((found for name in _NAMES if (found := shutil.which(name))), None)
_HOSTILE = '<img src=x onerror="document.body.dataset.hit=1">\u202e\x00</script>{{names}}'
_DARK, _LIGHT = "0", "1"

# What a person does, and what is then to be seen.
_ACTIONS = """
const table = () => [...byId("list").rows].slice(1);
const rows = () => table().map((row) => row.cells[0].textContent);
const click = (name) => {
  const head = [...byId("list").rows[0].cells].findIndex((cell) => cell.textContent === name);
  return sortDevices(head);
};
await ready;
const seen = { first: rows().length, hostile: rows()[0], unpacked: unpacked.size };
byId("next").click(); await drawDevices(); seen.second = rows()[0];
await search("dev-00012"); seen.filtered = rows(); seen.after = unpacked.size;
await search("lost > 9998"); seen.bad = rows();
await search("well"); seen.well = length();
await search(""); await click("lost"); seen.most = rows()[0];
await click("lost"); seen.least = rows()[0];
await search("dev-009999"); table()[0].click();
seen.device = [...byId("device").querySelectorAll("h2, p, td")].map((node) => node.textContent);
const texts = (nodes) => [...nodes].map((node) => node.textContent);
const titles = () => texts(byId("device").querySelectorAll("h3, .more"));
seen.parts = titles(); openDevice(await row(2)); seen.nameless = titles();
await search("unwell"); seen.unwell = length();
seen.cut = texts(document.querySelectorAll("section > .more"));
seen.files = byId("tiles").lastChild.textContent;
seen.apart = [shown("\u05d0 1").length, shown("a 1").length];
seen.brief = shown("x".repeat(65535)).slice(290);
seen.csv = toCsv(["a", "b"], [["=1+1", 'x "y", z'], [null, -3]]);
seen.bars = document.querySelectorAll("#lossplot svg rect").length;
seen.tiles = [...document.querySelectorAll("a.tile")].map((node) => node.hash.slice(1));
seen.dangling = seen.tiles.filter((id) => !byId(id));
const isCut = (one) => one.scrollWidth > one.clientWidth + 1;
seen.narrow = [...document.querySelectorAll(".scroll")].filter(isCut)
  .map((one) => one.firstChild.id);
byId("losses").rows[1].click(); seen.loss = texts(byId("loss").querySelectorAll("dd, code"));
seen.units = texts(document.querySelectorAll(".plot .y span:first-child"))
  .map((one) => one.split(" ")[1].replace(",", ""));
const red = (id) => texts(byId(id).querySelectorAll("td.bad"));
seen.red = ["causes", "losses", "unknowable"].map(red);
const heads = (id) => texts(byId(id).querySelectorAll("th"));
seen.sites = ["causes", "losses", "findings", "unknowable"].map((id) => heads(id).indexOf("site"));
seen.theme = document.documentElement.className;
seen.hit = document.body.dataset.hit ?? null;
seen.wide = document.documentElement.scrollWidth > innerWidth;
seen.loaded = performance.getEntriesByType("resource").map((entry) => entry.name)
  .filter((name) => !name.startsWith("blob:"));
document.body.textContent = "seen" + JSON.stringify(seen) + "end";
</script>
"""
_COLUMNS = ["site", "client_id", "state", "why", "firmware", "lost", "missed", "violations"]
_COLUMNS += ["troubles", "connects", "refused", "ended_reset", "last_seen"]


def _device(number):
    state = "losing" if number % 2 else "well"
    rest = [state, "messages of it lost: %d" % number, "1.0", number, 0, 0]
    return ["default", "dev-%06d" % number, *rest, 0, 1, 0, 0, "2026-01-01 00:00:00"]


def _data():
    devices = [_device(n) for n in range(10_000)]
    devices[0][1] = _HOSTILE
    devices[2][1], devices[2][5] = None, 0
    moments = [
        {"at": 1_767_225_600 + 600 * n, "losses": n, "violations": 1, "readings": 9, "packets": 50}
        | {"p50": 1.0, "p95": 2.0}
        for n in range(24)
    ]
    example = {"requirement": "RT-SEQ", "ts": "", "client_id": _HOSTILE, "by": "client"}
    example |= {"detail": _HOSTILE, "connection": _HOSTILE, "capture": _HOSTILE, "offset": 1}
    example |= {"sure": "proved", "why": _HOSTILE, "site": "default", "around": []}
    loss = {"ts": "2026-01-01 00:00:01.000", "published_by": "dev-009999", "topic": _HOSTILE}
    loss |= {"client_id": "far", "site": "default", "messages": 3, "why": _HOSTILE}
    loss |= {"sure": "proved", "qos": 1, "packet_id": 7, "capture": "a.pcap", "offset": 99}
    loss |= {"connection": "10.0.0.2:4000-10.0.0.1:1883@x"}
    others = {"published_by": "other", "client_id": None, "sure": "not_knowable"}
    trouble = {"finding": "refused_connects", "about": "client", "client_id": _HOSTILE}
    strip = {"client": _HOSTILE, "topic": _HOSTILE, "qos": 1, "before": 1}
    change = {"change": "worse", "site": "default", "device": _HOSTILE, "why": _HOSTILE}
    findings = {"violations": 1, "lost messages": 3, "overtaking messages": 0}
    return {
        "rows": {"packets": 1, "connections": 1, "readings": 0},
        "findings": findings,
        "limits": {"lost messages": 5},
        "span": ["2026-01-01 00:00:00", None],
        "files": [{"file": _HOSTILE, "errors": 1, "said": _HOSTILE}],
        "notes": [_HOSTILE],
        "devices": {"columns": _COLUMNS, "data": devices},
        "device_count": len(devices),
        "states": {"losing": 5000, "faulty": 0, "unsteady": 0, "well": 5000},
        "groups": {"firmware": [{"firmware": "1.0", "devices": 3}], "site": []},
        "step_s": 600,
        "moments": moments,
        "losses": [loss],
        "causes": [{"cause": "queue_full", "messages": 3, "why": _HOSTILE, "advice": _HOSTILE}],
        "unknown": [loss | others],
        "troubles": [trouble],
        "violations": [{"requirement": "RT-SEQ", "by": "client", "times": 1, "clients": 1}],
        "examples": [example],
        "strips": [strip | {"cells": [["1", "new"], ["2", "again"], [_HOSTILE, "late"]]}],
        "statements": {},
        "taken": {"losses": (1, 3000), "findings": (1, 1), "captures": (1, 700)},
        "since": {"counts": {"worse": 1}, "rows": [change]},
    }


def _browse(tmp_path, text, *options):
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")
    command = [_BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000"]
    command += ["--user-data-dir=%s" % (tmp_path / "profile"), *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def _look(tmp_path, scheme, width=1200, data=None):
    text = page.page(data or _data())
    end = text.rindex("</script>")
    theme = "--blink-settings=preferredColorScheme=" + scheme
    size = "--window-size=%d,900" % width
    whole = text[:end] + _ACTIONS + "</body></html>"
    done = _browse(tmp_path, whole, "--dump-dom", theme, size)
    found = re.search(r"seen(\{.*\})end", done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


if _BROWSER:

    def test_report_of_10_000_devices_when_opened_offline_filters_and_sorts(tmp_path):
        seen = _look(tmp_path, _LIGHT, width=1280)
        assert not seen["wide"] and seen["narrow"] == []
        assert seen["units"] == ["messages", "ms", "packets", "connects"][: len(seen["units"])]
        assert seen["first"] == 100  # one page of rows, not all
        assert seen["unpacked"] == 1  # and one block of devices
        assert seen["second"] == "dev-000100"
        assert seen["filtered"] == ["dev-%06d" % number for number in range(120, 130)]
        assert seen["after"] == 1
        assert seen["bad"] == ["dev-009999"]
        assert seen["well"] == 5000
        assert seen["most"] == "dev-009999"
        assert seen["least"] == seen["hostile"]
        assert {"lost", "broken", "devices", "when", "files"} <= set(seen["tiles"])
        assert seen["dangling"] == []
        assert seen["bars"] > 40
        assert seen["theme"] == "light"
        assert seen["loaded"] == []
        assert seen["unwell"] == 5000

    def test_line_for_a_terminal_shows_the_packet_of_a_loss(tmp_path):
        """Whatever the port and the name of the file."""
        capture, talk = connected(b"dev")
        talk.publish(C2S, b"t", b"1", 1, 7)
        name, frames = "one's own.pcap", b"".join(capture.frames)
        (tmp_path / name).write_bytes(frames.replace(b"\x07\x5b", b"\x07\x5c"))
        data = _data()
        ends = "10.1.0.1:%d-10.0.0.1:1884@x" % capture.ports
        data["losses"] = [data["losses"][0] | {"capture": name, "connection": ends}]
        line = _look(tmp_path, _LIGHT, data=data)["loss"][-1]
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert "Publish Message (id=7)" in done.stdout, line + done.stderr
        assert done.stdout.count("\n") == 1

    def test_report_of_which_parts_are_left_out_says_so(tmp_path):
        seen = _look(tmp_path, _LIGHT)
        assert seen["files"] == "700files"
        parts = ["1 of 3,000: the tables hold all.", "1 of 700: the tables hold all."]
        assert seen["cut"] == parts
        assert seen["brief"] == "x" * 10 + " … (65,535 characters)"
        assert seen["apart"] == [5, 3]  # what is written from right to left stands by itself

    def test_report_shows_in_red_only_lost_messages_that_are_counted(tmp_path):
        """At QoS 0 they may get lost; and of some nobody can know whether they are."""
        data = _data()
        data["losses"].append(data["losses"][0] | {"qos": 0, "messages": 5})
        data["unknown"] = [one | {"sure": "not_knowable"} for one in data["losses"]]
        assert _look(tmp_path, _LIGHT, data=data)["red"] == [["3"], ["3"], []]

    def test_report_of_several_sites_says_where_each_thing_was(tmp_path):
        """A client of the same name may be at both of them."""
        data = _data()
        for name in ("causes", "losses", "troubles", "unknown"):
            sites = [{"site": "north"}, {"site": "south"}]
            data[name] = [one | site for one in data[name] for site in sites]
        assert _look(tmp_path, _LIGHT, data=data)["sites"] == [-1] * 4
        data["groups"]["site"] = [{"site": "north"}, {"site": "south"}]
        assert _look(tmp_path, _LIGHT, data=data)["sites"] == [0] * 4

    def test_report_on_paper_shows_all_rows_of_its_tables(tmp_path):
        data = _data()
        data["losses"] = [data["losses"][0] | {"topic": "t/%d" % n} for n in range(400)]
        pages = []
        for losses in (data["losses"][:1], data["losses"]):
            pdf = tmp_path / "report.pdf"
            text = page.page(data | {"losses": losses})
            _browse(tmp_path, text, "--print-to-pdf=%s" % pdf)
            pages.append(len(re.findall(rb"/Type /Page\b", pdf.read_bytes())))
        assert pages[1] - pages[0] > 8

    def test_report_when_a_device_is_opened_shows_all_about_it(tmp_path):
        seen = _look(tmp_path, _LIGHT, width=500)
        assert seen["device"][:2] == ["dev-009999: losingclose", "messages of it lost: 9999"]
        assert "far" in seen["device"]
        assert seen["parts"] == [
            "Lost messages",
            "More lost messages of it are in the table losses.",
        ]
        assert seen["nameless"] == []  # what has no name may be of anybody
        assert seen["csv"] == 'a,b\r\n\'=1+1,"x ""y"", z"\r\n,-3\r\n'
        assert not seen["wide"]

    def test_report_with_html_in_names_when_opened_shows_it_as_text(tmp_path):
        seen = _look(tmp_path, _DARK)
        assert seen["hit"] is None
        assert seen["hostile"].startswith('<img src=x onerror="')
        assert "\\u202e\\u0000</script>" in seen["hostile"]
        assert seen["theme"] == "dark"
