"""docs/reasons/guarantees.md: one scenario for each of its sentences, and a check of the page.

Shows 31-3.1-CLEAN, 31-4.1-Q0, RT-AWAITREL, RT-AWAITREL-T, RT-MQUEUE, SIB-NOEXC and
MQTT-4.6-RM1 with the faults that make them interesting.
"""

import re
from pathlib import Path

import pytest

import umqtt31
from host_tests.sim import World, parse, script
from host_tests.sim.network import DeviceReset
from tools.project import ROOT

PAGE = ROOT / "docs" / "reasons" / "guarantees.md"
# The device resets between the CONNACK of a new session and its record.
UNRECORDED = r"CONNACK 0\n.*\n.*device resets"

# Settings of a script, faults, and the payloads that receivers see in order; then what the trace
# shows, behind "!" what it does not.
SEEN = (
    ("accepted_message_when_device_resets_offline_then_arrives",
     "up=12 start=offline store=log", "reset@up0", "0 1"),
    ("accepted_message_when_device_resets_offline_then_arrives",
     "up=12 start=offline store=journal", "reset@up0", "0 1"),
    ("qos2_when_everything_breaks_once_then_arrives_once", "up=222222 window=3",
     "close@up30 reset@up70 hang@down40 restart@up140 twice@answer9 late@answer12",
     "0 1 2 3 4 5"),
    # RT-SEQ: with a window of 2 receivers may see 1,2,3,2,3,4.
    ("qos1_when_window_is_lost_then_repeats_are_behind_first_appearances",
     "up=1111 window=2", "tear@down8", "0 1 0 1 2 3"),
    # The second call of the store is where connect() makes it durable.
    ("group_commit_when_device_resets_before_poll_then_message_is_not_yet_promised",
     "up=1 start=offline deferred=1", "reset@store1", ""),
    ("group_commit_when_device_resets_offline_after_a_failed_connect_then_message_arrives",
     "up=11 start=offline deferred=1", "refuse@open0 reset@up0", "0 1"),
    ("full_queue_when_refusing_then_nothing_accepted_is_given_up",
     "up=1111111111 start=offline queue=3 window=2", "", "0 1 2 3 4 5 6 7 8 9", "!gives up"),
    ("full_queue_when_dropping_oldest_then_what_is_in_flight_arrives_and_drops_are_told",
     "up=22222222 queue=2 window=2 overflow=drop_oldest", "", "0 1 6 7",
     r"(?s)gives up id 3 .*gives up id 4 .*gives up id 5 .*gives up id 6 "),
    ("ram_store_when_device_resets_then_its_messages_are_gone",
     "up=1 start=offline store=ram", "reset@up0", ""),
    ("clean_session_when_link_is_lost_then_qos2_may_arrive_twice",
     "up=2 sessions=cr", "close@down5", "0 0"),
    *(("message_too_old_when_offline_for_days_then_is_never_sent",
       "up=1111 age=5 start=offline", f"away@open0:{days * 86_400_000}", "0 2",
       r"client gives up id \d+ \(257\)") for days in (1, 7, 13, 20)),
    ("acknowledged_when_device_resets_at_once_then_qos1_comes_again_marked_dup",
     "up=11 window=1 store=journal", "reset@up25", "0 0 1", r"PUBLISH qos 1 id \d+ u b'0' DUP"),
    ("acknowledged_when_device_resets_at_once_then_qos2_only_sends_its_pubrel",
     "up=22 window=1 store=journal", "reset@up29", "0 1",
     r"client > PUBREL id \d+ DUP", r"!PUBLISH qos 2 id \d+ u b'0' DUP"),
    ("acknowledged_when_ordered_device_resets_at_once_then_nothing_is_repeated",
     "up=11 ordered=1 store=journal", "reset@up25", "0 1"),
    ("broker_without_its_session_then_qos2_may_arrive_twice", "up=2", "forget@down5", "0 0"),
    # It passes QoS 2 on at PUBREL, and this one reaches a broker that knows no such id.
    ("broker_without_its_session_when_it_waited_for_pubrel_then_that_message_is_lost",
     "up=2 late=1", "forget@up25", "", r"client > PUBREL id \d+ DUP"),
    ("broker_without_its_session_then_subscriptions_are_sent_again",
     "down=11 subscribe=1 spread_ms=50", "forget@up25", "",
     r"(?s)client > SUBSCRIBE.*client > SUBSCRIBE"),
    *(("new_session_when_device_resets_before_its_record_then_a_released_message_is_lost",
       f"up=2 late=1 level={level}", f"forget@up{at} reset@store29", "", UNRECORDED,
       r"(?s)device resets.*client > PUBREL id \d+", "!(?s)device resets.*client > PUBLISH")
      for level, at in ((4, 23), (5, 38))),
    *(("new_session_when_device_resets_before_its_record_then_what_went_out_carries_dup",
       f"up=1 level={level}", f"forget@up{at} reset@store25", "0", UNRECORDED,
       "client > PUBLISH qos 1 id 1 u b'0' DUP") for level, at in ((4, 15), (5, 29))),
)  # fmt: skip
# The same, of the payloads that the program on the device is handed.
HANDED = (
    ("burst_of_qos2_when_settings_are_the_default_then_all_come_on_one_connection",
     "down=" + "2" * 60 + " serve=60", "", " ".join(map(str, range(60))),
     "!opens connection 1"),
    ("reset_after_barrier_then_message_is_not_handed_over_again", "down=2", "reset@up17", "0"),
    ("handler_that_raises_then_message_comes_again_on_the_next_connection",
     "down=2", "raise@handler0", "0 0"),
    ("more_qos2_than_places_then_client_reconnects_and_gets_them_in_order",
     "down=22222 held=1 serve=3", "", "0 1 2 3 4", "opens connection 1"),
    ("broker_without_its_session_then_new_qos2_may_be_taken_for_a_repetition",
     "down=22 serve=1", "forget@down12", "0", "PUBLISH qos 2 id 1 d b'1'"),
    ("new_session_when_device_resets_before_its_record_then_new_qos2_may_be_a_repetition",
     "down=22 serve=1 level=4", "forget@up15 reset@store24", "0", UNRECORDED,
     "PUBLISH qos 2 id 1 d b'1'"),
)  # fmt: skip
# One fault at each of some places, or at all that the script passes: every message arrives.
ARRIVE = (
    # The window is full, so the last message waits while poll() makes it durable.
    ("group_commit_when_device_resets_after_poll_then_message_arrives",
     "up=111 window=1 deferred=1", "reset@up{}", (26,)),
    ("clean_session_when_link_is_lost_then_nothing_in_flight_is_lost",
     "up=22 window=2 late=1 sessions=cr", "close@up{}", "up"),
    ("clean_session_when_link_is_lost_then_nothing_in_flight_is_lost",
     "up=22 window=2 late=1 sessions=ck", "close@up{}", "up"),
    ("level_4_when_broker_lost_its_session_then_nothing_in_flight_is_lost",
     "up=22 down=22 window=2 late=1 level=4", "forget@up{}", "up"),
    ("broker_without_its_session_then_qos1_arrives_all_the_same",
     "up=111 window=3", "forget@up{}", range(17, 41)),
)  # fmt: skip
# The one message arrives once or never.
ONCE = (
    ("publish_when_device_resets_inside_then_message_is_there_whole_or_not_at_all",
     "up=2 store=journal", "reset@flash1:{}", range(8)),
    ("qos0_when_device_resets_after_it_may_have_gone_out_then_never_twice",
     "up=0 start=offline keep_qos0=1", "reset@up{}", range(17, 23)),
)  # fmt: skip


