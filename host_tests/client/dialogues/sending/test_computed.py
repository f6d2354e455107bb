"""What the scripts of sending cannot say: ids at random, types, streams of every width."""

import array

from host_tests.client.dialogue import Dialogue, code_of, error_of, refuses
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import pingresp, puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import BUSY, FULL

# What level 5 does in their place is in `level_5/`.
BELOW_5 = ("test_c2b_pubrec_while_its_publish_waits_to_be_sent_again_then_only_pubrel_follows",)


# MQTT-4.3.3-10: a broker may hold the ids of the life before, so these must not come again.
def test_first_id_in_ram_when_many_clients_are_made_then_is_spread_over_all_ids():
    ids = [Dialogue(is_connected=False, is_random=True).publish() for _ in range(64)]
    assert len(set(ids)) > 48
    assert min(ids) < 24000 and max(ids) > 42000
    assert all(1 <= packet_id <= 65535 for packet_id in ids)


# 31-2.4-ID: they are counted up from there, past 65535 and never 0.
def test_ids_in_ram_when_first_is_random_then_follow_each_other():
    for _ in range(20):
        d = Dialogue(is_connected=False, is_random=True)
        first = d.publish()
        for k in range(1, 5):
            assert d.publish() == (first + k - 1) % 65535 + 1


# A journal goes on behind the last one.
def test_first_id_with_a_journal_when_opened_again_then_follows_the_last():
    flash = FailingFlash()
    last = Dialogue(is_connected=False, is_random=True, store=flash.journal()).publish()
    again = Dialogue(is_connected=False, is_random=True, store=flash.journal()).publish()
    assert again == last % 65535 + 1


def test_ordered_second_task_inside_publish_gets_a_clear_error():
    """SIB-SINGLE, SIB-ENFORCE: a second publish() begins while the first is inside."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    errors = []

    def second_task():
        store.before_put = None
        errors.append(error_of(d.publish, b"second"))

    store.before_put = second_task
    assert d.publish(b"first") == 1
    assert errors[0].code == BUSY
    assert str(errors[0]) == "ordered: publish() from one task at a time"
    d.c2b(publish(b"t", b"first", 1, 1))
    d.b2c(puback(1))
    d.publish(b"third")
    d.c2b(publish(b"t", b"third", 1, 2))


def test_c2b_every_kind_of_bytes_and_str_is_taken():
    """31-2.5-UTF8: a str goes out as UTF-8, its length counted in bytes."""
    d = Dialogue()
    for topic in (b"t\xc3\xa9", bytearray(b"t\xc3\xa9"), memoryview(b"t\xc3\xa9"), "té"):
        for payload in (b"\xc2\xb0C", bytearray(b"\xc2\xb0C"), memoryview(b"\xc2\xb0C"), "°C"):
            d.client.publish(topic, payload)
            d.c2b(publish(b"t\xc3\xa9", b"\xc2\xb0C"))


def test_c2b_each_packet_is_one_write():
    """Pieces would wait for one another's acknowledgement (Nagle, delayed ACK)."""
    d = Dialogue()
    del d.stream.writes[:]
    d.publish(b"x" * 100, 0)
    d.publish(b"x" * 100, 1)
    d.b2c(puback(1))
    d.publish(b"x" * 100, 2)
    d.b2c(pubrec(2))
    more = 1 if d.level == 5 else 0
    assert d.stream.writes == [105 + more, 107 + more, 107 + more, 4]


def test_payload_of_another_type_is_a_type_error_that_names_msg():
    d = Dialogue()
    for topic in (None, 5):
        for qos in (0, 1):
            refuses(TypeError, "topic", d.client.publish, topic, b"x", False, qos)
    for bad in ([1, 2], {1: 2}, {1, 2}, (1, 2), 5, 1.5, None, object(), len):
        for qos in (0, 1, 2):
            refuses(TypeError, "msg", d.publish, bad, qos)
    d.c2b()
    assert d.client.inflight == d.client.queued == 0
    assert d.publish() == 1


# Its length counts elements, so it must not go out as that many bytes.
def test_payload_of_wide_elements_goes_out_whole_or_not_at_all():
    for code in "HIhi":
        payload = array.array(code, [1, 2, 3])
        values = [payload]
        if hasattr(memoryview(b""), "itemsize"):  # else a port cannot tell
            values.append(memoryview(payload))
        for value in values:
            for qos in (0, 1):
                d = Dialogue()
                try:
                    d.publish(value, qos)
                except TypeError as error:
                    assert "msg" in str(error), error
                    d.c2b()
                else:
                    d.c2b(publish(b"t", bytes(payload), qos, qos))


def test_payload_of_single_bytes_goes_out_as_it_is():
    text = type("Text", (str,), {})("xyz")  # as of an enum.StrEnum
    for payload in (bytearray(b"xyz"), memoryview(b"xyz"), array.array("B", b"xyz"), "xyz", text):
        d = Dialogue()
        d.publish(payload, 0)
        d.c2b(publish(b"t", b"xyz"))


