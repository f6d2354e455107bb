"""What a new life makes of the one before: in flight, released, ids, order.

MQTT 3.1 §4.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import PUBLISH, pubcomp, publish, pubrec, read_id, read_publish
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, JOURNAL


def test_c2b_qos0_that_finds_no_room_behind_a_reset_gives_up_no_other():
    """RT-MQUEUE-Q0: what lies in the store alone stays there."""
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False, max_mqueue_len=40)
    for _ in range(40):
        d.publish(b"x" * 200)
    again = Dialogue(
        store=store, is_connected=False, mqueue_store_qos0=True, overflow="drop_oldest",
        max_mqueue_len=41, queue_bytes=0,
    )  # fmt: skip
    assert code_of(again.publish, b"y" * 200, 0) == FULL
    assert (again.client.queued, again.client.stats.dropped) == (40, 0)


def test_message_that_the_store_no_longer_has_is_given_up_though_qos0_waits():
    """RT-MQUEUE: counted and told, so that flush() gets done."""
    store = KeepingStore()
    Dialogue(store=store, is_connected=False).publish(b"1")
    store.kept[0][0] = 0
    d = Dialogue(store=store, is_connected=False, mqueue_store_qos0=True)
    dropped = d.watch_drops()
    d.publish(b"2", 0)
    assert dropped == [(1, JOURNAL)] and d.client.queued == 1
    d.connect(False)
    d.c2b(publish(b"t", b"2"))
    assert d.client.queued == 0


def test_ids_after_a_reset_go_on_behind_the_last_and_round_again():
    """31-2.4-ID: 65535 is followed by 1, and no id is one of what is still here."""
    store = KeepingStore()
    store.last_id = 65530
    d = Dialogue(store=store, is_connected=False)
    assert [d.publish(b"%d" % number) for number in range(3)] == [65531, 65532, 65533]
    del store.kept[1]
    again = Dialogue(store=store, is_connected=False)
    assert [again.publish(b"x") for _ in range(4)] == [65534, 65535, 1, 2]


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


def test_c2b_more_than_the_window_in_flight_after_a_reset_leaves_no_place_for_more():
    """RT-MQUEUE: as many as the new life has places for; a window of them counts as in flight.

    C: PUBLISH 1 to 4; B: PUBREC 4; reset; max_inflight 1, max_mqueue_len 3; CONNECT
    """
    flash = FailingFlash()
    d = Dialogue(store=flash.journal(), clean=False, max_inflight=4)
    for number in range(4):
        d.publish(b"%d" % number, 2)
    d.b2c(pubrec(4))
    store = flash.journal()
    again = Dialogue(store=store, is_connected=False, max_inflight=1, max_mqueue_len=3)
    assert (again.client.inflight, again.client.queued) == (1, 3)
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
