"""Clean sessions in every mixture with kept ones.  MQTT 3.1 §3.1 (clean session); design §11."""

from host_tests.client.dialogue import Dialogue
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    read_id,
    suback,
    subscribe,
)
from umqtt31 import CLOSED

# At level 5 no time-out repeats.
BELOW_5 = ("test_c2b_clean_reconnect_when_sent_again_before_then_publishes_again_as_new",)


def assert_sent_as_new(d, payloads, qos):
    """The client sends just these, none marked DUP; the broker takes them all to the end."""
    sent = d.take_publishes()
    assert [(one[0], one[1], one[3]) for one in sent] == [(text, qos, 0) for text in payloads]
    ids = [one[2] for one in sent]
    assert len(set(ids)) == len(ids) and 0 not in ids
    if qos == 1:
        d.b2c(*[puback(packet_id) for packet_id in ids])
        d.c2b()
    else:
        d.b2c(*[pubrec(packet_id) for packet_id in ids])
        d.c2b(*[pubrel(packet_id) for packet_id in ids])
        d.b2c(*[pubcomp(packet_id) for packet_id in ids])
    assert (d.client.inflight, d.client.queued) == (0, 0)


# 31-3.1-CLEAN: the broker begins with nothing, so a PUBREL alone would lose the message.
def test_c2b_clean_reconnect_when_pubrec_was_seen_then_publishes_again_as_new():
    for has_pubrel in (False, True):
        d = Dialogue(clean=True)
        dropped = d.watch_drops()
        d.publish(b"1", 2)
        d.stream.take()
        d.stream.is_blocked = not has_pubrel
        d.b2c(pubrec(1))
        assert d.stream.take() == (pubrel(1) if has_pubrel else b"")
        d.lose()
        d.reconnect(clean=True)
        assert_sent_as_new(d, [b"1"], 2)
        assert not dropped


# 31-2.1-DUP.
def test_c2b_clean_reconnect_when_sent_again_before_then_publishes_again_as_new():
    """C: PUBLISH 1, PUBLISH 1 DUP; reconnect(); C: PUBLISH 1"""
    for qos in (1, 2):
        d = Dialogue(clean=True, retry_interval=5)
        d.publish(b"1", qos)
        d.work()
        d.wait(5)
        d.c2b(publish(b"t", b"1", qos, 1), publish(b"t", b"1", qos, 1, dup=1))
        d.lose()
        d.reconnect(clean=True)
        assert_sent_as_new(d, [b"1"], qos)


# 31-3.1-CLEAN, 31-2.1-DUP.
def test_c2b_clean_reconnect_when_in_flight_then_publishes_again_as_new():
    for qos in (1, 2):
        d = Dialogue(clean=True)
        dropped = d.watch_drops()
        d.publish(b"1", qos)
        d.publish(b"2", qos)
        d.lose()
        d.reconnect(clean=True)
        assert_sent_as_new(d, [b"1", b"2"], qos)
        assert not dropped and d.client.stats.dropped == 0


# 31-3.1-CLEAN: one in each state of its flow, one in the queue.
def test_c2b_clean_reconnect_when_states_differ_then_all_go_out_as_new_in_order():
    d = Dialogue(clean=True, max_inflight=4)
    for number in range(1, 6):
        d.publish(b"%d" % number, 2)
    for answer in (pubrec(1), pubcomp(1), pubrec(2), pubrec(3)):
        d.b2c(answer)  # 2 and 3 await PUBCOMP, 4 and 5 PUBREC
    d.stream.take()
    d.lose()
    d.reconnect(clean=True)
    assert_sent_as_new(d, [b"2", b"3", b"4", b"5"], 2)


# 31-3.1-CLEAN: connect() gives up and says so, reconnect() never does.
# 311-3.1.2-6.
def test_c2b_clean_connect_gives_up_what_clean_reconnect_keeps():
    d = Dialogue(clean=True)
    dropped = d.watch_drops()
    packet_id = d.publish(b"1", 2)
    d.lose()
    d.reconnect(clean=True)
    assert not dropped
    [(_, _, again_id, _)] = d.take_publishes()
    d.lose()
    d.connect(True)
    d.c2b()
    assert dropped == [(again_id, CLOSED)]
    assert packet_id and d.client.inflight == d.client.queued == 0


