"""Rules that were once unjust or blind: what they let pass, and what just beyond they do not.

Shows RT-INFLIGHT and 31-3.5-PUBREC for these schedules.
"""

import pytest
from umqtt31.held import Held
from umqtt31.protocol import Protocol

from host_tests.sim import campaign, parse, script
from umqtt31 import Journal, MQTTClient

# ping() in a hook waits while the broker reads nothing, as the client reads nothing meanwhile.
STUCK = "up=122211 down=1112 window=3 queue=1 size=130 inside=ping pressure=150 overflow=latest"

# Nobody knows which messages of QoS 0 the reset took, and so not which are given up later.
OLD_QOS0 = (
    "up=0002002000 window=1 queue=2 start=offline size=40 buffer=300 age=3 reboot=1 "
    "store=journal deferred=1 keep_qos0=1 overflow=drop_oldest",
    "hang@down0 fail@flash0:9",
)

PUBREL = 0x62
PUBCOMP = 0x70


def broken_rule(settings, schedule=""):
    """-> the rule that the run breaks, None if it breaks none."""
    failure, _ = campaign.attempt(script.parse(settings), parse(schedule))
    return failure and failure.rule


def test_pubrel_on_its_way_when_its_pubcomp_comes_then_its_message_takes_no_place_any_more():
    schedule = "reset@store23:2 stall@down56 stall@down76"
    assert broken_rule("up=22222 down=222 window=3", schedule) is None


def test_pubrel_behind_its_pubcomp_when_a_reset_was_behind_its_pubrec_then_is_noticed(monkeypatch):
    received = Protocol.received

    def released_again(protocol, n):
        head = bytes(protocol._head[:4])
        event = received(protocol, n)
        if n == 4 and head[0] == PUBCOMP:
            protocol._answer(PUBREL, head[2] << 8 | head[3])
        return event

    monkeypatch.setattr(Protocol, "received", released_again)
    for schedule in ("", "reset@store14", "reset@store15"):
        assert broken_rule("up=22 level=4", schedule) == "31-3.5-PUBREC", schedule


def test_connection_whose_stream_takes_nothing_for_10_s_may_be_closed():
    assert broken_rule(STUCK) is None


@pytest.mark.parametrize("timeout_ms", [1000, 2000])
def test_connection_whose_stream_takes_nothing_for_less_when_closed_then_is_noticed(
    timeout_ms, monkeypatch
):
    begin = Protocol.begin

    def hasty(protocol, *args):
        begin(protocol, *args)
        protocol.timeout_ms = timeout_ms

    monkeypatch.setattr(Protocol, "begin", hasty)
    assert broken_rule(STUCK) == "connection"


def test_message_of_qos0_whose_publish_raises_for_the_journal_did_not_go_out(monkeypatch):
    schedule = "up=10 window=1 store=journal deferred=1", "fail@flash0:9"
    assert broken_rule(*schedule) is None

    monkeypatch.setattr(MQTTClient, "_push_answers", MQTTClient._push)
    assert broken_rule(*schedule) == "publish"


def test_message_that_waits_may_be_given_up_in_vain_where_a_block_went_bad(monkeypatch):
    settings = "up=121212121212 window=2 start=offline size=20 grow=14 buffer=250 store=journal"
    settings += " blocks=5 overflow=latest"
    for schedule in ("fail@flash12:8", "fail@load25:6"):
        assert broken_rule(settings, schedule) is None
        with monkeypatch.context() as blind:
            blind.setattr(Journal, "bad_blocks", lambda journal: 0)
            assert broken_rule(settings, schedule) == "RT-MQUEUE"


def test_program_whose_handler_raises_goes_on_where_disconnect_raises_for_the_journal():
    settings = "up=22222 down=22 window=6 queue=1 pace=2 spread_ms=5 size=40 buffer=100 serve=2"
    settings += " latency_ms=20 sessions=kr inside=flush store=journal keep_qos0=1 seed=408"
    schedule = "raise@handler1 hang@up219 fail@load10:40 fail@load35"
    assert broken_rule(settings, schedule) is None


def test_place_that_is_held_by_a_session_that_ended_in_secret_may_come_with_time():
    """At level 5 a CONNECT that was under way for long made another session."""
    settings = "up=2222 down=2222 window=2 held=1 level=5 sessions=ckr"
    assert broken_rule(settings, "tear@down72 hang@down72") is None
    settings = "up=1 down=222222 window=1 held=1 level=5 sessions=crk"
    assert broken_rule(settings, "restart@up91 restart@down5 hang@down62") is None


def test_place_that_is_held_by_a_session_that_ended_in_secret_for_ever_is_noticed(monkeypatch):
    monkeypatch.setattr(Held, "expires_in", lambda held, now, held_ms: 86_400_000)
    settings = "up=2222 down=2222 window=2 held=1 level=5 sessions=ckr"
    assert broken_rule(settings, "tear@down72 hang@down72") == "termination"


def test_age_of_a_message_begins_when_it_is_accepted_behind_a_hook_that_takes_its_time():
    settings = "up=2122 down=21 window=3 queue=0 size=130 buffer=100 age=3 inside=ping"
    assert broken_rule(settings + " pressure=150 overflow=latest") is None


def test_message_of_qos0_too_old_may_be_the_one_that_was_given_up_for_one_that_a_reset_took():
    assert broken_rule(*OLD_QOS0) is None


def test_message_of_qos0_too_old_that_is_sent_behind_a_reset_is_noticed(monkeypatch):
    find_expired = Protocol.find_expired

    def keeps_one(protocol, now):
        k = find_expired(protocol, now)
        if k < 0 or protocol._ids[protocol._slot(k & 65535)] or k >> 16:
            return k
        return -1

    monkeypatch.setattr(Protocol, "find_expired", keeps_one)
    assert broken_rule(*OLD_QOS0) == "max_age"


def test_pubrec_that_the_journal_could_not_record_may_be_asked_for_again():
    settings = "up=2222222 down=22 window=3 pace=2 latency_ms=3 store=journal blocks=6"
    assert broken_rule(settings, "fail@load10:40") is None


def test_pubrec_that_the_journal_recorded_and_is_asked_for_again_is_noticed(monkeypatch):
    monkeypatch.setattr(Protocol, "_owe", lambda protocol, slot: None)
    monkeypatch.setattr(Protocol, "_on_first_pubrec", Protocol._on_pubrec)
    settings = "up=2222222 down=22 window=3 pace=2 latency_ms=3 store=journal blocks=6"
    assert broken_rule(settings, "fail@load30:1") == "31-4.1-Q2"


def test_message_of_qos0_that_is_given_up_is_none_that_went_out_before_a_new_session():
    settings = "up=2020 window=1 sessions=cr age=3 keep_qos0=1"
    assert broken_rule(settings, "hang@up34 tear@up17") is None


def test_message_of_qos0_when_sent_again_in_a_new_session_then_is_noticed(monkeypatch):
    remove = Protocol.remove

    def keeps_qos0(protocol, k):
        waits_for = protocol._waits[protocol._slot(k)] & 0x70
        return remove(protocol, k) if waits_for else 0

    monkeypatch.setattr(Protocol, "remove", keeps_qos0)
    settings = "up=02 start=offline keep_qos0=1 sessions=c retry=0"
    assert broken_rule(settings, "tear@up30") == "31-4.1-Q0"