# The same for the long way, behind a queue.
def test_payload_of_another_type_while_offline_is_refused_and_nothing_is_kept():
    d = Dialogue(is_connected=False, buffer_size=1024)
    for bad in ([0] * 300, {1: 2}, {1, 2}, None, 7):
        refuses(TypeError, "msg", d.publish, bad, 1)
    assert d.client.queued == 0


def test_c2b_message_that_waits_for_room_behind_the_oldest_makes_no_poll_due():
    """RT-MQUEUE: the ring is given back from its head, and that waits for its answer.

    C: PUBLISH 1, 2, ..., B: PUBACK 2, ...; until the store alone has one; B: PUBACK 1
    """
    d = Dialogue(
        store=KeepingStore(), keepalive=0, retry_interval=0, buffer_size=64, queue_bytes=0,
        max_inflight=2,
    )  # fmt: skip
    d.publish(b"1")
    number = 2
    while not d.client.queued:
        d.publish(b"%d" % number)
        if not d.client.queued:
            d.b2c(puback(number))
            number += 1
    d.take_packets()
    assert d.client.inflight == 1 and d.client.next_due_ms() == 86400000
    d.b2c(puback(1))
    d.c2b(publish(b"t", b"%d" % number, 1, number))


def poll_often(d, count=400):
    for _ in range(count):
        d.client.poll()


# MQTT-4.6.0-2: however many answers are owed and however few bytes the stream takes.
def test_c2b_answers_when_stream_takes_a_few_bytes_then_none_is_overwritten():
    for count in (7, 8, 9, 10, 17, 40):
        for write_most in (1, 2, 3, 4, 5, 31, 33):
            d = Dialogue()
            d.stream.write_most = write_most
            d.stream.feed(*[publish(b"t", b"x", 1, k) for k in range(1, count + 1)])
            poll_often(d)
            d.c2b(*[puback(k) for k in range(1, count + 1)])
            assert len(d.messages) == count


# MQTT-4.6.0-4: TLS keeps what it had no room for, and takes the next write for the same bytes:
# what stands behind them would never leave.
def test_c2b_pubrel_that_finds_no_room_then_nothing_is_written_with_it():
    d = Dialogue()
    d.publish(b"1", 2)
    d.stream.take()
    d.stream.is_blocked = True
    d.stream.writes = []
    d.b2c(pubrec(1), publish(b"t", b"x", 1, 9))
    assert len(set(d.stream.writes)) == 1
    d.stream.is_blocked = False
    d.work()
    d.c2b(pubrel(1), puback(9))


# MQTT-4.3.3-6: what is to be sent again, and waits for room, is out of date by PUBREC.
def test_c2b_pubrec_while_its_publish_waits_to_be_sent_again_then_only_pubrel_follows():
    for step_s, steps in ((1, 8), (1, 5), (8, 1), (9, 1)):
        for write_most in (0, 1, 3):
            d = Dialogue(keepalive=8, retry_interval=5)
            packet_id = d.publish(b"1", 2)
            d.stream.take()
            d.stream.is_blocked = True
            for _ in range(steps):
                d.wait(step_s)
            d.b2c(publish(b"t", b"x", 1, 9), pubrec(packet_id))
            d.stream.is_blocked = False
            d.stream.write_most = write_most
            poll_often(d)
            kinds = [packet[0] & 0xF0 for packet in d.take_packets()]
            # PUBLISH before PUBREL is late, but harmless; behind it, it is a new message.
            assert 0x60 in kinds and 0x30 not in kinds[kinds.index(0x60) :], kinds
            d.b2c(pingresp(), pubcomp(packet_id))
            poll_often(d, 20)
            assert d.client.inflight == 0


# RT-MQUEUE: nothing is in flight, an answer is half out, and the ring begins again at its start.
def test_c2b_ring_that_begins_again_behind_half_an_answer_then_nothing_is_lost():
    for size in range(1, 30):
        d = Dialogue(buffer_size=64, queue_bytes=1)
        for number in range(1, 30):
            d.stream.write_most = 1
            d.stream.feed(publish(b"t", b"x", 1, 7))
            d.client.poll()
            d.publish(b"%0*d" % (size, number), 1)
            d.stream.write_most = 0
            d.work()
            d.c2b(puback(7), publish(b"t", b"%0*d" % (size, number), 1, number))
            d.b2c(puback(number))
            assert (d.client.inflight, d.client.queued) == (0, 0)
        d.client.disconnect()
        assert (d.client.inflight, d.client.queued) == (0, 0)


# RT-MQUEUE: whatever kind of bytes the topic is.
def test_latest_replaces_the_waiting_message_of_a_memoryview_topic():
    for kind in (bytes, bytearray, memoryview):
        d = Dialogue(is_connected=False, overflow="latest", max_mqueue_len=2)
        for topic in (b"a", b"b", b"a", b"b"):
            d.client.publish(kind(topic), b"", qos=1)
        assert code_of(d.client.publish, kind(b"ab"), b"", qos=1) == FULL
        assert (d.client.queued, d.client.stats.dropped) == (2, 2)
