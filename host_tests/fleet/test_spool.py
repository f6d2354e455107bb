"""The spool on disk: torn records, what is pruned, which QoS 2 ids are remembered."""

import json

import pytest

from tools.fleet.capture import files, jsonl
from tools.fleet.capture.frames import Tally
from tools.fleet.live.spool import Spool, spool_files


def _fill(folder, count, qos=2, **settings):
    spool = Spool(folder, **settings)
    for number in range(count):
        spool.append(b"a/b", b"message %d" % number, qos, False, number + 1)
    spool.sync()
    return spool


def _payloads(folder):
    lines = [line for path, _ in spool_files(folder) for line in path.read_bytes().splitlines()]
    return [bytes.fromhex(json.loads(line)["payload"]) for line in lines]


def test_spool_when_last_line_is_torn_at_any_byte_then_only_that_line_goes(tmp_path):
    _fill(tmp_path, 3).close()
    path, _ = spool_files(tmp_path)[0]
    whole = path.read_bytes()
    begin = whole.rstrip(b"\n").rindex(b"\n") + 1
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        spool = Spool(tmp_path)
        assert spool.count == 2, end
        assert spool.held == {1: 0, 2: 1}
        spool.append(b"a/b", b"message 2", 2, False, 3)
        spool.close()
        assert _payloads(tmp_path) == [b"message 0", b"message 1", b"message 2"]
        for behind, first in spool_files(tmp_path):
            if first:
                behind.unlink()


@pytest.mark.parametrize("garbage", [bytes(64), b"\xff" * 9 + b"\n", b"{}\n", b'{"qos": 2}\n'])
def test_spool_when_power_cut_leaves_garbage_then_it_is_cut_off(tmp_path, garbage):
    _fill(tmp_path, 2).close()
    path, _ = spool_files(tmp_path)[0]
    whole = path.read_bytes()
    path.write_bytes(whole + garbage)
    assert Spool(tmp_path).count == 2
    assert path.read_bytes() == whole


def test_released_file_when_torn_at_any_byte_then_id_stays_held(tmp_path):
    spool = _fill(tmp_path, 2)
    spool.release(1)
    spool.close()
    path = tmp_path / "released"
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert Spool(tmp_path).held == {1: 0, 2: 1}, end
    path.write_bytes(whole)
    assert Spool(tmp_path).held == {2: 1}


def test_held_when_id_is_used_again_after_its_release_then_it_is_held_again(tmp_path):
    spool = _fill(tmp_path, 1)
    spool.release(1)
    spool.append(b"a/b", b"again", 2, False, 1)
    spool.close()
    assert Spool(tmp_path).held == {1: 1}
    assert Spool(tmp_path).held == {1: 1}  # the first restart rewrote what was released


def test_release_when_id_is_unknown_then_nothing_is_written(tmp_path):
    spool = _fill(tmp_path, 1)
    spool.release(9)
    spool.close()
    assert (tmp_path / "released").read_bytes() == b""


def test_prune_when_messages_are_processed_then_whole_files_before_go(tmp_path):
    spool = _fill(tmp_path, 10, qos=1, file_bytes=300)
    firsts = [first for _, first in spool_files(tmp_path)]
    assert len(firsts) > 3
    spool.prune(firsts[2] - 1)
    assert [first for _, first in spool_files(tmp_path)] == firsts[1:]
    assert spool.first == firsts[1]
    spool.prune(10)  # the file that is written to always stays
    assert [first for _, first in spool_files(tmp_path)] == firsts[-1:]
    spool.close()
    assert Spool(tmp_path).count == 10


def test_prune_when_an_id_is_held_then_its_message_stays(tmp_path):
    spool = _fill(tmp_path, 10, file_bytes=300)
    spool.prune(10)
    assert spool.first == 0
    for number in range(10):
        spool.release(number + 1)
    spool.prune(10)
    assert spool.first > 0
    spool.close()
    again = Spool(tmp_path)
    assert again.count == 10 and not again.held


def test_spool_file_when_read_as_json_lines_then_all_rows_are_there(tmp_path):
    spool = Spool(tmp_path)
    odd = "t/\u00e9\n\x01".encode()
    spool.append(odd, bytes(range(256)), 1, True, 77)
    spool.append(b"plain", b"", 0, False, 0)
    spool.append(b"again", b"1", 1, False, 78, dup=True)
    spool.close()
    source = files.find(tmp_path)[0]
    assert files.is_json(source)
    tally = Tally()
    rows = [row for batch in jsonl.read_events(source, tally) for row in batch.to_pylist()]
    assert not tally.errors
    columns = ("topic", "qos", "retain", "dup", "packet_id", "payload_bytes")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (odd.decode(), 1, True, False, 77, 256),
        ("plain", 0, False, False, None, 0),
        ("again", 1, False, True, 78, 1),
    ]
