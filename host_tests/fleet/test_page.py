"""The report page: nothing of a capture becomes markup, strips show the order at a glance."""

import base64
import json
import re
import zlib

import pytest

from tools.fleet.report import collect, examples, page

_HOSTILE = "</script><script>alert(1)</script><!--<b onload=x>&amp;\u2028\x00"
_HOSTILE += "{{names}} {{ blocks }} {% for %}"


def _data():
    columns = ["site", "client_id", "state", "why", "firmware", "lost"]
    devices = [["default", _HOSTILE, "losing", None, "1.0", float("nan")]]
    return {
        "rows": {"packets": 1, "connections": 1, "readings": 0},
        "findings": {"violations": 1},
        "files": [{"file": _HOSTILE, "errors": 1}],
        "devices": {"columns": columns, "data": devices},
        "device_count": 1,
        "groups": {"firmware": [{"firmware": _HOSTILE}], "site": []},
    }


def _unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


def test_page_with_hostile_names_keeps_them_inside_its_data():
    text = page.page(_data())
    assert "alert(1)</script>" not in text
    found = re.findall(r"<script[^>]*>", text)
    assert len(found) == 4
    assert text.count("</script>") == 4
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data)["groups"]["firmware"] == [{"firmware": _HOSTILE}]
    block = re.search(r'class="block">(.*?)</script>', text)[1]
    assert _unpacked(block) == [["default", _HOSTILE, "losing", None, "1.0", None]]
    names = re.search(r'id="names"[^>]*>(.*?)</script>', text)[1]
    assert _unpacked(names) == [["default", _HOSTILE, "losing", "1.0"]]


def test_page_shows_hostile_names_in_every_field_as_they_are():
    """A topic named as a part of the page did not leave the page empty again."""
    wanted = {"notes": [_HOSTILE], "statements": {_HOSTILE: _HOSTILE}}
    for name in ("losses", "unknown", "causes", "troubles", "violations", "examples", "strips"):
        wanted[name] = [dict.fromkeys(("topic", "client_id", "why", "detail", "site"), _HOSTILE)]
    text = page.page(_data() | wanted)
    assert len(re.findall(r"<script[^>]*>", text)) == 4
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1]
    found = json.loads(data)
    assert {name: found[name] for name in wanted} == wanted
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_page_needs_nothing_from_outside():
    text = page.page(_data())
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=", markup)
    assert "default-src 'none'" in markup


def _kinds(sequence, dups=()):
    readings = [(1, number) for number in sequence]
    marks = [place in dups for place in range(len(sequence))]
    wanted = {"site": "s", "client_id": "c", "topic": "t", "qos": 1}
    strip = examples.strip(wanted, marks, [None] * len(sequence), list(sequence), readings)
    return strip and [tuple(cell) for cell in strip["cells"]]


@pytest.mark.parametrize(
    ("sequence", "dups", "wanted"),
    [
        ([1, 2, 3], (), None),
        ([1, 2, 3, 2, 3, 4], (3, 4), ["new", "new", "new", "again", "again", "new"]),
        ([1, 2, 2], (), ["new", "new", "twice"]),
        ([1, 3, 2], (), ["new", "new", "late"]),
        ([1, 4], (), ["new", "lost", "lost", "new"]),
    ],
)
def test_strip_shows_what_happened_to_each_message(sequence, dups, wanted):
    """RT-SEQ"""
    cells = _kinds(sequence, dups)
    assert (cells and [kind for _, kind in cells]) == wanted


def test_strip_of_many_lost_messages_stays_short():
    assert _kinds([1, 900]) == [("1", "new"), ("2–899", "lost"), ("900", "new")]
    # A number out of a hostile payload.
    most = (1 << 32) - 1
    assert _kinds([1, most]) == [("1", "new"), ("2–%d" % (most - 1), "lost"), (str(most), "new")]


def _loss(second, sequence=None, client="sub"):
    row = dict.fromkeys(("site", "published_by", "topic", "kind", "qos", "sure", "why"))
    row |= {"evidence": None}
    row |= {"device": None, "boot": None, "stream": None, "client_id": client, "messages": 1}
    moment = "2026-01-01 00:00:%02d.000" % second
    return row | {"ts": moment, "first_sequence": sequence, "last_sequence": sequence}


def test_losses_that_follow_each_other_are_one_row_of_the_page():
    rows = [_loss(1), _loss(2, client="other"), _loss(3), _loss(4)]
    found = [(row["client_id"], row["messages"], row["until"]) for row in collect.together(rows)]
    assert found == [("sub", 3, "2026-01-01 00:00:04.000"), ("other", 1, None)]


def test_lost_readings_are_one_row_where_their_numbers_follow_each_other():
    rows = [_loss(1, 7), _loss(2, 8), _loss(3, 10)]
    found = [(row["first_sequence"], row["last_sequence"]) for row in collect.together(rows)]
    assert found == [(7, 8), (10, 10)]
