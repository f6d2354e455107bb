"""Rules of the audit, one small dialogue each.

Shows for captures: 31-2.1-DUP 31-2.1-LEN 31-2.2-FLAGS 31-2.2-KA 31-2.2-PROTO 31-2.2-TOPIC
31-2.2-USER 31-2.6-UNUSED 31-3.1-CLIENTID 31-3.2-CONNACK 31-3.8-SUB 31-3.10-UNSUB
MQTT-4.6-RM1 MQTT-4.6.0-5 MQTT-4.6.0-6 RT-SEQ SIB-ROUTE SIB-NONDURABLE
"""

import pytest

from host_tests.fleet.captures import (
    C2S,
    S2C,
    Capture,
    audit,
    begun,
    connected,
    decode_all,
    routed,
    rows,
)
from host_tests.fleet.simulate import tcp
from host_tests.fleet.simulate.fleet import reading
from host_tests.standin import packets


def _broken(tables):
    return sorted(rows(tables["violations"], "requirement", "by"))


def _overtake(publisher, subscriber, topic=b"t"):
    for number in (1, 2):
        publisher.exchange(C2S, topic, b"%d" % number, number)
    for number in (2, 1):
        subscriber.exchange(S2C, topic, b"%d" % number, 10 + number)


def test_forwarded_out_of_order_breaks_the_rule_of_the_broker():
    """MQTT-4.6.0-5"""
    capture, *both = routed(clean=False)
    _overtake(*both)
    tables = capture.audit()
    assert _broken(tables) == [("MQTT-4.6.0-5", "broker")]
    assert rows(tables["routes"], "client_id", "topic", "overtaking") == [("sub", "t", 1)]


def test_what_comes_from_the_brokers_store_is_not_the_message_that_was_lost():
    """Without Retain As Published its RETAIN says so."""
    capture, publisher, subscriber = routed(clean=False)
    for number in (1, 2, 3):
        kept = b"t", b"%d" % number, number
        publisher.exchange(C2S, *kept, retain=1, after_ms=10_000)
        if number == 2:
            capture.now += 10_000_000
            subscriber.subscribe(b"#", packet_id=2)
        subscriber.exchange(S2C, *kept, retain=int(number == 2))
    assert rows(capture.audit()["losses"], "kind", "sure") == [("not_delivered", "proved")]


@pytest.mark.parametrize("came", [0, 1])
def test_message_repeated_in_a_new_session_need_not_come_if_it_came_before(came):
    """Its answer was lost with the first session; if nothing came, the message is lost."""
    capture, publisher, subscriber = routed(clean=False)
    publisher.publish(C2S, b"t", b"2", 1, 7)
    if came:
        subscriber.exchange(S2C, b"t", b"2", 2)
    publisher.reset()
    publisher = capture.connection(b"pub")
    for number in (1, 2, 3):
        times = {"dup": number == 2, "after_ms": 10_000}
        publisher.exchange(C2S, b"t", b"%d" % number, 5 + number, **times)
        if number != 2:
            subscriber.exchange(S2C, b"t", b"%d" % number, number)
    losses = rows(capture.audit()["losses"], "kind", "sure")
    assert losses == [("not_delivered", "proved")] * (1 - came)


@pytest.mark.parametrize("pattern", ["t", "#", "+"])
def test_topic_that_is_exempt_has_no_order(pattern):
    """MQTT-4.6.0-6"""
    capture, *both = routed(clean=False)
    _overtake(*both)
    assert _broken(capture.audit((pattern,))) == []


def test_messages_of_two_producers_may_interleave():
    """SIB-ROUTE"""
    capture, publisher, subscriber = routed(clean=False)
    publisher.exchange(C2S, b"t", b"1", 1)
    capture.connection(b"other").exchange(C2S, b"t", b"2", 1)
    for payload, packet_id in ((b"2", 1), (b"1", 2)):
        subscriber.exchange(S2C, b"t", payload, packet_id)
    assert _broken(capture.audit()) == []


def test_order_over_two_clean_sessions_is_not_judged():
    """SIB-NONDURABLE"""
    capture, publisher, subscriber = routed()
    for number in (1, 2):
        publisher.exchange(C2S, b"t", b"%d" % number, number)
    subscriber.exchange(S2C, b"t", b"2", 1)
    subscriber.reset()
    subscriber = capture.connection(b"sub", clean=True)
    subscriber.subscribe(b"#")
    subscriber.exchange(S2C, b"t", b"1", 1)
    assert _broken(capture.audit()) == []


@pytest.mark.parametrize("order", ["123234", "12334"])
def test_redelivery_after_a_lost_connection_is_legal_and_counted(order):
    """RT-SEQ, MQTT-4.6-RM1"""
    capture, publisher, subscriber = routed(clean=False)
    for number in (1, 2, 3, 4):
        publisher.exchange(C2S, b"t", b"%d" % number, number)
    seen = set()
    for place, number in enumerate(map(int, order)):
        again = number in seen
        if again and place == 3:
            subscriber.reset()
            subscriber = capture.connection(b"sub", clean=False, present=True)
        subscriber.publish(S2C, b"t", b"%d" % number, 1, number, int(again))
        if again or order.count(str(number)) == 1:
            subscriber.ack(C2S, 0x40, number)
        seen.add(number)
    tables = capture.audit()
    assert _broken(tables) == []
    sequences = rows(tables["sequences"], "direction", "messages", "packets", "redelivered")
    assert ("s2c", 4, len(order), len(order) - 4) in sequences


