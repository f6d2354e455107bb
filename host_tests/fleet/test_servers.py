"""One capture with two servers: a client's session is known to one of them."""

import pytest

from host_tests.fleet.captures import C2S, Capture, audit, decode, rows
from tools.standin import packets

_ONE, _OTHER = (bytes((10, 0, 0, number)) for number in (1, 2))


def _found(capture, tmp_path):
    tables = audit(decode(capture.write(tmp_path / "one.pcap"))[0])
    found = rows(tables["findings"], "finding", "client_id")
    return found, rows(tables["violations"], "requirement", "by"), tables


def _visit(capture, server, present):
    talk = capture.connection(b"gate", clean=False, present=present, server=server)
    talk.publish(C2S, b"t", b"1", 1, 1)
    talk.ack(1, 0x40, 1)
    talk.publish(C2S, b"t", b"2", 1, 2)
    talk.send(C2S, b"\xc0\0", after_ms=6000)
    return talk


def test_server_that_a_client_falls_back_to_need_not_know_its_session(tmp_path):
    """Nor has the client to send there what it owes the other one."""
    capture = Capture()
    for server, present in ((_ONE, False), (_OTHER, False), (_ONE, True), (_OTHER, True)):
        _visit(capture, server, present).reset()
    findings, violations, tables = _found(capture, tmp_path)
    assert (findings, violations) == ([], [])
    assert sorted(tables["connections"]["session"].to_pylist()) == [0, 1, 2, 3]


def test_session_goes_on_through_another_address_of_the_same_server(tmp_path):
    capture = Capture()
    for server, present in ((_ONE, False), (_OTHER, True)):
        talk = capture.connection(b"gate", clean=False, present=present, server=server)
        talk.send(C2S, packets.disconnect())
    findings, violations, tables = _found(capture, tmp_path)
    assert (findings, violations) == ([], [])
    assert tables["connections"]["session"].to_pylist() == [0, 0]


@pytest.mark.parametrize(("server", "found"), [(_ONE, 1), (_OTHER, 0)])
def test_the_server_that_kept_a_session_may_not_forget_it(server, found, tmp_path):
    capture = Capture()
    for place in (_ONE, server):
        capture.connection(b"gate", clean=False, server=place).reset()
    assert _found(capture, tmp_path)[0] == [("session_not_kept", "gate")] * found
