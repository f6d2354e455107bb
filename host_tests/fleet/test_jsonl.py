"""JSON lines as the real mosquitto_sub writes them."""

import gzip
import json
import subprocess
import time

import pyarrow as pa
import pytest

from host_tests.fleet.captures import audit, connected, rows
from host_tests.fleet.simulate.fleet import reading
from tools.fleet.capture import jsonl
from tools.fleet.capture.files import Source
from tools.fleet.capture.frames import Tally
from tools.fleet.spark import steps

_ENVELOPE = reading(257, 1, 5, 60, 1, b"dev", (2100, 3300))
_HEX = '{"tst":%U,"topic":"%t","qos":%q,"retain":%r,"payloadlen":%l,"payload":"%x"}'


def _events(folder, data, name="a.jsonl", **more):
    """-> (events, tally) of a file that holds this."""
    path, tally = folder / name, Tally(**more)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    batches = list(jsonl.read_events(Source(str(path), name, "default"), tally))
    return pa.Table.from_batches(batches), tally


def _audit(folder, data):
    return audit(_events(folder, data)[0])


def test_lines_of_the_real_subscriber_give_its_messages(shared_mosquitto, tmp_path):
    topic = "jsonl/%d" % time.time_ns()
    port = str(shared_mosquitto.port)
    found = {}
    for name, form in (("json", "%J"), ("hex", _HEX)):
        # A retained message is there whenever the subscriber comes.
        for number, payload in enumerate((b'{"a": 1}', b"12")):
            command = ["mosquitto_pub", "-p", port, "-t", "%s/%d" % (topic, number), "-q", "1"]
            subprocess.run([*command, "-r", "-s"], input=payload, check=True)
        command = ["mosquitto_sub", "-p", port, "-t", topic + "/+", "-q", "2", "-W", "30"]
        done = subprocess.run([*command, "-C", "2", "-F", form], capture_output=True, check=True)
        events, tally = _events(tmp_path, done.stdout)
        assert not tally.errors
        found[name] = sorted(rows(events, "topic", "qos", "retain", "payload_bytes"))
    assert found["json"] == [(topic + "/0", 1, True, 8), (topic + "/1", 1, True, 2)]
    assert found["hex"] == found["json"]


def test_times_in_every_spelling_are_the_same_moment(tmp_path):
    times = [
        '"2026-11-21T13:46:05.446931Z+0100"',
        '"2026-11-21T12:46:05.446931+0000"',
        '"2026-11-21T12:46:05.446931Z"',
        '"2026-11-21T12:46:05.446931"',
        "1795265165.446931",
    ]
    lines = ['{"tst":%s,"topic":"t","qos":0}\n' % text for text in times]
    events, tally = _events(tmp_path, "".join(lines))
    assert not tally.errors
    found = {ts.isoformat() for ts in events["ts"].to_pylist()}
    assert found == {"2026-11-21T12:46:05.446931+00:00"}


def test_envelope_in_hex_becomes_a_reading(tmp_path):
    events, _ = _events(tmp_path, _message(0, _ENVELOPE))
    assert events["envelope"].to_pylist() == [_ENVELOPE]


def test_line_that_is_no_message_is_named_by_its_byte(tmp_path):
    text = '{"tst":1,"topic":"t"}\nnonsense\n[]\n{"tst":"never","topic":"t"}\n'
    events, tally = _events(tmp_path, text)
    assert events.num_rows == 1
    assert [offset for offset, _ in tally.errors] == [22, 31, 34]


@pytest.mark.parametrize(
    ("line", "is_growing", "counted"),
    [('{"tst":3,"topic":"t"}', True, None), ('{"tst":3,"to', True, "unfinished"),
     ('{"tst":3,"topic":"t"}', False, None), ('{"tst":3,"to', False, "errors")],
)  # fmt: skip
def test_last_line_without_an_end_counts_if_it_is_whole(line, is_growing, counted, tmp_path):
    events, tally = _events(tmp_path, _message(1, b"x") + "\n" + line, is_growing=is_growing)
    assert events.num_rows == (1 if counted else 2)
    assert {*tally.counts} - {"lines"} == ({counted} if counted else set())