def test_message_that_a_subscriber_had_to_get_and_did_not_is_lost():
    capture, publisher, subscriber = routed(clean=False)
    for number in (1, 2, 3):
        publisher.exchange(C2S, b"t", b"%d" % number, number)
    for number in (1, 3):
        subscriber.exchange(S2C, b"t", b"%d" % number, number)
    subscriber.ping(10_000)
    losses = capture.audit()["losses"]
    found = rows(losses, "kind", "client_id", "topic", "messages")
    assert found == [("not_delivered", "sub", "t", 1)]


def test_message_before_the_subscription_or_after_its_end_is_not_lost():
    capture, publisher = connected(b"pub")
    publisher.exchange(C2S, b"t", b"early", 1)
    subscriber = capture.connection(b"sub", clean=False)
    subscriber.subscribe(b"t/#")
    publisher.exchange(C2S, b"other", b"no match", 2)
    subscriber.send(C2S, packets.unsubscribe(7, b"t/#"))
    subscriber.send(S2C, packets.unsuback(7))
    publisher.exchange(C2S, b"t", b"late", 3)
    subscriber.ping(10_000)
    assert capture.audit()["losses"].num_rows == 0


def test_capture_that_starts_in_the_middle_is_judged_from_what_it_shows():
    capture, talk = begun()
    talk.ack(S2C, 0x40, 9)
    talk.exchange(C2S, b"t", b"1", 5, dup=1)
    talk.publish(C2S, b"t", b"2", 1, 6)
    talk.publish(C2S, b"t", b"2", 1, 6)
    assert _broken(capture.audit()) == [("31-2.1-DUP", "client")]


def test_level_3_client_id_of_other_than_1_to_23_characters_is_named():
    """31-3.1-CLIENTID"""
    for level, name, wrong in ((3, b"x" * 24, True), (3, b"x" * 23, False), (4, b"x" * 24, False)):
        capture = Capture()
        capture.connection(name, level)
        found = [("31-3.1-CLIENTID", "client")] if wrong else []
        assert _broken(capture.audit()) == found


_CONNECTS = {
    "31-2.2-FLAGS": packets.string(b"MQIsdp") + b"\x03\x03\0\x3c" + packets.string(b"c"),
    "31-2.2-USER": packets.string(b"MQIsdp") + b"\x03\x42\0\x3c" + packets.string(b"c") * 2,
    "31-2.2-PROTO": packets.string(b"MQTT") + b"\x03\x02\0\x3c" + packets.string(b"c"),
}


@pytest.mark.parametrize("requirement", _CONNECTS)
def test_connect_that_breaks_a_rule_is_named(requirement):
    capture, talk = begun()
    talk.segment(C2S, b"", tcp.SYN)
    talk.send(C2S, packets.packet(0x10, _CONNECTS[requirement]))
    talk.send(S2C, packets.connack())
    assert _broken(capture.audit()) == [(requirement, "client")]


_PACKETS = {
    "31-3.8-SUB": (C2S, b"\x80" + packets.subscribe(1, (b"t", 0))[1:]),
    "31-3.10-UNSUB": (C2S, b"\xa0\x05\0\x01\0\x01t"),
    "31-2.6-UNUSED": (C2S, b"\xc1\0"),
    "31-2.2-TOPIC": (C2S, b"\x30\x03\0\0x"),
    "31-3.2-CONNACK": (S2C, b"\x20\x03\0\0\0"),
    "31-2.1-LEN": (C2S, b"\x30\xff\xff\xff\xff\x01"),
}


@pytest.mark.parametrize("requirement", _PACKETS)
def test_packet_that_breaks_a_rule_is_named(requirement):
    capture, talk = connected()
    direction, packet = _PACKETS[requirement]
    talk.send(direction, packet)
    by = ("client", "broker")[direction]
    assert _broken(capture.audit()) == [(requirement, by)]


def test_server_whose_first_packet_is_no_connack_is_named():
    """31-3.2-CONNACK"""
    capture, talk = begun()
    talk.open()
    talk.send(C2S, packets.connect(b"c", level=4))
    talk.publish(S2C, b"t", b"1")
    assert _broken(capture.audit()) == [("31-3.2-CONNACK", "broker")]


@pytest.mark.parametrize(("silence_s", "late"), [(10, 0), (11.9, 0), (12.1, 1), (0, 0)])
def test_silence_longer_than_keep_alive_and_its_tolerance_is_named(silence_s, late):
    """31-2.2-KA"""
    capture, talk = connected(keep_alive_s=10)
    talk.ping(int(silence_s * 1000) + 1)
    tables = capture.audit()
    assert _broken(tables) == [("31-2.2-KA", "client")] * late
    found = rows(tables["keepalive"], "keep_alive_s", "late", "pings", "unanswered_pings")
    assert found == [(10, late, 1, 0)]


