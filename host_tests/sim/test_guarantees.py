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


def run(settings, faults=""):
    """Run a script; the payloads passed on, and the world with its trace."""
    world = script.run(script.parse(settings), parse(faults), is_traced=True)
    assert len(world.struck) == len(parse(faults))
    return [payload.decode() for _, payload in world.delivered], world


def handed_over(world):
    """What the program was handed, in order."""
    return re.findall(r"program is handed b'([^']*)'", "\n".join(world.trace))


def happened(world, pattern):
    """Did a line of the trace match?"""
    return any(re.search(pattern, line) for line in world.trace)


# --- from the device ---------------------------------------------------------------------


@pytest.mark.parametrize("store", ["log", "journal"])
def test_accepted_message_when_device_resets_offline_then_arrives(store):
    # Power goes when the first byte of the first CONNECT is to leave.
    seen, _ = run(f"up=12 start=offline store={store}", "reset@up0")
    assert seen == ["0", "1"]


def test_publish_when_device_resets_inside_then_message_is_there_whole_or_not_at_all():
    for mode in range(8):
        seen, _ = run("up=2 store=journal", f"reset@flash1:{mode}")
        assert seen in ([], ["0"])


def test_qos2_when_everything_breaks_once_then_arrives_once():
    faults = "close@up30 reset@up70 hang@down40 restart@up140 twice@answer9 late@answer12"
    seen, _ = run("up=222222 window=3", faults)
    assert seen == list("012345")


def test_qos1_when_window_is_lost_then_repeats_are_behind_first_appearances():
    """RT-SEQ: with a window of 2 receivers may see 1,2,3,2,3,4."""
    seen, _ = run("up=1111 window=2", "tear@down8")
    assert seen == ["0", "1", "0", "1", "2", "3"]


def test_ordered_when_device_resets_anywhere_then_only_the_last_is_repeated():
    item = script.parse("up=1111 start=offline ordered=1")
    for at in range(script.run(item).places()["up"]):
        world = script.run(item, parse(f"reset@up{at}"))
        numbers = [int(payload) for _, payload in world.delivered]
        assert numbers == sorted(numbers)
        assert len(numbers) <= 5


def test_qos0_when_device_resets_after_it_may_have_gone_out_then_never_twice():
    for at in range(17, 23):
        seen, _ = run("up=0 start=offline keep_qos0=1", f"reset@up{at}")
        assert seen in ([], ["0"])


def test_ram_store_when_device_resets_then_its_messages_are_gone():
    def program(device):
        client = device.client("node", store=None)
        if not booted:
            booted.append(True)
            client.publish(b"u", b"1", qos=1)
        device.connect(client)
        assert client.queued == client.inflight == 0

    booted = []
    world = World(faults=parse("reset@up0"))
    world.device.store_kind = "ram"
    world.run(program)
    assert booted and not world.delivered


def test_group_commit_when_device_resets_before_poll_then_message_is_not_yet_promised():
    # The second call of the store is where connect() makes it durable.
    seen, _ = run("up=1 start=offline deferred=1", "reset@store1")
    assert seen == []


def test_group_commit_when_device_resets_offline_after_a_failed_connect_then_message_arrives():
    seen, _ = run("up=11 start=offline deferred=1", "refuse@open0 reset@up0")
    assert seen == ["0", "1"]


def test_group_commit_when_device_resets_after_poll_then_message_arrives():
    # The window is full, so the last message waits while poll() makes it durable.
    seen, _ = run("up=111 window=1 deferred=1", "reset@up26")
    assert set(seen) == {"0", "1", "2"}


def test_full_queue_when_refusing_then_nothing_accepted_is_given_up():
    seen, world = run("up=1111111111 start=offline queue=3 window=2")
    assert seen == [str(n) for n in range(10)]
    assert "gives up" not in "\n".join(world.trace)


def test_full_queue_when_dropping_oldest_then_what_is_in_flight_arrives_and_drops_are_told():
    seen, world = run("up=22222222 queue=2 window=2 overflow=drop_oldest")
    told = len(re.findall("gives up", "\n".join(world.trace)))
    assert told > 0
    assert len(seen) == 8 - told
    assert seen[:2] == ["0", "1"] and seen[-2:] == ["6", "7"]


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


