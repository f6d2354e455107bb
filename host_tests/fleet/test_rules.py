"""Rules of a connection's first and last packets, and of what a kept session repeats.

Shows for captures: 311-3.1.0-1 311-3.1.0-2 311-3.14.4-2 31-3.2-CONNACK MQTT-4.3.2-2
MQTT-4.3.3-4 MQTT-4.4.0-1
"""

from functools import partial

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, begun, connected, rows
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets

_PUBACK, _PUBREC, _PUBREL, _PUBCOMP = 0x40, 0x50, 0x62, 0x70


def _broken(capture):
    return rows(capture.audit()["violations"], "requirement", "by", "packet_id", "sure")


def _message(talk, direction, packet_id, after_ms=1):
    talk.exchange(direction, b"t", b"%d" % packet_id, packet_id, after_ms=after_ms)


@pytest.mark.parametrize(("level", "broken"), [(5, []), (4, ["31-3.2-CONNACK"])])
def test_at_level_5_auth_may_come_before_connack(level, broken):
    capture = Capture()
    talk = capture.middle(b"dev", level).open()
    talk.send(C2S, packets.connect(b"dev", level=level))
    for side in (S2C, C2S):
        talk.send(side, packets.auth(0x18, packets.properties(authentication_method=b"x")))
    talk.send(S2C, packets.connack(properties=packets.no_properties(level)))
    _message(talk, C2S, 1)
    assert [one[0] for one in _broken(capture)] == broken


def test_first_packet_that_is_no_connect_is_named():
    """311-3.1.0-1"""
    capture, talk = begun(b"dev")
    talk.open()
    talk.send(C2S, packets.subscribe(1, (b"some/topic/#", 1)))
    talk.send(C2S, packets.connect(b"dev", level=4))
    talk.send(S2C, packets.connack())
    assert _broken(capture) == [("311-3.1.0-1", "client", 1, "proved")]


def test_connection_from_before_the_capture_needs_no_connect():
    capture, talk = begun(b"dev")
    _message(talk, C2S, 1)
    assert _broken(capture) == []


def test_answer_may_be_in_the_packet_that_the_capture_begins_in():
    """Behind the end of a long message."""
    capture, talk = begun(b"dev")
    talk.publish(C2S, b"t", b"1", 1, 1)
    talk.send(S2C, b" end" + packets.packet(0x40, packets.u16(1)))
    for number in range(2, 7):
        talk.exchange(C2S, b"t", b"%d" % number, number, after_ms=10_000)
    assert ("never_acknowledged",) not in rows(capture.audit()["findings"], "finding")


def test_publish_with_qos_3_needs_no_answer():
    """31-2.1-QOS3: the broker closes, which says nothing of what was not captured."""
    capture, talk = begun(b"dev")
    talk.publish(C2S, b"t", b"1")
    talk.send(C2S, b"\x36" + packets.publish(b"t", b"2", 1, 7)[1:], after_ms=2000)
    talk.reset()
    found = capture.audit()
    assert rows(found["violations"], "requirement") == [("31-2.1-QOS3",)]
    assert "one_direction" not in found["findings"]["finding"].to_pylist()


_DONE = {
    "PUBACK": [packets.puback(7)],
    "PUBACK that refuses": [packets.puback(7, 0x97)],
    "PUBCOMP": [packets.pubrec(7), packets.pubrel(7), packets.pubcomp(7)],
    "PUBREC that refuses": [packets.pubrec(7, 0x97)],
    "PUBACK missing": [],
    "PUBCOMP missing": [packets.pubrec(7), packets.pubrel(7)],
}


@pytest.mark.parametrize("side", [C2S, S2C])
@pytest.mark.parametrize("end", _DONE)
def test_equal_value_under_the_same_id_is_a_new_message_where_the_last_one_is_done(end, side):
    """31-2.1-DUP, MQTT-4.3.3-6: else it is the message again, which DUP has to say."""
    capture, talk = connected(b"dev", level=5)
    for _ in range(3):
        talk.publish(side, b"t", b"21.5", 1 if "PUBACK" in end else 2, 7)
        for packet in _DONE[end]:
            talk.send(side if packet[0] == _PUBREL else 1 - side, packet)
    found = [one[0] for one in _broken(capture)]
    assert set(found) == {
        "PUBACK missing": {"31-2.1-DUP"},
        "PUBCOMP missing": {"31-2.1-DUP", "MQTT-4.3.3-6"},
    }.get(end, set())