@pytest.mark.parametrize(
    ("level", "behind", "sure"),
    [
        (4, [], "likely"),
        (4, [(C2S, tcp.FIN)], "proved"),  # its sequence number says that nothing is missing
        (4, [(C2S, tcp.RST)], "likely"),
        (5, [], "proved"),  # the broker says why
    ],
)
def test_silence_that_the_broker_ends_may_be_packets_that_were_not_captured(level, behind, sure):
    capture = Capture()
    talk = capture.connection(b"c1", level, keep_alive_s=10)
    capture.now += 16_000_000
    if level == 5:
        talk.send(S2C, b"\xe0\2\x8d\0")
    for side, flags in [(S2C, tcp.FIN), *behind]:
        talk.segment(side, b"", flags | tcp.ACK)
    found = capture.audit()["findings"]
    assert rows(found, "finding", "sure") == [("silent_for_good", sure)]


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


def test_ping_time_of_a_connection_is_the_median_of_its_pairs():
    """Of an even number the middle two's mean; what has no answer is counted and has no time."""
    capture = Capture()
    for name, waits_ms in ((b"a", (5, 1, 30)), (b"b", (8, 2)), (b"c", ())):
        talk = capture.connection(name)
        for wait_ms in waits_ms:
            talk.send(C2S, b"\xc0\0")
            talk.send(S2C, b"\xd0\0", after_ms=wait_ms)
        talk.send(C2S, b"\xc0\0")
    table = capture.audit()["keepalive"]
    assert sorted(rows(table, "client_id", "pings", "unanswered_pings", "ping_ms")) == [
        ("a", 4, 1, 5.0),
        ("b", 3, 1, 5.0),
        ("c", 1, 1, None),
    ]


def test_clock_that_jumps_back_breaks_nothing():
    capture, talk = connected()
    talk.exchange(C2S, b"t", b"1", 1)
    capture.now -= 86_400_000_000
    talk.exchange(C2S, b"t", b"2", 2)
    tables = capture.audit()
    assert _broken(tables) == []
    assert min(tables["sequences"]["latency_max_ms"].to_pylist()) >= 0


def test_connection_table_tells_who_ended_it_and_what_it_asked_for():
    capture = Capture()
    ends = {
        "disconnect": lambda talk: talk.bye(),
        "closed_by_client": lambda talk: talk.segment(C2S, b"", tcp.FIN | tcp.ACK),
        "closed_by_server": lambda talk: talk.segment(S2C, b"", tcp.FIN | tcp.ACK),
        "reset": lambda talk: talk.reset(),
        "open": lambda talk: None,
    }
    for name, end in ends.items():
        end(capture.connection(name.encode(), keep_alive_s=7))
    table = capture.audit()["connections"]
    found = rows(table, "client_id", "end_reason", "keep_alive_s", "clean_session")
    assert sorted(found) == sorted((name, name, 7, True) for name in ends)


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


def test_connack_of_unknown_level_may_have_any_length():
    capture, talk = begun(b"p", level=5)
    talk.send(S2C, b"\x20\x03\x01\x00\x00")
    talk.publish(C2S, b"t", b"1", 1, 7)
    assert not capture.audit()["violations"].num_rows


@pytest.mark.parametrize(("dup", "states"), [(1, ["open", "complete"]), (0, ["abandoned"] * 2)])
def test_message_sent_again_in_the_next_session_with_dup_is_not_given_up(dup, states):
    """Clients keep what they have to send, also for a clean session."""
    capture, first = connected(b"dev")
    first.publish(C2S, b"t", b"30", 1, 1)
    first.reset()
    again = capture.connection(b"dev")
    again.publish(C2S, b"t", b"30", 1, 2, dup)
    if dup:
        again.ack(S2C, 0x40, 2)
    again.reset()
    capture.connection(b"dev")
    assert capture.audit()["messages"]["state"].to_pylist() == states


@pytest.mark.parametrize(
    ("side", "code", "finding"),
    [
        (S2C, 0x93, [("disconnected", "client", 2, "reason code 0x93 (more in flight")]),
        (S2C, 0x8B, []),
        (S2C, 0x8E, []),
        (C2S, 0x95, [("client_complains", "broker", 2, "reason code 0x95 (packet too large)")]),
        (C2S, 0x04, []),
    ],
)
def test_disconnect_with_a_reason_of_level_5_is_told_with_it(side, code, finding):
    capture = Capture()
    for _ in range(2):
        talk = capture.connection(b"dev", level=5)
        talk.send(side, bytes((0xE0, 1, code)))
    found = capture.audit()
    told = rows(found["findings"], "finding", "about", "count", "detail")
    assert [(*one[:3], one[3][: len(wanted[3])]) for one, wanted in zip(told, finding)] == finding
    assert len(told) == len(finding)
    ends = found["connections"]["end_reason"].to_pylist()
    assert set(ends) == {"closed_by_server" if side == S2C else "disconnect"}
