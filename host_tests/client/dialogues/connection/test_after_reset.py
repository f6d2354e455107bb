"""What a new life makes of the one before: in flight, released, ids, order.

MQTT 3.1 §4; a KeepingStore stands in for the journal.
"""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    PUBLISH,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    read_id,
    read_publish,
)
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, PROTOCOL, MQTTError

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = ("test_c2b_released_before_a_reset_then_only_its_pubrel_goes_out_marked_dup",)


def test_c2b_what_was_in_flight_before_a_reset_is_in_flight_and_not_given_up():
    """RT-MQUEUE: a policy gives up what waits, also after a reset.

    C: PUBLISH 1, 2; reset; publish 3, 4, 5 offline, drop_oldest, room for 2
    CONNECT; C: PUBLISH 1 DUP, 2 DUP; B: PUBACK 1, 2; C: PUBLISH 4, 5
    """
    store = KeepingStore()
    options = {"max_inflight": 2, "max_mqueue_len": 2, "overflow": "drop_oldest"}
    d = Dialogue(store=store, clean=False, **options)
    d.publish(b"1")
    d.publish(b"2", 2)
    again = Dialogue(store=store, is_connected=False, **options)
    assert (again.client.inflight, again.client.queued) == (2, 0)
    dropped = again.watch_drops()
    store.last_id = 2
    ids = [again.publish(b"%d" % number) for number in (3, 4, 5)]
    assert dropped == [(ids[0], FULL)]
    again.connect(False)
    again.c2b(publish(b"t", b"1", 1, 1, dup=1), publish(b"t", b"2", 2, 2, dup=1))
    again.b2c(puback(1))
    again.c2b(publish(b"t", b"4", 1, ids[1]))
    again.b2c(pubrec(2))
    again.b2c(pubcomp(2))
    again.c2b(pubrel(2), publish(b"t", b"5", 1, ids[2]))


def test_b2c_malformed_answers_are_none_to_what_was_in_flight_before_a_reset():
    """Packets that no broker sends, as long as an answer."""
    for qos, firsts in ((1, b"\x44\xc0\xc4"), (2, b"\x54\xd0\xd4")):
        for first in firsts:
            store = KeepingStore()
            d = Dialogue(store=store, clean=False)
            d.publish(b"1", qos)
            again = Dialogue(store=store, is_connected=False)
            again.connect(False)
            again.c2b(publish(b"t", b"1", qos, 1, dup=1))
            again.stream.feed(bytes((first, 2, 0, 1)))
            try:
                again.work()
            except MQTTError as error:
                assert error.code == PROTOCOL
            assert again.client.inflight == 1
            assert b"\x62" not in again.stream.take()


def test_c2b_what_was_only_queued_before_a_reset_waits():
    """RT-INFLIGHT: nothing is in flight before it was sent."""
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False)
    d.publish(b"1")
    d.publish(b"2")
    again = Dialogue(store=store, is_connected=False)
    assert (again.client.inflight, again.client.queued) == (0, 2)


def test_c2b_more_than_the_window_maybe_sent_then_only_the_window_is_in_flight():
    """RT-INFLIGHT: a window that is smaller in the new life holds."""
    store = KeepingStore()
    d = Dialogue(store=store, clean=False, max_inflight=3)
    for number in range(3):
        d.publish(b"%d" % number)
    again = Dialogue(store=store, is_connected=False, max_inflight=2)
    assert (again.client.inflight, again.client.queued) == (2, 1)
    again.connect(False)
    again.c2b(*[publish(b"t", b"%d" % k, 1, k + 1, dup=1) for k in (0, 1)])


def test_c2b_released_before_a_reset_then_only_its_pubrel_goes_out_marked_dup():
    """31-3.6-PUBREL, MQTT-4.3.3-6: PUBREL, never PUBLISH again, and DUP as it may be the second.

    C: PUBLISH 1, 2; B: PUBREC 1; C: PUBREL 1; reset; CONNECT
    C: PUBREL 1 DUP, PUBLISH 2 DUP
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False)
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    d.b2c(pubrec(1))
    again = Dialogue(store=store, clean=False)
    assert (again.client.inflight, again.client.queued) == (2, 0)
    sent = again.stream.take()
    assert sorted((sent[:4], sent[4:])) == sorted(
        (pubrel(1, dup=1), publish(b"t", b"2", 2, 2, dup=1))
    )
    again.b2c(pubcomp(1), pubrec(2))
    again.b2c(pubcomp(2))
    assert again.client.inflight == 0 and not store.kept


def test_ordered_reset_while_pubcomp_is_awaited_then_its_qos_still_counts():
    """SIB-RELIABILITY: the one in flight says which QoS is in use.

    C: PUBLISH QoS 2 id 1; B: PUBREC; C: PUBREL; reset; QoS 1 is refused, QoS 2 waits
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False, ordered=True)
    d.publish(b"1", 2)
    d.b2c(pubrec(1))
    store.last_id = 1
    again = Dialogue(store=store, is_connected=False, ordered=True)
    assert isinstance(error_of(again.publish, b"2", 1), ValueError)
    assert again.publish(b"2", 2) == 2


