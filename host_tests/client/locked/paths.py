"""What scripts with a locked heap cannot say: kinds of buffers, handlers that call, heap counts.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

import gc

from host_tests.client import wire
from host_tests.client.locked.player import LockedDialogue
from micropython import heap_lock, heap_unlock
from umqtt31 import CLOSED, FULL, PROTOCOL, TIMEOUT, MQTTError

LEVEL_5 = ("test_messages_with_properties_come_in", "test_messages_are_refused_by_the_handler")


def test_publish_of_any_length_leaves_nothing_behind_on_an_unlocked_heap():
    """With the heap locked a way that allocates may be passed over; here it shows."""
    d = LockedDialogue(buffer_size=1500)
    client = d.client
    for n in (10, 130, 255, 256, 257, 300, 511, 512, 513, 1024):
        payload = bytes(n)
        for qos in (0, 1):
            d.b2c(wire.puback(client.publish(b"t", payload, qos=1)))
            gc.collect()
            gc.disable()
            before = gc.mem_alloc()
            packet_id = client.publish(b"t", payload, qos=qos)
            after = gc.mem_alloc()
            gc.enable()
            assert after == before, (n, qos, after - before)
            d.stream.take()
            if qos:
                d.b2c(wire.puback(packet_id))


def test_handler_that_publishes():
    d = LockedDialogue()
    client = d.client

    def on_message(message):
        client.publish(b"echo", b"21.5 C", qos=2)

    client.on_message = on_message
    d.b2c(wire.publish(b"t", b"x", 1, 5))
    d.c2b(wire.publish(b"echo", b"21.5 C", 2, 1), wire.puback(5))


def test_messages_with_properties_come_in():
    d = LockedDialogue()
    target = bytearray(16)
    seen = [0, 0, 0]

    def on_message(message):
        seen[0] = message.property_into(9, target)
        seen[1] = message.property_into(8, target)
        seen[2] = message.message_expiry_interval

    d.client.on_message = on_message
    said = wire.properties(
        message_expiry=7, correlation_data=b"12345", content_type=b"c\xc3\xa9", subscription_id=[9]
    )
    d.b2c(wire.publish(b"t", b"x", 2, 5, properties=said))
    assert seen == [5, -1, 7]
    d.c2b(wire.pubrec(5))


def test_messages_are_refused_by_the_handler():
    d = LockedDialogue()

    def on_message(message):
        message.refuse(0x99)

    d.client.on_message = on_message
    d.b2c(wire.publish(b"t", b"x", 2, 5))
    d.c2b(wire.refused(wire.pubrec, 5, 0x99))


def _break_off(d):
    d.stream.feed(b"")


def _be_silent(d):
    d.wait(10)
    d.c2b(wire.pingreq())
    d.clock.now_ms += 10000


def _talk_nonsense(d):
    d.stream.feed(b"\xf0\0")


def test_end_of_a_connection_is_told_by_the_next_poll():
    """There was no room for the error, and the next one said that the heap was locked."""
    for end, code in ((_break_off, CLOSED), (_be_silent, TIMEOUT), (_talk_nonsense, PROTOCOL)):
        d = LockedDialogue(keepalive=10)
        end(d)
        told = []
        heap_lock()
        try:
            d.client.poll()
        except MemoryError:
            pass
        finally:
            heap_unlock()
        try:
            d.client.poll()
        except MQTTError as error:
            told.append(error.code)
        assert told == [code], (told, code)


def test_full_ring_is_squeezed_around_its_end():
    d = LockedDialogue(
        max_inflight=2, max_mqueue_len=40, queue_bytes=512, overflow="drop_oldest", keepalive=0
    )
    reasons = set()
    for k in range(60):
        d.publish(b"x" * (k * 37 % 90), max_age=1 + k)
        if k % 9 == 8:
            d.stream.feed(wire.puback(k // 9 + 1))
        d.wait(0.1)
        reasons.update([one[1] for one in d.drops.take()])
    assert d.client.stats.dropped > 20 and FULL in reasons and d.client.inflight == 2