@pytest.mark.parametrize("sessions", ["cr", "ck"])
def test_clean_session_when_link_is_lost_then_nothing_in_flight_is_lost(sessions):
    item = script.parse(f"up=22 window=2 late=1 sessions={sessions}")
    for at in range(script.run(item).places()["up"]):
        world = script.run(item, parse(f"close@up{at}"))
        assert {payload for _, payload in world.delivered} == {b"0", b"1"}


def test_clean_session_when_link_is_lost_then_qos2_may_arrive_twice():
    seen, _ = run("up=2 sessions=cr", "close@down5")
    assert seen == ["0", "0"]


def test_message_too_old_when_offline_for_days_then_is_never_sent():
    for days in (1, 7, 13, 20):
        faults = f"away@open0:{days * 86_400_000}"
        seen, world = run("up=1111 age=5 start=offline", faults)
        assert seen == ["0", "2"]
        assert happened(world, r"client gives up id \d+ \(257\)")


def test_ram_store_when_device_resets_then_its_old_ids_are_not_used_for_new_messages():
    item = script.parse("up=2222 window=1 pace=1 store=ram late=1")
    for at in range(script.run(item).places()["up"]):
        script.run(item, parse(f"reset@up{at}"))


def test_level_4_when_broker_lost_its_session_then_nothing_in_flight_is_lost():
    item = script.parse("up=22 down=22 window=2 late=1 level=4")
    for at in range(script.run(item).places()["up"]):
        world = script.run(item, parse(f"forget@up{at}"))
        assert {payload for _, payload in world.delivered} == {b"0", b"1"}


def test_burst_of_qos2_when_settings_are_the_default_then_all_come_on_one_connection():
    _, world = run("down=" + "2" * 60 + " serve=60")
    assert handed_over(world) == [str(number) for number in range(60)]
    assert world.links == 1


def test_acknowledged_when_device_resets_at_once_then_qos1_comes_again_marked_dup():
    seen, world = run("up=11 window=1 store=journal", "reset@up25")
    assert seen == ["0", "0", "1"]
    assert happened(world, r"PUBLISH qos 1 id \d+ u b'0' DUP")


def test_acknowledged_when_device_resets_at_once_then_qos2_only_sends_its_pubrel():
    seen, world = run("up=22 window=1 store=journal", "reset@up29")
    assert seen == ["0", "1"]
    assert happened(world, r"client > PUBREL id \d+ DUP")
    assert not happened(world, r"PUBLISH qos 2 id \d+ u b'0' DUP")


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


def test_acknowledged_when_ordered_device_resets_at_once_then_nothing_is_repeated():
    seen, _ = run("up=11 ordered=1 store=journal", "reset@up25")
    assert seen == ["0", "1"]


# --- to the device -----------------------------------------------------------------------


def test_reset_between_handler_and_barrier_then_message_is_handed_over_again():
    calls = script.run(script.parse("down=2")).places()["store"]
    worlds = [run("down=2", f"reset@store{at}")[1] for at in range(calls)]
    again = [world for world in worlds if handed_over(world) == ["0", "0"]]
    assert 1 <= len(again) <= 3
    assert happened(again[0], r"PUBLISH qos 2 id 1 d b'0' DUP")


def test_reset_after_barrier_then_message_is_not_handed_over_again():
    _, world = run("down=2", "reset@up17")
    assert handed_over(world) == ["0"]


def test_handler_that_raises_then_message_comes_again_on_the_next_connection():
    _, world = run("down=2", "raise@handler0")
    assert handed_over(world) == ["0", "0"]


def test_more_qos2_than_places_then_client_reconnects_and_gets_them_in_order():
    _, world = run("down=22222 held=1 serve=3")
    assert handed_over(world) == list("01234")
    assert world.links > 1