def test_clean_session_after_a_reset_gives_up_the_old_and_keeps_the_new():
    """31-3.1-CLEAN: what this life accepted and never sent stays queued.

    publish 1 and 2 offline; reset; publish 3 offline; clean CONNECT; C: PUBLISH 3
    """
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False)
    d.publish(b"1")
    d.publish(b"2", 2)
    store.last_id = 2
    again = Dialogue(store=store, is_connected=False)
    again.publish(b"3")
    again.connect()
    again.c2b(publish(b"t", b"3", 1, 3))
    assert again.client.stats.dropped == 2


def test_ids_after_a_reset_go_on_behind_the_last_and_round_again():
    """31-2.4-ID: 65535 is followed by 1, and only ids in use are passed over."""
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False)
    assert [d.publish(b"%d" % number) for number in range(3)] == [1, 2, 3]
    del store.kept[1]
    store.last_id = 65533
    again = Dialogue(store=store, is_connected=False)
    assert [again.publish(b"x") for _ in range(5)] == [65534, 65535, 2, 4, 5]


def test_ids_after_a_reset_when_the_last_was_65535_then_1():
    store = KeepingStore()
    store.last_id = 65535
    d = Dialogue(store=store, is_connected=False)
    assert [d.publish(b"x") for _ in range(2)] == [1, 2]


def test_held_ids_of_an_earlier_life_are_released_in_any_order():
    """MQTT-4.3.3-12, RT-AWAITREL-T: and forgotten when they are too old."""
    store = KeepingStore()
    store.held = [7, 8, 9]
    d = Dialogue(store=store, clean=False, await_rel_timeout=300, keepalive=0)
    d.b2c(pubrel(8))
    assert store.held == [7, 9]
    d.b2c(publish(b"t", b"9", 2, 9, dup=1), publish(b"t", b"8", 2, 8))
    assert [message[1] for message in d.messages] == [b"8"]
    d.wait(301)
    assert store.held == []
    d.b2c(publish(b"t", b"new", 2, 9))
    assert [message[1] for message in d.messages] == [b"8", b"new"]


def test_latest_with_long_topics_replaces_just_the_same_one():
    """RT-MQUEUE: topics of more than 255 bytes that differ in one byte, or in length."""
    topic = b"a/" + b"x" * 300
    d = Dialogue(is_connected=False, buffer_size=400, max_mqueue_len=3, overflow="latest")
    d.publish(b"1", topic=topic)
    d.publish(b"2", topic=topic[:-1] + b"y")
    d.publish(b"3", topic=topic[: len(topic) - 256])
    d.publish(b"4", topic=topic)
    assert d.client.stats.dropped == 1
    d.connect(False)
    sent = d.stream.take()
    places = [
        sent.index(publish(topic, payload, 1, packet_id))
        for topic, payload, packet_id in (
            (topic[:-1] + b"y", b"2", 2),
            (topic[: len(topic) - 256], b"3", 3),
            (topic, b"4", 4),
        )
    ]
    assert places == sorted(places)
    assert publish(topic, b"1", 1, 1) not in sent


def test_latest_without_the_same_topic_refuses_and_changes_nothing():
    """RT-MQUEUE."""
    d = Dialogue(is_connected=False, max_mqueue_len=2, overflow="latest")
    d.publish(b"1", topic=b"a")
    d.publish(b"2", topic=b"b")
    assert code_of(d.publish, b"3", topic=b"c") == FULL
    assert (d.client.queued, d.client.stats.dropped) == (2, 0)


def test_drop_oldest_when_all_is_in_flight_then_refuses():
    """RT-MQUEUE: what is in flight is never given up."""
    d = Dialogue(max_inflight=2, max_mqueue_len=0, overflow="drop_oldest")
    d.publish(b"1")
    d.publish(b"2")
    assert code_of(d.publish, b"3") == FULL
    assert (d.client.inflight, d.client.stats.dropped) == (2, 0)


def test_c2b_more_than_the_window_in_flight_after_a_reset_leaves_no_place_for_more():
    """RT-MQUEUE: as many as the new life has places for, all in flight for the last one's PUBREC.

    C: PUBLISH 1 to 4; B: PUBREC 4; reset; max_inflight 1, max_mqueue_len 3; CONNECT
    """
    flash = FailingFlash()
    d = Dialogue(store=flash.journal(), clean=False, max_inflight=4)
    for number in range(4):
        d.publish(b"%d" % number, 2)
    d.b2c(pubrec(4))
    store = flash.journal()
    again = Dialogue(store=store, is_connected=False, max_inflight=1, max_mqueue_len=3)
    assert (again.client.inflight, again.client.queued) == (4, 0)
    assert code_of(again.publish, b"5") == FULL
    again.connect(False)
    assert code_of(again.publish, b"5") == FULL
    for _ in range(8):
        # Which waits for which differs from level to level.
        for packet in again.take_packets():
            if packet[0] >> 4 == PUBLISH:
                again.b2c(pubrec(read_publish(packet)[2]))
            else:
                again.b2c(pubcomp(read_id(packet)))
    assert again.client.inflight == again.client.queued == 0
