"""What a new life makes of the one before: in flight, released, ids, order.

MQTT 3.1 §4.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import (
    PUBLISH,
    puback,
    pubcomp,
    publish,
    pubrec,
    read_id,
    read_publish,
)
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, JOURNAL, PROTOCOL, MQTTError


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


def test_c2b_new_message_after_a_reset_goes_out_behind_the_old():
    """MQTT-4.6.0-1: what lies in the store alone is older.

    publish 1, 2; reset; publish 3; CONNECT; C: PUBLISH 1, 2, 3
    """
    store = KeepingStore()
    d = Dialogue(store=store, is_connected=False)
    d.publish(b"1")
    d.publish(b"2")
    again = Dialogue(store=store, is_connected=False)
    again.publish(b"3")
    again.connect(False)
    again.c2b(*[publish(b"t", b"%d" % number, 1, number) for number in (1, 2, 3)])


def test_c2b_qos0_that_waits_behind_a_reset_goes_out_behind_the_old():
    """RT-MQUEUE-Q0, 31-4.2-RECONNECT: QoS 0 takes no place of what is to go out again.

    C: PUBLISH 1; reset; publish 2 at QoS 0; CONNECT; C: PUBLISH 1 DUP, PUBLISH 2
    """
    store = KeepingStore()
    Dialogue(store=store).publish(b"1")
    d = Dialogue(store=store, is_connected=False, mqueue_store_qos0=True)
    d.publish(b"2", 0)
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1), publish(b"t", b"2"))
    d.b2c(puback(1))
    assert (d.client.inflight, d.client.queued) == (0, 0)


def test_c2b_qos0_whose_place_an_older_message_takes_is_refused():
    """31-4.1-Q0, 31-2.1-DUP: the store's next message went out twice in its place.

    C: PUBLISH 1; reset; C: PUBLISH 1 DUP; B: PUBACK 1, PUBLISH 5, PUBLISH 6, whose handler
    publishes at QoS 0; C: PUBACK 5, PUBLISH 2, PUBACK 6
    """
    store = KeepingStore()
    d = Dialogue(store=store, max_inflight=1)
    d.publish(b"1")
    d.publish(b"2")
    d = Dialogue(store=store, max_inflight=1, clean=False)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1))
    codes = []

    def handler(message):
        if message.packet_id == 6:
            codes.append(code_of(d.publish, b"0", 0))

    d.client.on_message = handler
    d.b2c(puback(1) + publish(b"t", b"x", 1, 5) + publish(b"t", b"x", 1, 6))
    d.c2b(puback(5), publish(b"t", b"2", 1, 2, dup=1), puback(6))
    assert codes == [FULL]


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
