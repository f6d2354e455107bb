"""Rules that were once unjust or blind: what they let pass, and what just beyond they do not.

Shows RT-INFLIGHT and 31-3.5-PUBREC for these schedules.
"""

import pytest

import umqtt31 as core
from host_tests.sim import campaign, parse, script
from host_tests.sim.wrong_clients import make_mistake
from umqtt31 import queueing

SECRET = "up=2222 down=2222 window=2 held=1 level=5 sessions=ckr", "tear@down72 hang@down72"
UNRECORDED = "up=2222222 down=22 window=3 pace=2 latency_ms=3 store=journal blocks=6"
BAD_BLOCK = ("up=121212121212 window=2 start=offline size=20 grow=14 buffer=250 store=journal"
             " blocks=5 overflow=latest")  # fmt: skip

LAWFUL = (
    # A PUBREL that was on its way when its PUBCOMP came takes no place any more.
    ("up=22222 down=222 window=3", "reset@store23:2 stall@down56 stall@down76"),
    # A connection whose stream takes nothing for 10 s may be closed: ping() in a hook waits while
    # the broker reads nothing, as the client reads nothing meanwhile.
    ("up=122211 down=1112 window=3 queue=1 size=130 inside=ping pressure=150 overflow=latest", ""),
    # A message of QoS 0 whose publish() raises for the journal did not go out.
    ("up=10 window=1 store=journal deferred=1", "fail@flash0:9"),
    # The handler raises where disconnect() raises for the journal, too.
    ("up=22222 down=22 window=6 queue=1 pace=2 spread_ms=5 size=40 buffer=100 serve=2"
     " latency_ms=20 sessions=kr inside=flush store=journal keep_qos0=1 seed=408",
     "raise@handler1 hang@up219 fail@load10:40 fail@load35"),
    # At level 5 a CONNECT that was under way for long made another session.
    SECRET,
    ("up=1 down=222222 window=1 held=1 level=5 sessions=crk",
     "restart@up91 restart@down5 hang@down62"),
    # The age of a message begins when it is accepted, behind a hook that takes its time.
    ("up=2122 down=21 window=3 queue=0 size=130 buffer=100 age=3 inside=ping"
     " pressure=150 overflow=latest", ""),
    # Nobody knows which messages of QoS 0 the reset took, and so not which are given up later.
    ("up=0002002000 window=1 queue=2 start=offline size=40 buffer=300 age=3 reboot=1"
     " store=journal deferred=1 keep_qos0=1 overflow=drop_oldest", "hang@down0 fail@flash0:9"),
    (UNRECORDED, "fail@load10:40"),
    # QoS 0 that is given up is none that went out before a new session.
    ("up=2020 window=1 sessions=cr age=3 keep_qos0=1", "hang@up34 tear@up17"),
    # A session may have ended with a CONNECT that nobody answered.
    ("up=21211 window=1 queue=2 pace=1 sessions=crk overflow=drop_oldest", "forget@up17"),
    ("up=2 window=1 level=5 expiry=5 sessions=cr", "reset@store15:2 restart@up29"),
    # PUBREC that came again behind its PUBREL, and that of another between.
    ("up=1122 window=3 start=offline pace=1 narrow=1", "jump@turn2"),
)  # fmt: skip


def broken_rule(settings, schedule=""):
    """-> the rule that the run breaks, None if it breaks none."""
    failure, _ = campaign.attempt(script.parse(settings), parse(schedule))
    return failure and failure.rule


@pytest.mark.parametrize(("settings", "schedule"), LAWFUL)
def test_schedule_breaks_no_rule(settings, schedule):
    assert broken_rule(settings, schedule) is None


RIGHT = "    ring[at] = 0\n"
PUBREL_AGAIN = core, "on_ack", RIGHT, RIGHT + "    owe(client, _PUBREL, packet_id)\n"
WRONG = (
    ("31-3.5-PUBREC", "up=22 level=4", "", *PUBREL_AGAIN),
    ("31-3.5-PUBREC", "up=22 level=4", "reset@store14", *PUBREL_AGAIN),
    ("31-3.5-PUBREC", "up=22 level=4", "reset@store15", *PUBREL_AGAIN),
    ("termination", *SECRET,
     core, "hold", "held[k + 2] = now", "held[k + 2] = ticks_add(now, 1 << 28)"),
    ("max_age", "up=000 queue=3 start=offline age=3 keep_qos0=1 sessions=r", "away@open0",
     queueing, "extend", "return not self._age_in() and", "return False and"),
    ("31-4.1-Q2", UNRECORDED, "fail@load30:1",
     core, "on_ack", "ring[at] = _OWED", "ring[at] = _PUBREC | _AGAIN"),
    ("overflow", "up=02 start=offline keep_qos0=1 sessions=c retry=0", "tear@up30",
     core, "_fetch", "0 if state == _PUBLISH else state & ~_AGAIN", "state"),
)  # fmt: skip


@pytest.mark.parametrize("row", WRONG, ids=lambda row: f"{row[0]}-{row[2]}")
def test_what_is_just_beyond_is_noticed(row, monkeypatch):
    rule, settings, schedule, *mistake = row
    make_mistake(monkeypatch, *mistake)
    assert broken_rule(settings, schedule) == rule


@pytest.mark.parametrize("schedule", ["fail@flash12:8", "fail@load25:6"])
def test_message_that_waits_may_be_given_up_in_vain_where_a_block_went_bad(schedule):
    assert broken_rule(BAD_BLOCK, schedule) is None