def run(settings, faults=""):
    """Run a script; the payloads passed on, and the world with its trace."""
    world = script.run(script.parse(settings), parse(faults), is_traced=True)
    assert len(world.struck) == len(parse(faults))
    return [payload.decode() for _, payload in world.delivered], world


def places(settings, place):
    """-> the numbers of the places that the script passes without a fault."""
    return range(script.run(script.parse(settings)).places()[place])


def handed_over(world):
    return re.findall(r"program is handed b'([^']*)'", "\n".join(world.trace))


@pytest.mark.parametrize("row", [*SEEN, *HANDED], ids=lambda row: row[0])
def test_scenario_of_the_page(row):
    _, settings, faults, expected, *patterns = row
    seen, world = run(settings, faults)
    assert (handed_over(world) if row in HANDED else seen) == expected.split()
    for pattern in patterns:
        is_there = bool(re.search(pattern.removeprefix("!"), "\n".join(world.trace)))
        assert is_there != pattern.startswith("!"), pattern


@pytest.mark.parametrize("row", [*ARRIVE, *ONCE], ids=lambda row: row[0])
def test_scenario_of_the_page_at_each_place(row):
    _, settings, fault, where = row
    for at in places(settings, where) if isinstance(where, str) else where:
        seen, _ = run(settings, fault.format(at))
        if row in ONCE:
            assert seen in ([], ["0"])
        else:
            assert set(seen) == {str(n) for n in range(len(script.parse(settings).up))}