@pytest.mark.parametrize(("answer_ms", "step_us"), [(300, 0), (1, -3_600_000_000)])
def test_answer_is_not_that_of_a_publish_on_the_next_connection(answer_ms, step_us):
    """A program that comes for each message, and uses one packet id; the clock may be set."""
    capture = Capture()
    for number in range(4):
        talk = capture.connection(b"dev")
        talk.publish(C2S, b"t", b"%d" % number, 1, 1)
        talk.ack(S2C, 0x40, 1, after_ms=answer_ms)
        talk.bye()
        talk.segment(C2S, b"", tcp.FIN | tcp.ACK)
        talk.segment(S2C, b"", tcp.FIN | tcp.ACK)
        capture.now += step_us
    found = capture.audit()
    assert not rows(found["violations"], "requirement", "why")
    assert found["messages"]["state"].to_pylist() == ["complete"] * 4


def test_second_connect_on_one_connection_is_named_once():
    """311-3.1.0-2"""
    capture, talk = connected(b"dev")
    _message(talk, C2S, 1)
    talk.send(C2S, packets.connect(b"dev", level=4))
    talk.segment(S2C, b"", tcp.FIN | tcp.ACK)
    assert _broken(capture) == [("311-3.1.0-2", "client", None, "proved")]


def test_second_connect_behind_missing_bytes_may_be_of_another_connection():
    capture, talk = connected(b"dev")
    talk.segment(C2S, packets.publish(b"t", b"1"))
    del capture.frames[-1]
    talk.send(C2S, packets.connect(b"dev", level=4))
    talk.send(S2C, packets.connack())
    assert _broken(capture) == []


def test_what_the_client_sends_behind_its_disconnect_is_named():
    """311-3.14.4-2"""
    capture, talk = connected(b"dev")
    talk.bye()
    talk.publish(S2C, b"t", b"on its way")
    talk.publish(C2S, b"t", b"1", 1, 7)
    assert _broken(capture) == [("311-3.14.4-2", "client", 7, "proved")]


def _resumed(side, level, begin):
    """A message that a break leaves open, and a second connection of the session."""
    capture = Capture()
    for number in range(2):
        said = ({"session_expiry": 1000}, {}) if level == 5 else ()
        talk = capture.connection(b"dev", level, clean=False, present=number, said=said)
        if not number:
            begin(talk, side)
            talk.reset()
            capture.now += 1_000_000
    return capture, talk


def _open_at_qos_1(talk, side, qos=1, dup=0):
    talk.publish(side, b"t", b"7", qos, 7, dup)


_open_at_qos_2 = partial(_open_at_qos_1, qos=2)


def _open_at_pubrel(talk, side):
    talk.publish(side, b"t", b"7", 2, 7)
    talk.ack(1 - side, _PUBREC, 7)
    talk.ack(side, _PUBREL, 7)


def _said(talk, side):
    talk.send(side, packets.pingreq() if side == C2S else packets.pingresp())


def _answered_behind(talk, side):
    _open_at_qos_1(talk, side)
    _said(talk, 1 - side)


_OPEN = [_open_at_qos_1, _open_at_qos_2, _open_at_pubrel]


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("side", [C2S, S2C])
@pytest.mark.parametrize("begin", [*_OPEN, _answered_behind])
def test_message_that_a_kept_session_does_not_send_again_is_named(begin, side, level):
    """MQTT-4.4.0-1: likely, as a third connection that was not captured may explain it."""
    capture, talk = _resumed(side, level, begin)
    _message(talk, side, 8, after_ms=6000)
    by = ("client", "broker")[side]
    assert _broken(capture) == [("MQTT-4.4.0-1", by, 7, "likely")]


