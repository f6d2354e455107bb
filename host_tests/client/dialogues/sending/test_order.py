"""Order as a promise: ordered=True.  MQTT 5 §4.6; the message-ordering note."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import properties, puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import BUSY, FULL, MQTTClient, MQTTError
from umqtt31.properties import encode

LEVEL_5 = ("test_c2b_ordered_message_takes_its_properties_along",)


def test_c2b_ordered_refuses_qos_0_and_mixed_qos():
    """SIB-RELIABILITY, SIB-ENFORCE: one reliability above best effort.

    C: PUBLISH QoS 1 id 1; QoS 0 and 2 are refused while it is unanswered
    """
    d = Dialogue(ordered=True)
    assert isinstance(error_of(d.publish, b"0", 0), ValueError)
    assert isinstance(error_of(d.client.publish, b"t", b"x"), ValueError)
    d.client.publish(b"t", b"1", qos=1)
    for qos in (0, 2):
        assert isinstance(error_of(d.publish, b"x", qos), ValueError)
    d.c2b(publish(b"t", b"1", 1, 1))
    assert (d.client.inflight, d.client.queued) == (1, 0)


def test_ordered_refuses_a_qos0_queue_and_overflow_policies():
    """SIB-NOEXC, SIB-ENFORCE: nothing is ever dropped or skipped."""
    for overflow in ("drop_oldest", "latest"):
        error = error_of(MQTTClient, "dev", "broker", ordered=True, overflow=overflow)
        assert isinstance(error, ValueError)
    d = Dialogue(ordered=True)
    assert isinstance(error_of(d.publish, b"x", 1, max_age=5), ValueError)


def test_c2b_ordered_full_queue_refuses_the_new_message():
    """SIB-NOEXC: and never drops or skips an older one.

    C: PUBLISH 1; 2 and 3 wait; 4 is refused
    B: PUBACK 1, C: PUBLISH 2; B: PUBACK 2, C: PUBLISH 3
    """
    d = Dialogue(ordered=True, max_mqueue_len=2)
    for payload in (b"1", b"2", b"3"):
        d.publish(payload)
    assert code_of(d.publish, b"4") == FULL
    d.c2b(publish(b"t", b"1", 1, 1))
    for k in (1, 2):
        d.b2c(puback(k))
        d.c2b(publish(b"t", b"%d" % (k + 1), 1, k + 1))
    assert d.client.stats.dropped == 0


def test_c2b_ordered_message_takes_its_properties_along():
    d = Dialogue(ordered=True)
    d.publish(properties=encode(content_type="c"))
    d.c2b(publish(b"t", b"x", 1, 1, properties=properties(content_type=b"c")))


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


def test_ordered_publish_that_was_refused_leaves_the_door_open():
    """SIB-SINGLE: an error inside publish() does not look like a second task later."""
    d = Dialogue(ordered=True, buffer_size=32)
    error_of(d.publish, b"x" * 100)
    error_of(d.publish, b"x", 0)
    assert d.publish(b"x") == 1


def test_c2b_ordered_lost_answer_repeats_only_the_one_in_flight():
    """MQTT-4.6-RM1, SIB-ENFORCE: a receiver sees at worst 1, 2, 3, 3, 4.

    publish 1 to 4; C: PUBLISH 1, B: PUBACK 1; … C: PUBLISH 3; connection lost
    C: PUBLISH 3 DUP, B: PUBACK 3, C: PUBLISH 4
    """
    for max_inflight in (1, 10):
        d = Dialogue(ordered=True, max_inflight=max_inflight)
        arrived = []
        for payload in (b"1", b"2", b"3", b"4"):
            d.publish(payload)
        for k in (1, 2, 3, 3, 4):
            sent = d.stream.take()
            arrived.append(sent[-1:])
            if arrived == [b"1", b"2", b"3"]:
                d.lose()
                d.connect(False)
            else:
                d.b2c(puback(k))
        assert arrived == [b"1", b"2", b"3", b"3", b"4"]


def test_c2b_ordered_qos2_sends_nothing_new_before_pubcomp():
    """MQTT-4.6-RM1: at QoS 2 the flow ends with PUBCOMP.

    C: PUBLISH 1, B: PUBREC 1, C: PUBREL 1, B: PUBCOMP 1
    C: PUBLISH 2
    """
    d = Dialogue(ordered=True)
    d.publish(b"1", 2)
    d.publish(b"2", 2)
    d.c2b(publish(b"t", b"1", 2, 1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(pubcomp(1))
    d.c2b(publish(b"t", b"2", 2, 2))


def test_c2b_window_of_2_redelivers_in_the_original_order():
    """MQTT-4.6.0-1: 1, 2, 3, 2, 3, 4 is what a window of 2 may show.

    C: PUBLISH 1, 2; B: PUBACK 1; C: PUBLISH 3; connection lost
    C: PUBLISH 2 DUP, PUBLISH 3 DUP; B: PUBACK 2; C: PUBLISH 4
    """
    d = Dialogue(max_inflight=2)
    for payload in (b"1", b"2", b"3", b"4"):
        d.publish(payload)
    d.b2c(puback(1))
    d.c2b(*[publish(b"t", b"%d" % k, 1, k) for k in (1, 2, 3)])
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"2", 1, 2, dup=1), publish(b"t", b"3", 1, 3, dup=1))
    d.b2c(puback(2))
    d.c2b(publish(b"t", b"4", 1, 4))


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


def test_c2b_ordered_keeps_retain():
    """31-2.1-RETAIN."""
    d = Dialogue(ordered=True)
    d.publish(b"x", retain=True)
    d.c2b(publish(b"t", b"x", 1, 1, retain=1))


def test_ordered_keeps_the_qos_of_the_first_message_for_good():
    """SIB-RELIABILITY: also when nothing is queued any more, and over a reset."""
    store = KeepingStore()
    d = Dialogue(ordered=True, store=store)
    assert isinstance(error_of(d.publish, b"x" * 1000, 1), MQTTError)  # fixes nothing yet
    d.publish(b"1", 2)
    d.b2c(pubrec(1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0
    assert isinstance(error_of(d.publish, b"2", 1), ValueError)
    d.publish(b"2", 2)
    d = Dialogue(False, ordered=True, store=store)
    assert isinstance(error_of(d.publish, b"3", 1), ValueError)
    d.publish(b"3", 2)
    assert d.client.inflight + d.client.queued == 2