@pytest.mark.parametrize(
    "line",
    [
        '{"tst":1e300,"topic":"t"}',
        '{"tst":Infinity,"topic":"t"}',
        '{"tst":NaN,"topic":"t"}',
        '{"tst":1,"topic":"t","qos":3}',
        '{"tst":1,"topic":"t","qos":-1}',
        '{"tst":1,"topic":"t","mid":65536}',
        '{"tst":1,"topic":"t","mid":"x"}',
        '{"tst":1,"topic":"t","payloadlen":1e40}',
        '{"tst":1,"topic":"\\ud800"}',
        '{"tst":1,"topic":"t","payload":"\\ud800"}',
        '{"tst":1,"topic":null}',
        "[" * 100_000,
    ],
)
def test_hostile_line_when_read_is_named_and_the_next_one_counts(line, tmp_path):
    events, tally = _events(tmp_path, line + '\n{"tst":1,"topic":"good"}\n')
    assert events["topic"].to_pylist() == ["good"]
    assert [offset for offset, _ in tally.errors] == [0]


def _message(number, payload, **more):
    fields = {"tst": 1795265165 + number, "topic": "t", "qos": 1, "mid": number % 5 + 1}
    return json.dumps({**fields, "payloadlen": len(payload), "payload": payload.hex(), **more})


def test_gzip_that_is_cut_short_gives_its_lines_and_names_the_byte(tmp_path):
    lines = [_message(number, b"%d" % number) for number in range(50)]
    packed = gzip.compress("\n".join(lines).encode())[:-12]
    events, tally = _events(tmp_path, packed, "a.jsonl.gz")
    assert 0 < events.num_rows < 50
    assert any(text.startswith("gzip") for _, text in tally.errors)


def test_packet_ids_that_come_again_in_lines_are_no_finding(tmp_path):
    """A line shows no acknowledgement, and a new subscriber begins at packet id 1."""
    payloads = [b"%d" % number for number in range(10)] + [b"0"] * 5
    found = _audit(tmp_path, "".join(_message(at, p) + "\n" for at, p in enumerate(payloads)))
    assert not found["violations"].num_rows
    columns = ("messages", "unmarked", "incomplete", "in_flight_max")
    assert rows(found["sequences"], *columns) == [(15, 0, 0, 0)]


@pytest.mark.parametrize("names", [("a.jsonl",), ("a-1.jsonl", "a-2.jsonl")])
def test_reading_sent_again_with_dup_is_delivered_once(names, tmp_path):
    """As the live subscriber's spool tells it, which may begin a new file in between."""
    lines = [_message(0, _ENVELOPE) + "\n", _message(0, _ENVELOPE, dup=1) + "\n"]
    texts = zip(names, lines if len(names) > 1 else ["".join(lines)], strict=True)
    found = audit(pa.concat_tables([_events(tmp_path, text, name)[0] for name, text in texts]))
    columns = ("sequence", "times_delivered", "redelivered")
    assert rows(found["readings"], *columns) == [(5, 1, True)]


@pytest.mark.parametrize(
    ("names", "delivered"),
    [
        (("north.jsonl", "south.jsonl"), 1),
        (("north1.jsonl", "north2.jsonl"), 1),
        (("north-1.jsonl", "north-2.jsonl.gz"), 2),
        (("0000.jsonl", "0012.jsonl"), 2),
        (("n-2026-01-01T10:00:00Z.jsonl", "n-2026-01-01T11:00:00Z.jsonl"), 2),
    ],
)
def test_subscriber_is_who_the_file_is_named_after(names, delivered, tmp_path):
    """Two subscribers get a message once each; one who gets it twice has it twice."""
    line = _message(0, _ENVELOPE, qos=2).encode() + b"\n"
    packed = (gzip.compress(line) if name.endswith("gz") else line for name in names)
    found = [_events(tmp_path, *one)[0] for one in zip(packed, names, strict=True)]
    events = pa.concat_tables(found)
    assert rows(audit(events)["readings"], "times_delivered") == [(delivered,)]
    buckets = [bucket for bucket, _ in steps.events_by_client(events, 4096)]
    assert len(buckets) == 3 - delivered