def test_more_qos2_than_places_when_broker_forgot_session_then_they_come_after_the_time_out():
    item = script.parse("down=222222 held=1 serve=2 await_rel=300")
    ends_ms = [
        script.run(item, parse(f"forget@down{at}")).now
        for at in range(script.run(item).places()["down"])
    ]
    # In some the id that nobody releases any more is in the way until it times out.
    assert 300_000 < max(ends_ms) < 400_000


def test_broker_without_its_session_then_new_qos2_may_be_taken_for_a_repetition():
    _, world = run("down=22 serve=1", "forget@down12")
    assert handed_over(world) == ["0"]
    assert "PUBLISH qos 2 id 1 d b'1'" in "\n".join(world.trace)


# --- a broker that loses its session -----------------------------------------------------


def is_unrecorded(world):
    """Did the device reset between the CONNACK of a new session and its record?"""
    return re.search(r"CONNACK 0\n.*\n.*device resets", "\n".join(world.trace)) is not None


def test_broker_without_its_session_then_qos1_arrives_all_the_same():
    for at in range(17, 41):
        seen, _ = run("up=111 window=3", f"forget@up{at}")
        assert set(seen) == {"0", "1", "2"}


def test_broker_without_its_session_then_qos2_may_arrive_twice():
    seen, _ = run("up=2", "forget@down5")
    assert seen == ["0", "0"]


def test_broker_without_its_session_when_it_waited_for_pubrel_then_that_message_is_lost():
    # It passes QoS 2 on at PUBREL, and this one reaches a broker that knows no such id.
    seen, world = run("up=2 late=1", "forget@up25")
    assert seen == []
    assert happened(world, r"client > PUBREL id \d+ DUP")


def test_broker_without_its_session_then_subscriptions_are_sent_again():
    _, world = run("down=11 subscribe=1 spread_ms=50", "forget@up25")
    trace = "\n".join(world.trace)
    assert trace.count("client > SUBSCRIBE") >= 2


@pytest.mark.parametrize(("level", "at"), [(4, 23), (5, 38)])
def test_new_session_when_device_resets_before_its_record_then_a_released_message_is_lost(
    level, at
):
    seen, world = run(f"up=2 late=1 level={level}", f"forget@up{at} reset@store29")
    assert seen == [] and is_unrecorded(world)
    lines = "\n".join(world.trace).partition("device resets")[2]
    assert re.search(r"client > PUBREL id \d+", lines) and "client > PUBLISH" not in lines


def test_new_session_when_device_resets_before_its_record_then_new_qos2_may_be_a_repetition():
    _, world = run("down=22 serve=1 level=4", "forget@up15 reset@store24")
    assert handed_over(world) == ["0"] and is_unrecorded(world)
    assert "PUBLISH qos 2 id 1 d b'1'" in "\n".join(world.trace)


@pytest.mark.parametrize(("level", "at"), [(4, 15), (5, 29)])
def test_new_session_when_device_resets_before_its_record_then_what_went_out_carries_dup(
    level, at
):
    _, world = run(f"up=1 level={level}", f"forget@up{at} reset@store25")
    assert is_unrecorded(world)
    assert happened(world, r"client > PUBLISH qos 1 id 1 u b'0' DUP")


def test_new_session_when_device_resets_before_its_record_then_places_come_with_time():
    settings = "down=222222 held=1 serve=2 level=5 await_rel=300"
    _, world = run(settings, "forget@up37 reset@store32")
    assert is_unrecorded(world)
    assert sorted(set(handed_over(world))) == list("012345")
    assert 300_000 < world.now < 400_000


# --- the page ----------------------------------------------------------------------------


def test_page_when_it_names_a_test_then_there_is_one():
    names = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert len(names) > 20
    paths = [*(ROOT / "host_tests").rglob("*.py"), *(ROOT / "host_tests").rglob("*.txt")]
    sources = "\n".join(path.read_text() for path in paths)
    known = set(re.findall(r"^(?:def test_)?(\w+)", sources, re.MULTILINE))  # scripts, too
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
    own = set(re.findall(r"^def (test_\w+)\(", Path(__file__).read_text(), re.M))
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert {name for name in own if not name.startswith("test_page_")} <= named