def test_ordered_when_device_resets_anywhere_then_only_the_last_is_repeated():
    settings = "up=1111 start=offline ordered=1"
    for at in places(settings, "up"):
        seen, _ = run(settings, f"reset@up{at}")
        assert seen == sorted(seen) and len(seen) <= 5


def test_clean_session_when_connecting_then_in_flight_is_given_up_and_told():
    dropped = []

    def program(device):
        client = device.client("node")
        client.on_drop = lambda packet_id, reason: dropped.append((packet_id, reason))
        device.connect(client)
        first = client.publish(b"u", b"1", qos=1)
        device.connect(client, clean_session=True)
        second = client.publish(b"u", b"2", qos=1)
        while client.inflight:
            client.poll()
            device.wait(client)
        assert dropped == [(first, umqtt31.CLOSED)]
        assert second != first

    World().run(program)


def test_ram_store_when_device_resets_then_its_old_ids_are_not_used_for_new_messages():
    settings = "up=2222 window=1 pace=1 store=ram late=1"
    for at in places(settings, "up"):
        run(settings, f"reset@up{at}")


def test_given_up_when_device_resets_at_once_then_it_may_come_all_the_same():
    def program(device):
        client = device.client("node", overflow="refuse")
        client.on_drop = lambda packet_id, reason: dropped.append(reason)
        if not dropped:
            client.publish(b"u", b"1", qos=1, max_age=1)
            client.publish(b"u", b"2", qos=1)
            device.sleep_ms(2000)
            with pytest.raises(umqtt31.MQTTError):
                client.poll()
            assert dropped == [umqtt31.TIMEOUT]
            raise DeviceReset
        device.connect(client)
        while client.inflight:
            client.poll()
            device.wait(client)

    dropped = []
    world = World()
    world.run(program)
    assert [payload for _, payload in world.delivered] == [b"1", b"2"]


def test_reset_between_handler_and_barrier_then_message_is_handed_over_again():
    worlds = [run("down=2", f"reset@store{at}")[1] for at in places("down=2", "store")]
    again = [world for world in worlds if handed_over(world) == ["0", "0"]]
    assert 1 <= len(again) <= 3
    assert "PUBLISH qos 2 id 1 d b'0' DUP" in "\n".join(again[0].trace)


def test_more_qos2_than_places_when_broker_forgot_session_then_they_come_after_the_time_out():
    settings = "down=222222 held=1 serve=2 await_rel=300"
    ends_ms = [run(settings, f"forget@down{at}")[1].now for at in places(settings, "down")]
    # In some the id that nobody releases any more is in the way until it times out.
    assert 300_000 < max(ends_ms) < 400_000


def test_new_session_when_device_resets_before_its_record_then_places_come_with_time():
    settings = "down=222222 held=1 serve=2 level=5 await_rel=300"
    _, world = run(settings, "forget@up37 reset@store32")
    assert re.search(UNRECORDED, "\n".join(world.trace))
    assert sorted(set(handed_over(world))) == list("012345")
    assert 300_000 < world.now < 400_000


def test_page_when_it_names_a_test_then_there_is_one():
    names = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert len(names) > 20
    paths = [*(ROOT / "host_tests").rglob("*.py"), *(ROOT / "host_tests").rglob("*.txt")]
    sources = "\n".join(path.read_text() for path in paths)
    # Scripts and rows of tables, too.
    known = set(re.findall(r'^(?:def test_| +[*(]+")?(\w+)', sources, re.MULTILINE))
    missing = {name for name in names if name.removeprefix("test_") not in known}
    assert not missing


def test_page_when_it_makes_a_promise_then_it_names_a_test():
    """Rows of the tables and points of the lists, but not the terms of the promises."""
    text = PAGE.read_text().partition("## From the device")[2].partition("## How far")[0]
    rows = re.findall(r"^\| (?!promise).*$", text, re.M)
    points = re.findall(r"^- (?:.|\n(?![-\n#]))*", text, re.M)
    assert len(rows) >= 15 and len(points) >= 12
    assert not [one for one in rows + points if "`test_" not in one]


def test_page_when_tests_of_this_file_show_a_sentence_then_it_names_them():
    own = set(re.findall(r"^def test_(\w+)\(", Path(__file__).read_text(), re.M))
    own |= {row[0] for row in (*SEEN, *HANDED, *ARRIVE, *ONCE)}
    named = set(re.findall(r"`test_(\w+)`", PAGE.read_text()))
    assert {name for name in own if not re.match("page_|scenario_of_the_page", name)} <= named