def _reading(place, sequence, **more):
    envelope = reading(257, 1, sequence, 60, 1, b"dev", (2100, 3300))
    return _message(place, envelope, qos=2, **more) + "\n"


def test_json_readings_of_a_node_are_told_by_stream_and_with_their_time(tmp_path):
    """docs/reference/readings.md; its topics may be anything."""
    sent = [(stream, number) for number in range(1, 6) for stream in (0, 1)]
    lines = []
    for at, (stream, number) in enumerate(sent):
        fields = {"device": "node-7", "boot": 3, "stream": stream, "sequence": number}
        payload = json.dumps(fields | {"uptime_s": at, "time": 1_700_000_000 + at})
        lines.append(_message(at, payload.encode()) + "\n")
    found = _audit(tmp_path, "".join(lines))["readings"]
    counted = rows(found, "stream", "sequence", "times_delivered")
    assert sorted(counted) == sorted((*one, 1) for one in sent)
    seconds = [one.timestamp() for one in found["measured"].to_pylist()]
    assert sorted(seconds) == [1_700_000_000 + at for at in range(10)]


def test_retained_reading_that_comes_again_is_not_delivered_twice(tmp_path):
    """The broker sends it to whoever subscribes, as often as that is."""
    text = _reading(0, 5) + _reading(1, 5, retain=1) + _reading(2, 5, retain=1)
    found = _audit(tmp_path, text)
    assert rows(found["readings"], "times_delivered", "redelivered") == [(1, True)]


@pytest.mark.parametrize(("retain", "lost"), [(0, [(6, 49)]), (1, [])])
def test_retained_reading_tells_nothing_of_those_behind_it(retain, lost, tmp_path):
    text = _reading(0, 5, retain=retain) + _reading(9, 50) + _reading(10, 51)
    losses = _audit(tmp_path, text)["losses"]
    assert rows(losses, "first_sequence", "last_sequence") == lost


def test_payloads_in_the_spelling_of_json_name_no_stranger(tmp_path):
    """`%J` shows `{"b": 1, "a":2}` as JSON, and not as the bytes that it was."""
    capture, publisher = connected(b"pub")
    for number, payload in enumerate((b'{"b": 1, "a":2}', b"12.50", b"30"), 1):
        publisher.exchange(0, b"t", payload, number)
    line = '{"tst":1700000001,"topic":"t","qos":1,"payload":%s}\n'
    text = "".join(line % text for text in ('{"a":2,"b":1}', "12.5", "30"))
    both = [capture.events(), _events(tmp_path, text)[0]]
    found = audit(pa.concat_tables(both, promote_options="permissive"))
    assert not found["findings"].num_rows


@pytest.mark.parametrize(
    ("topics", "delivered"), [(("live", "archive"), 1), (("live", "live"), 2)]
)
def test_reading_on_two_topics_is_delivered_once_on_each(topics, delivered, tmp_path):
    lines = [_reading(at, 5, topic=name) for at, name in enumerate(topics)]
    found = _audit(tmp_path, "".join(lines))
    assert rows(found["readings"], "sequence", "times_delivered") == [(5, delivered)]


@pytest.mark.parametrize(
    ("numbers", "lost"), [((1, 9, 10, 2, 3), []), ((1, 9, 10, 2, 4, 11), [(3, 3)])]
)
def test_readings_sent_newest_first_may_still_come(numbers, lost, tmp_path):
    lines = [_reading(at, number) for at, number in enumerate(numbers)]
    losses = _audit(tmp_path, "".join(lines))["losses"]
    assert rows(losses, "first_sequence", "last_sequence") == lost
