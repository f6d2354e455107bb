"""What a store hands over after a reset, and a store without room."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.flash import FailingFlash
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import FULL, NETWORK


def test_c2b_full_store_refuses_the_new_message_and_changes_nothing():
    """RT-MQUEUE: a journal may be full before the queue is.

    C: PUBLISH 1; the store takes no more; 2 is refused; B: PUBACK 1; C: PUBLISH 2
    """
    store = KeepingStore()
    d = Dialogue(store=store)
    d.publish(b"1")
    store.slots = 1
    assert code_of(d.publish, b"2") == FULL
    assert (d.client.inflight, d.client.queued) == (1, 0)
    d.b2c(puback(1))
    store.slots = 2
    assert d.publish(b"2") == 2
    d.c2b(publish(b"t", b"1", 1, 1), publish(b"t", b"2", 1, 2))


def test_c2b_qos0_that_may_have_been_sent_before_a_reset_is_not_sent_again():
    """31-4.1-Q0: at most once, a reset in between.

    publish QoS 0 while the stream is full; reset; CONNECT; C: nothing
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False, mqueue_store_qos0=True)
    d.stream.is_blocked = True
    d.publish(b"0", 0)
    d.publish(b"0", 0)
    again = Dialogue(store=store, clean=False, mqueue_store_qos0=True)
    again.c2b()
    assert again.client.queued == 0 and not store.kept


def test_c2b_clean_session_after_a_reset_gives_up_the_earlier_life():
    """31-3.1-CLEAN: of messages that may have been sent, nothing is left on either side."""
    store = KeepingStore()
    d = Dialogue(store=store, clean=False)
    d.publish(b"1")
    d.publish(b"2", 2)
    again = Dialogue(store=store, clean=True)
    again.c2b()
    assert again.client.inflight == again.client.queued == 0
    assert again.client.stats.dropped == 2 and not store.kept


def test_c2b_clean_session_that_was_asked_for_when_device_resets_then_nothing_comes_back():
    """31-3.1-CLEAN: what was given up and told is recorded before a connection is opened."""
    flash = FailingFlash()
    d = Dialogue(is_queueing=True, store=flash.journal(), clean=False)
    d.publish(b"1")
    again = Dialogue(is_queueing=True, store=flash.journal(), is_connected=False)
    dropped = again.watch_drops()
    assert code_of(again.client.connect, True) == NETWORK
    assert len(dropped) == 1
    last = Dialogue(is_queueing=True, store=flash.journal(), is_connected=False)
    assert last.client.inflight == last.client.queued == 0


def test_b2c_held_ids_are_released_in_any_order():
    """MQTT-4.3.3-12.

    B: PUBLISH QoS 2 id 5, 6, 7; PUBREL 6, PUBREL 7; PUBLISH 6 (new); PUBLISH 5 DUP (old)
    C: PUBREC 5, 6, 7; PUBCOMP 6, 7; PUBREC 6, PUBREC 5
    """
    store = KeepingStore()
    d = Dialogue(store=store)
    d.b2c(*[publish(b"t", b"%d" % k, 2, k) for k in (5, 6, 7)])
    d.b2c(pubrel(6), pubrel(7))
    d.b2c(publish(b"t", b"6 again", 2, 6), publish(b"t", b"5", 2, 5, dup=1))
    d.c2b(pubrec(5), pubrec(6), pubrec(7), pubcomp(6), pubcomp(7), pubrec(6), pubrec(5))
    assert [message[1] for message in d.messages] == [b"5", b"6", b"7", b"6 again"]
    assert sorted(store.held) == [5, 6]


def test_close_that_fails_is_quiet():
    d = Dialogue()

    def failing_close():
        d.stream.is_closed = True
        raise OSError(9)

    d.stream.close = failing_close
    d.client.disconnect()
    assert d.stream.is_closed
    d.connect()


def test_unknown_attribute_is_an_attribute_error():
    d = Dialogue(is_connected=False)
    assert isinstance(error_of(lambda: d.client.no_such_thing), AttributeError)


def test_c2b_latest_finds_the_topic_in_long_and_short_packets():
    """RT-MQUEUE: among topics of the same length or start, and in packets above 127 bytes."""
    d = Dialogue(max_inflight=1, max_mqueue_len=3, overflow="latest")
    d.publish(b"first")
    for topic in (b"aa", b"ab", b"a"):
        d.publish(b"x" * 150, topic=topic)
    dropped = []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    d.publish(b"new", topic=b"ab")
    d.publish(b"new", topic=b"a")
    d.publish(b"new", topic=b"aa")
    assert dropped == [3, 4, 2]
    assert code_of(d.publish, b"new", topic=b"ac") == FULL
