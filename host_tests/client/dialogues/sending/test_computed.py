"""What the scripts of sending cannot say: ids at random, offered bytes, numbers."""

import array

from host_tests.client.dialogue import Dialogue
from host_tests.client.wire import puback, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore


# MQTT-4.3.3-10: a broker may hold the ids of the life before, so these must not come again.
def test_first_id_in_ram_when_many_clients_are_made_then_is_spread_over_all_ids():
    ids = [Dialogue(is_connected=False, is_random=True).publish() for _ in range(64)]
    assert len(set(ids)) > 48
    assert min(ids) < 24000 and max(ids) > 42000
    assert all(1 <= packet_id <= 65535 for packet_id in ids)


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