def _in_another_order(talk, side):
    talk.publish(side, b"t", b"9", 1, 9, 1)
    talk.publish(side, b"t", b"7", 1, 7, 1)


def _answer_to_nothing(talk, side):
    talk.ack(side, _PUBACK, 5)
    _said(talk, 1 - side)


def _two_open(talk, side):
    _open_at_qos_1(talk, side)
    talk.publish(side, b"t", b"9", 1, 9)


@pytest.mark.parametrize(
    ("requirement", "begin", "then"),
    [
        ("31-2.1-DUP", _open_at_qos_1, _open_at_qos_1),
        ("MQTT-4.3.3-6", _open_at_pubrel, partial(_open_at_qos_2, dup=1)),
        ("MQTT-4.6.0-1", _two_open, _in_another_order),
        ("MQTT-4.3.2-4", lambda *_: None, _answer_to_nothing),
    ],
)
def test_what_takes_two_connections_of_a_session_is_only_likely(requirement, begin, then):
    """31-2.1-DUP MQTT-4.3.2-4 MQTT-4.3.3-6 MQTT-4.6.0-1: in between the message may have been
    answered, and another one of equal value have got its packet id."""
    capture, talk = _resumed(C2S, 4, begin)
    then(talk, C2S)
    assert [one[::3] for one in _broken(capture)] == [(requirement, "likely")]
    capture, talk = connected(b"dev")
    begin(talk, C2S)
    then(talk, C2S)
    on_one = [] if requirement == "MQTT-4.6.0-1" else [(requirement, "proved")]
    assert [one[::3] for one in _broken(capture)] == on_one


@pytest.mark.parametrize(
    ("payload", "dup", "text"),
    [(b"7", 1, "sent again with another packet id"), (b"7", 0, "not"), (b"8", 1, "not")],
)
def test_message_that_is_sent_again_with_another_packet_id_is_called_so(payload, dup, text):
    """As RabbitMQ does it: an operator should not look for a loss."""
    capture, talk = _resumed(S2C, 4, _open_at_qos_1)
    talk.publish(S2C, b"t", payload, 1, 1, dup)
    talk.ack(C2S, _PUBACK, 1)
    _message(talk, S2C, 2, after_ms=6000)
    found = capture.audit()["violations"]
    told = dict(rows(found, "requirement", "detail"))["MQTT-4.4.0-1"]
    assert told.startswith(text)
    assert told.endswith(" when the session went on")


def test_pubrel_with_dup_may_be_of_level_3_where_connect_is_missing():
    """31-3.6-PUBREL"""
    capture, talk = begun(b"dev")
    _message(talk, C2S, 1)
    talk.publish(C2S, b"t", b"2", 2, 2)
    talk.ack(S2C, _PUBREC, 2)
    for first in (_PUBREL, 0x6A):
        talk.ack(C2S, first, 2, after_ms=20_000)
    talk.ack(S2C, _PUBCOMP, 2)
    assert _broken(capture) == []


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("side", [C2S, S2C])
@pytest.mark.parametrize("begin", _OPEN)
def test_message_that_is_sent_again_breaks_nothing(begin, side, level):
    capture, talk = _resumed(side, level, begin)
    if begin is _open_at_pubrel:
        talk.ack(side, _PUBREL, 7)
        talk.ack(1 - side, _PUBCOMP, 7)
    else:
        talk.publish(side, b"t", b"7", 1 + (begin is _open_at_qos_2), 7, 1)
    _message(talk, side, 8, after_ms=6000)
    assert _broken(capture) == []


def _late_answer(talk, side):
    _open_at_qos_1(talk, side)
    talk.ack(1 - side, _PUBACK, 7)


def _expiring(talk, side):
    talk.publish(side, b"t", b"7", 1, 7, message_expiry=1)


