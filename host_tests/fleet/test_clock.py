"""The clock of a capture that is set, in frames and files that `traces/clock.txt` cannot say."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, connected, decode_all, rows
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets


def _told(capture):
    tables = capture.audit()
    assert not tables["violations"].num_rows
    return set(rows(tables["findings"], "finding", "sure"))


@pytest.mark.parametrize("seen", ["client", "until_then"])
def test_step_forward_is_told_where_the_broker_was_not_seen_to_go_on(seen):
    """One direction only, and a capture that ends there."""
    capture, talk = connected(b"dev", keep_alive_s=10)
    for after_ms in (1, 3600_000):
        talk.ping(after_ms)
    if seen == "until_then":
        del capture.frames[-1]
    else:
        talk.send(C2S, b"\xc0\0")
        of_client = [one for one in capture.frames if one[52:54] == b"\x07\x5b"]
        capture.frames[1:] = of_client
    assert "clock_set" in dict(_told(capture))


@pytest.mark.parametrize("goodbye", [packets.disconnect(), b""])
def test_broker_that_closes_behind_its_client_had_not_closed_for_silence(goodbye):
    """31-2.2-KA"""
    capture, talk = connected(b"dev", keep_alive_s=10)
    for after_ms in (1, 3600_000, 1):
        talk.publish(C2S, b"t", b"1", after_ms=after_ms)
    talk.segment(C2S, goodbye, tcp.FIN | tcp.ACK)
    talk.segment(S2C, b"", tcp.FIN | tcp.ACK)
    assert _told(capture) == {("clock_set", "not_knowable")}


def test_connections_in_files_against_their_names_forget_no_session(tmp_path):
    paths = []
    for number, present in enumerate((False, True)):
        capture = Capture()
        capture.now -= number * 3600_000_000
        capture.ports += number
        capture.connection(b"dev", clean=False, present=present).reset()
        paths.append(capture.write(tmp_path / ("mqtt-%d.pcap" % number)))
    tables = audit(decode_all(paths)[0])
    assert tables["connections"].num_rows == 2
    assert not tables["findings"].num_rows