# 31-3.1-CLEAN: what the clean session knew is not in the session that begins now.
def test_c2b_kept_connect_after_a_clean_one_sends_what_is_in_flight_as_new():
    for qos in (1, 2):
        d = Dialogue(clean=True)
        dropped = d.watch_drops()
        d.publish(b"1", qos)
        d.publish(b"2", qos)
        if qos == 2:
            d.b2c(pubrec(1))
        d.lose()
        d.connect(False, is_present=False)
        assert_sent_as_new(d, [b"1", b"2"], qos)
        assert not dropped


# 31-3.1-CLEAN: the second kept connection meets the session of the first.
def test_c2b_kept_connect_after_a_kept_one_goes_on():
    d = Dialogue(clean=True)
    d.publish(b"0", 2)
    d.lose()
    d.connect(False, is_present=False)
    d.b2c(pubrec(1))
    d.stream.take()
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1, dup=d.level == 3))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


# MQTT-4.3.3-12: an id held in a clean session is free in the next one.
def test_b2c_kept_connect_after_a_clean_one_takes_a_held_id_as_new():
    d = Dialogue(clean=True)
    d.b2c(publish(b"t", b"old", 2, 5))
    d.c2b(pubrec(5))
    d.lose()
    d.connect(False, is_present=False)
    d.b2c(publish(b"t", b"new", 2, 5))
    d.c2b(pubrec(5))
    assert [message[1] for message in d.messages] == [b"old", b"new"]


# MQTT-4.3.3-12.
# 311-3.1.2-6.
def test_b2c_clean_reconnect_takes_a_held_id_as_new():
    d = Dialogue(clean=True)
    d.b2c(publish(b"t", b"old", 2, 5))
    d.lose()
    d.reconnect(clean=True)
    d.b2c(publish(b"t", b"new", 2, 5))
    d.c2b(pubrec(5))
    assert [message[1] for message in d.messages] == [b"old", b"new"]


# MQTT-4.3.3-10: between two kept connections it stays held.
def test_b2c_kept_connect_after_a_kept_one_keeps_held_ids():
    d = Dialogue(clean=True)
    d.lose()
    d.connect(False, is_present=False)
    d.b2c(publish(b"t", b"one", 2, 5))
    d.lose()
    d.connect(False)
    d.b2c(publish(b"t", b"one", 2, 5, dup=1))
    assert [message[1] for message in d.messages] == [b"one"]


# MQTT-4.3.3-12: the journal remembers that the session was a clean one.
def test_b2c_reset_after_a_clean_connection_then_kept_connect_takes_a_held_id_as_new():
    flash = FailingFlash()
    d = Dialogue(clean=True, store=flash.journal())
    d.b2c(publish(b"t", b"old", 2, 5))
    d.c2b(pubrec(5))
    again = Dialogue(is_connected=False, store=flash.journal())
    again.connect(False, is_present=False)
    again.b2c(publish(b"t", b"new", 2, 5))
    again.c2b(pubrec(5))
    assert [message[1] for message in again.messages] == [b"new"]


# MQTT-4.3.3-10: and that another was kept.
def test_b2c_reset_after_a_kept_connection_keeps_held_ids():
    flash = FailingFlash()
    d = Dialogue(clean=True, store=flash.journal())
    d.lose()
    d.connect(False, is_present=False)
    d.b2c(publish(b"t", b"one", 2, 5))
    again = Dialogue(clean=False, store=flash.journal())
    again.b2c(publish(b"t", b"one", 2, 5, dup=1))
    again.c2b(pubrec(5))
    assert not again.messages


# 31-3.1-CLEAN: PUBREC of a clean session says nothing to the session after it.
def test_c2b_reset_after_a_clean_connection_then_kept_connect_publishes_again():
    flash = FailingFlash()
    d = Dialogue(clean=True, store=flash.journal())
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    d.b2c(pubrec(1))
    again = Dialogue(is_connected=False, store=flash.journal())
    again.connect(False, is_present=False)
    assert_sent_as_new(again, [b"1", b"2"], 2)


# 31-3.8-SUB: at every level, since a clean session has no subscriptions.
def test_c2b_clean_reconnect_subscribes_again():
    d = Dialogue(clean=True)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    for _ in range(2):
        d.lose()
        d.reconnect(clean=True)
        [packet] = d.take_packets()
        packet_id = read_id(packet)
        assert packet == subscribe(packet_id, (b"a", 1))
        d.b2c(suback(packet_id, 1))