@pytest.mark.parametrize(
    ("side", "level", "begin", "after_ms"),
    [
        pytest.param(C2S, 4, _open_at_qos_1, 4000, id="there is time"),
        pytest.param(C2S, 4, _late_answer, 6000, id="the broker took it on"),
        pytest.param(C2S, 3, _open_at_qos_1, 6000, id="level 3 does not say that it was kept"),
        pytest.param(S2C, 5, _expiring, 6000, id="it may have expired"),
    ],
)
def test_message_that_need_not_be_sent_again_breaks_nothing(side, level, begin, after_ms):
    capture, talk = _resumed(side, level, begin)
    _message(talk, side, 8, after_ms=after_ms)
    assert _broken(capture) == []


@pytest.mark.parametrize("level", [3, 4])
def test_id_used_again_on_a_new_connection_is_likely(level):
    """MQTT-4.3.2-1: the session may be new, or the answer have come where nothing was seen."""
    capture, talk = _resumed(S2C, level, _answered_behind)
    talk.publish(S2C, b"t", b"another", 1, 7)
    assert _broken(capture) == [("MQTT-4.3.2-1", "broker", 7, "likely")]


@pytest.mark.parametrize(("is_answered", "sure"), [(True, "proved"), (False, "likely")])
def test_id_used_again_where_the_message_was_sent_last_is_told(is_answered, sure):
    """MQTT-4.3.2-1: what is missing at the very end of a stream nobody can notice."""
    capture, talk = _resumed(S2C, 4, _open_at_qos_1)
    talk.publish(S2C, b"t", b"7", 1, 7, 1)
    if is_answered:
        talk.send(C2S, packets.pingreq())
    talk.publish(S2C, b"t", b"another", 1, 7)
    assert _broken(capture) == [("MQTT-4.3.2-1", "broker", 7, sure)]


@pytest.mark.parametrize(("is_told", "broken"), [(False, []), (True, ["MQTT-4.3.2-4"])])
def test_answer_to_a_message_that_may_be_missing_before_a_reset_is_no_stray(is_told, broken):
    """MQTT-4.3.2-4: a reset does not tell what was sent before it."""
    capture, talk = connected(b"dev")
    talk.ack(S2C, _PUBACK, 1)
    if is_told:
        talk.send(C2S, packets.pingreq())
    talk.reset()
    assert [one[0] for one in _broken(capture)] == broken


@pytest.mark.parametrize("side", [C2S, S2C])
@pytest.mark.parametrize(
    ("comes", "answers", "after_ms", "sure"),
    [
        pytest.param(False, False, 3000, None, id="there is time"),
        pytest.param(False, False, 6000, "likely", id="its reader may be slow"),
        pytest.param(False, True, 6000, "proved", id="what came behind it was answered"),
        pytest.param(True, False, 6000, None, id="PUBCOMP answers PUBREL"),
    ],
)
def test_pubrec_that_no_pubrel_answers_is_named(comes, answers, after_ms, sure, side):
    """MQTT-4.3.3-4: a program that reads slowly, and publishes meanwhile, looks the same."""
    capture, talk = connected(b"dev")
    talk.subscribe(b"#")
    talk.publish(side, b"t", b"1", 2, 1)
    talk.ack(1 - side, _PUBREC, 1)
    if comes:
        talk.ack(1 - side, _PUBCOMP, 1)
    _message(talk, 1 - side if answers else side, 2, after_ms)
    by = ("client", "broker")[side]
    assert _broken(capture) == [("MQTT-4.3.3-4", by, 1, sure)] * (sure is not None)


@pytest.mark.parametrize("fin", [True, False])
def test_dup_of_the_broker_needs_all_that_it_had_sent_before(fin):
    """MQTT-4.3.2-2: what it sends while the client says goodbye may be gone with the link."""
    capture, talk = connected(b"dev", clean=False)
    talk.bye()
    talk.segment(C2S, b"", tcp.FIN | tcp.ACK)
    talk.segment(S2C, b"", (tcp.FIN if fin else tcp.RST) | tcp.ACK)
    talk = capture.connection(b"dev", clean=False, present=True)
    talk.exchange(S2C, b"t", b"1", 1, dup=1)
    assert _broken(capture) == [("MQTT-4.3.2-2", "broker", 1, "likely")] * fin
