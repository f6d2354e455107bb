"""Tables of the audit: times, counts, and names; `traces/judge.txt` has its rules."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, begun, connected, decode_all, rows
from host_tests.fleet.simulate.fleet import reading
from host_tests.standin import packets


@pytest.mark.parametrize(("files", "sure"), [(1, "proved"), (2, "likely")])
def test_silence_from_one_file_to_the_next_may_be_a_clock_that_was_set(files, sure, tmp_path):
    capture, talk = connected(b"c1", keep_alive_s=10)
    head = len(capture.frames)
    talk.send(C2S, b"\xc0\0", after_ms=13_000)
    paths = [capture.write(tmp_path / "a.pcap")]
    if files == 2:
        paths[0].write_bytes(b"".join(capture.frames[:head]))
        paths.append(tmp_path / "b.pcap")
        paths[1].write_bytes(b"".join([capture.frames[0], *capture.frames[head:]]))
    found = audit(decode_all(paths)[0])["violations"]
    assert rows(found, "requirement", "sure") == [("31-2.2-KA", sure)]


def test_connection_table_counts_packets_and_bytes_of_each_side():
    capture, talk = connected(b"dev", level=4)
    said = [packets.publish(b"t", b"1", 1, 7), packets.pingreq()]
    for packet in said:
        talk.send(C2S, packet)
    talk.ack(S2C, 0x40, 7)
    table = capture.audit()["connections"]
    hello = packets.connect(b"dev", packets.CLEAN, 60, level=4)
    found = rows(table, "packets_c2s", "bytes_c2s", "packets_s2c", "bytes_s2c")
    assert found == [(3, len(hello) + sum(map(len, said)), 2, 4 + 4)]


def test_flow_row_tells_every_stage_and_its_time():
    capture, talk = connected()
    talk.publish(C2S, b"t", b"1", 2, 7)
    for side, first, after_ms in ((S2C, 0x50, 10), (C2S, 0x62, 20), (S2C, 0x70, 30)):
        talk.ack(side, first, 7, after_ms)
    flow = capture.audit()["messages"].to_pylist()[0]
    assert (flow["answer_ms"], flow["complete_ms"], flow["is_complete"]) == (10, 60, True)
    assert (flow["pubrel"] - flow["pubrec"]).total_seconds() == 0.02
    assert (flow["puback"], flow["state"]) == (None, "complete")


def test_names_with_control_characters_and_nul_stay_apart():
    capture = Capture()
    names = ("<b>&", "a", "a\x00b", "a\x00c")
    for name in names:
        capture.connection(name.encode()).exchange(C2S, b"t", b"1", 1)
    found = rows(capture.audit()["sequences"], "client_id", "messages")
    assert sorted(found) == [(name, 1) for name in names]


def test_publisher_of_unknown_level_when_a_subscriber_comes_loses_nothing():
    """At level 5 properties stand before the payload; without CONNECT nobody can tell."""
    capture, publisher = begun(b"p", level=5)
    subscriber = capture.connection(b"s")
    subscriber.subscribe(b"#")
    payload = reading(257, 1, 1, 60, 1, b"p", (2100, 3300))
    for number in range(1, 6):
        for text in (b"text %d" % number, payload[:8] + bytes((0, 0, 0, number)) + payload[12:]):
            publisher.exchange(C2S, b"t", text, number, after_ms=6000)
            subscriber.exchange(S2C, b"t", text, number)
    found = capture.audit()
    assert not found["losses"].num_rows
    assert rows(found["readings"], "times_published", "times_delivered") == [(1, 1)] * 5


def test_reading_of_version_2_keeps_the_time_of_its_measurement():
    capture, publisher = begun(b"p")
    payload = reading(257, 1, 1, 60, 1, b"p", (2100, 3300))
    timed = payload[:1] + b"\2" + payload[2:] + (1_700_000_000).to_bytes(4, "big")
    publisher.exchange(C2S, b"t", timed, 1)
    found = capture.audit()["readings"]
    assert [one.timestamp() for one in found["measured"].to_pylist()] == [1_700_000_000]
    assert dict(found["values"].to_pylist()[0]) == {1: 2100, 4: 3300}


@pytest.mark.parametrize(("late_ms", "wanted"), [(-3, 4.0), (30, 0.0), (2000, None)])
def test_latency_of_a_reading_whose_first_publish_was_not_captured_is_not_known(late_ms, wanted):
    """Two queues of a card may swap neighbours; what comes long after was sent again."""
    capture, publisher, subscriber = connected(b"p", b"s")
    subscriber.subscribe(b"#")
    payload = reading(257, 1, 1, 60, 1, b"p", (2100, 3300))
    if late_ms < 0:
        publisher.publish(C2S, b"t", payload, 1, 1)
        subscriber.publish(S2C, b"t", payload, 1, 1, after_ms=1 - late_ms)
    else:
        subscriber.publish(S2C, b"t", payload, 1, 1)
        publisher.publish(C2S, b"t", payload, 1, 1, dup=1, after_ms=late_ms)
    found = capture.audit()["readings"]
    assert found["latency_ms"].to_pylist() == [wanted]
