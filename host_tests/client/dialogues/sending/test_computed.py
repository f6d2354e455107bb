"""What the scripts of sending cannot say: ids at random, types, and a store that calls back."""

import array

from host_tests.client.dialogue import Dialogue, code_of, error_of, refuses
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, publish, pubrec
from host_tests.standin.store import KeepingStore
from umqtt31 import BUSY, FULL, TOO_LARGE


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


def test_id_after_a_refused_publish_is_not_one_in_use():
    for is_too_large in (False, True):
        store = KeepingStore()
        d = Dialogue(store=store, is_connected=False)
        assert [d.publish(b"%d" % k) for k in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
        del store.kept[2:4], store.kept[0]  # 1, 3 and 4 are done
        again = Dialogue(store=store, is_connected=False, max_mqueue_len=3)
        if is_too_large:
            assert code_of(again.publish, b"x" * 300) == TOO_LARGE
            assert code_of(again.publish, b"x" * 300) == TOO_LARGE
        else:
            store.slots = 2
            assert code_of(again.publish, b"no room") == FULL
            store.slots = 20
        assert again.publish(b"6") == 6
        ids = [entry[1] for entry in store.kept]
        assert len(set(ids)) == len(ids)


def test_ordered_second_task_inside_publish_gets_a_clear_error():
    """SIB-SINGLE: a second publish() begins while the first is inside."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    codes = []

    def second_task():
        store.before_put = None
        codes.append(code_of(d.publish, b"second"))

    store.before_put = second_task
    assert d.publish(b"first") == 1
    assert codes == [BUSY]
    d.c2b(publish(b"t", b"first", 1, 1))
    d.b2c(puback(1))
    d.publish(b"third")
    d.c2b(publish(b"t", b"third", 1, 2))


def test_ordered_errors_say_what_is_allowed():
    """SIB-ENFORCE, SIB-SINGLE."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    rule = "ordered: one QoS, 1 or 2, for all, and no max_age"
    assert str(error_of(d.publish, b"x", 0)) == rule
    assert str(error_of(d.publish, b"x", 1, max_age=5)) == rule
    errors = []

    def second_task():
        store.before_put = None
        errors.append(error_of(d.publish, b"second"))

    store.before_put = second_task
    d.publish(b"first")
    assert str(errors[0]) == "ordered: publish() from one task at a time"


def test_drop_oldest_goes_on_while_a_packet_is_half_written():
    """RT-MQUEUE: a link that is slow is when a queue gets full."""
    d = Dialogue(
        max_inflight=1, max_mqueue_len=4, overflow="drop_oldest", buffer_size=60, queue_bytes=200
    )
    d.stream.write_most = 3
    for number in range(30):
        d.publish(b"%02d" % number * 20)
    assert (d.client.inflight, d.client.queued, d.client.stats.dropped) == (1, 4, 25)
    d.stream.write_most = 0
    for number in range(5):
        d.work()
        sent = d.take_publishes()
        assert [one[0][:2] for one in sent] == [b"%02d" % (25 + number if number else 0)]
        d.b2c(puback(sent[0][2]))
    assert d.client.queued == 0


def test_drop_oldest_gives_up_what_finds_no_room_in_the_ring():
    """RT-MQUEUE: the store alone has it, and the ring is full of what is in flight."""
    d = Dialogue(
        store=KeepingStore(), max_inflight=4, max_mqueue_len=1, overflow="drop_oldest",
        buffer_size=60, queue_bytes=0,
    )  # fmt: skip
    for number in range(20):
        d.publish(b"%02d" % number * 20)
    got = []
    while d.client.inflight:
        sent = d.take_publishes()
        got += [one[0][:2] for one in sent]
        d.b2c(*[puback(one[2]) for one in sent])
    assert got == [b"00", b"17", b"18", b"19"] and d.client.stats.dropped == 16


def test_c2b_every_kind_of_bytes_and_str_is_taken():
    """31-2.5-UTF8: a str goes out as UTF-8, its length counted in bytes."""
    d = Dialogue()
    for topic in (b"t\xc3\xa9", bytearray(b"t\xc3\xa9"), memoryview(b"t\xc3\xa9"), "té"):
        for payload in (b"\xc2\xb0C", bytearray(b"\xc2\xb0C"), memoryview(b"\xc2\xb0C"), "°C"):
            d.client.publish(topic, payload)
            d.c2b(publish(b"t\xc3\xa9", b"\xc2\xb0C"))


def test_c2b_wrong_types_are_refused_and_nothing_changes():
    """Wrong arguments end in TypeError or ValueError before anything is sent."""
    d = Dialogue()
    for topic, payload in ((None, b"x"), (5, b"x"), (b"t", None), (b"t", 5), (b"t", 1.5)):
        for qos in (0, 1):
            error = error_of(d.client.publish, topic, payload, False, qos)
            assert isinstance(error, (TypeError, ValueError)), (topic, payload)
    d.c2b()
    assert d.client.inflight == d.client.queued == 0
    assert d.publish() == 1


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
    for bad in ([1, 2], {1: 2}, {1, 2}, (1, 2), 5, 1.5, None, object(), len):
        for qos in (0, 1, 2):
            error = error_of(d.publish, bad, qos)
            assert isinstance(error, TypeError), (bad, error)
            assert "msg" in str(error), (bad, error)
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
