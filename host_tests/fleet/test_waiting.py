"""A subscriber that takes its messages slowly: what waits in the broker is not lost."""

import random

import pytest

from host_tests.fleet.captures import C2S, S2C, connected, lost_of, routed, rows
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets


def _losses(capture, broken=()):
    tables = capture.audit()
    assert set(tables["violations"]["requirement"].to_pylist()) == set(broken)
    return rows(tables["losses"], "kind", "sure")


def _exchange(talk, direction, payload, packet_id, after_ms=1, **more):
    times = {"after_ms": after_ms, "answer_ms": after_ms}
    talk.exchange(direction, b"t", payload, packet_id, **times, **more)


def _pass(publisher, subscriber, payload, packet_id, after_ms=1):
    _exchange(publisher, C2S, payload, packet_id, after_ms)
    _exchange(subscriber, S2C, payload, packet_id)


def _take(subscriber, values, but=(), after_ms=150):
    for number, value in enumerate(values, 1):
        if number not in but:
            _exchange(subscriber, S2C, value, number, after_ms)


def _subscribed(**more):
    """A publisher, and a session that is kept, whose client is away."""
    capture, publisher = connected(b"pub", **more)
    before = capture.connection(b"sub", clean=False)
    before.subscribe(b"#", 1)
    before.bye()
    return capture, publisher


def _back(capture):
    return capture.connection(b"sub", clean=False, present=True)


def _returned(values, pause_ms=1):
    """Of a session that is kept the client, and what was published while it was away."""
    capture, publisher = _subscribed(keep_alive_s=600)
    capture.now += 60_000_000
    for number, value in enumerate(values, 1):
        _exchange(publisher, C2S, value, number, pause_ms)
    capture.now += 60_000_000
    return capture, publisher, _back(capture)


_NUMBERED = [b"%d" % number for number in range(1, 61)]


@pytest.mark.parametrize("ends", ["capture", "session"])
def test_what_waits_when_the_capture_or_the_session_ends_is_not_called_lost(ends):
    capture, _, subscriber = _returned(_NUMBERED)
    _take(subscriber, _NUMBERED[:40])
    if ends == "session":
        subscriber.bye()
        capture.connection(b"sub").quiet(20_000)
    assert set(_losses(capture)) == {("unexplained", "not_knowable")}


def test_what_did_not_come_when_the_queue_was_empty_is_lost():
    """Ten quiet seconds: nothing else waits."""
    capture, _, subscriber = _returned(_NUMBERED)
    _take(subscriber, _NUMBERED[:40])
    subscriber.ping(10_000)
    assert _losses(capture) == [("not_delivered", "likely")] * 20


def test_what_overtakes_a_queue_does_not_show_what_was_passed_over():
    """As Mosquitto does it: what is published while there is room is sent at once."""
    capture, publisher, subscriber = _returned(_NUMBERED)
    _take(subscriber, _NUMBERED[:30])
    _pass(publisher, subscriber, b"at once", 99)
    _take(subscriber, _NUMBERED[:40], but=range(1, 31))
    assert set(_losses(capture, ["MQTT-4.6.0-5"])) == {("unexplained", "not_knowable")}


def test_what_came_before_and_was_never_answered_did_not_come_behind_what_is_missing():
    """The publisher is gone, and its first message without the broker's answer."""
    capture, publisher, subscriber = routed(1)
    publisher.publish(C2S, b"t", b"1", 1, 1)
    _exchange(subscriber, S2C, b"1", 1)
    _exchange(publisher, C2S, b"2", 2)
    publisher.reset()
    subscriber.quiet(6000)
    assert _losses(capture) == [("not_delivered", "likely")]


def test_what_overtakes_a_queue_is_not_behind_what_waits_in_it():
    """Again and again, on a topic of its own or not: what waits was published between."""
    capture, publisher, subscriber = _returned(_NUMBERED[:40])
    for place in range(1, 31):
        _exchange(subscriber, S2C, b"%d" % place, place, after_ms=150)
        if place % 5 == 0:
            _exchange(publisher, C2S, b"waits %d" % place, 50 + place)
            _pass(publisher, subscriber, b"at once %d" % place, 51 + place)
    losses = _losses(capture, ["MQTT-4.6.0-5"])
    assert set(losses) == {("unexplained", "not_knowable")}


def _plain(seed, count):
    rng = random.Random(seed)
    return [b"%d" % rng.choice((30, 31, 32)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stays", [True, False])
def test_what_came_of_a_queue_of_plain_values_is_its_beginning(seed, stays):
    """The client still takes them when the capture ends, or hangs behind the last ones."""
    values = _plain(seed, 60)
    capture, _, subscriber = _returned(values, 400)
    _take(subscriber, values[:25])
    if not stays:
        for number in (26, 27):
            subscriber.publish(S2C, b"t", values[number - 1], 1, number)
        capture.now += 20_000_000
        capture.connection(b"sub").quiet(20_000)
    assert set(_losses(capture)) <= {("unexplained", "not_knowable")}


def test_a_plain_value_of_a_queue_that_was_passed_over_is_lost_in_its_place():
    values = [b"%d" % number for number in (1, 2, 3, 4) * 5 + (5, 1, 2, 3, 4) + (1, 2, 3, 4) * 9]
    capture, _, subscriber = _returned(values, 400)
    _take(subscriber, values[:40], but=[23])
    losses = lost_of(capture.audit(), "sure")
    assert [number for sure, number in losses if sure != "not_knowable"] == [23]


@pytest.mark.parametrize("seed", range(6))
def test_plain_value_lost_from_a_lively_stream_is_found_in_its_place(seed):
    """The subscriber has always something to answer, and nothing waits."""
    capture, publisher, subscriber = routed(1)
    values = [b"30", *_plain(seed, 20), b"33", *_plain(seed + 9, 20)]
    for number, value in enumerate(values, 1):
        _exchange(publisher, C2S, value, number, after_ms=100)
        if number != 22:
            _exchange(subscriber, S2C, value, number, after_ms=100)
    subscriber.quiet(700)
    assert _losses(capture) == [("not_delivered", "proved")]


@pytest.mark.parametrize("expiries", [(3, None), (None, 3)])
def test_of_equal_values_the_one_that_was_too_old_did_not_come(expiries):
    """The subscriber was away for a minute, and one of them was good for three seconds."""
    capture, publisher = _subscribed(level=5)
    for number, expiry_s in enumerate(expiries, 1):
        _exchange(publisher, C2S, b"30", number, **_expiry(expiry_s))
    capture.now += 60_000_000
    subscriber = _back(capture)
    _exchange(subscriber, S2C, b"30", 1)
    for number in (3, 4):
        _pass(publisher, subscriber, b"%d" % number, number)
    subscriber.quiet()
    assert _losses(capture) == []


def _expiry(seconds):
    return {"message_expiry": seconds} if seconds else {}


def test_what_was_passed_over_is_lost_however_busy_the_subscriber_is():
    capture, _, subscriber = _returned(_NUMBERED)
    _take(subscriber, _NUMBERED[:40], but=[20])
    found = _losses(capture)
    # While it was away it may have been connected where nothing was captured.
    assert found.count(("not_delivered", "likely")) == 1
    assert found.count(("unexplained", "not_knowable")) == 20


def test_a_busy_subscriber_that_gets_all_at_once_has_nothing_waiting():
    """One message a time, none of which had to wait: the last one is lost."""
    capture, publisher, subscriber = connected(b"pub", b"sub")
    other = capture.connection(b"other")
    subscriber.subscribe(b"#", 1)
    _pass(publisher, subscriber, b"first", 1)
    _exchange(publisher, C2S, b"second", 2)
    for number in range(2, 30):
        _pass(other, subscriber, b"%d" % number, number, after_ms=200)
    assert _losses(capture) == [("not_delivered", "likely")]


def test_later_session_proves_nothing_of_what_the_one_before_did_not_get():
    capture, publisher = connected(b"pub")
    for ids in ((1, 2), (3, 4)):
        subscriber = capture.connection(b"sub")
        subscriber.subscribe(b"#", 1)
        for packet_id in ids:
            _exchange(publisher, C2S, b"%d" % packet_id, packet_id)
            if packet_id != 2:
                _exchange(subscriber, S2C, b"%d" % packet_id, packet_id)
        subscriber.quiet(6000)
        subscriber.bye()
    assert _losses(capture) == [("not_delivered", "likely")]


@pytest.mark.parametrize(("breaks", "sure"), [(True, "likely"), (False, "proved")])
def test_what_came_last_before_a_connection_broke_may_have_come_by_another(breaks, sure):
    """The session went on, and later messages came: somewhere it may have been, too."""
    capture, publisher = connected(b"pub")
    subscriber = capture.connection(b"sub", clean=False)
    subscriber.subscribe(b"#", 1)
    for number in (1, 2, 3):
        _exchange(publisher, C2S, b"%d" % number, number)
        if number == 2 and breaks:
            subscriber.reset()
            capture.now += 10_000_000
            subscriber = _back(capture)
        if number != 2:
            _exchange(subscriber, S2C, b"%d" % number, number)
    subscriber.quiet(6000)
    assert _losses(capture) == [("not_delivered", sure)]


def test_equal_values_from_just_before_a_subscription_are_none_that_it_gets():
    """They are what is left for a delivery that is no other one, of a SUBACK that lags."""
    capture, publisher = connected(b"pub")
    values = (b"30", b"31", b"32")
    for number, value in enumerate(values * 2, 1):
        _exchange(publisher, C2S, value, number)
    subscriber = capture.connection(b"sub")
    subscriber.subscribe(b"#", 1)
    for number, value in enumerate(values, 7):
        _exchange(publisher, C2S, value, number)
    for number in (2, 0, 1):  # as a broker does that sends by several queues
        _exchange(subscriber, S2C, values[number], 1 + number)
    subscriber.quiet()
    assert _losses(capture, ["MQTT-4.6.0-5"]) == []


@pytest.mark.parametrize("is_seen", [True, False])
def test_what_waited_while_the_subscriber_was_away_may_be_in_bytes_that_are_missing(is_seen):
    """Long after it was published, when the subscriber had come back."""
    capture, publisher = connected(b"pub")
    subscriber = capture.connection(b"sub", clean=False)
    subscriber.subscribe(b"#", 1)
    _pass(publisher, subscriber, b"1", 1)
    subscriber.bye()
    _exchange(publisher, C2S, b"2", 2, after_ms=10_000)
    capture.now += 20_000_000
    subscriber = _back(capture)
    if not is_seen:
        _exchange(subscriber, S2C, b"2", 2)
        del capture.frames[-2]  # and its answer is there
    for number in (3, 4):
        _pass(publisher, subscriber, b"%d" % number, number, after_ms=10_000)
    assert _losses(capture) == [("not_delivered", "likely")] * is_seen


@pytest.mark.parametrize("is_missing", [True, False])
def test_what_waited_for_a_link_that_was_gone_may_be_in_bytes_that_are_missing(is_missing):
    """The broker had not noticed, and by its connection the subscriber was there."""
    capture, publisher, subscriber = routed(1, clean=False)
    for number in range(1, 4):
        _exchange(publisher, C2S, b"%d" % number, number, 1000)
        if number < 3:
            subscriber.publish(S2C, b"t", b"%d" % number, 1, number)
    capture.now += 8_000_000
    subscriber.segment(S2C, b"", tcp.FIN | tcp.ACK)
    again = _back(capture)
    for number in (1, 2):
        _exchange(again, S2C, b"%d" % number, number, dup=1)
    again.wire.seq[S2C] += 10 * is_missing
    _pass(publisher, again, b"4", 4)
    again.ping(10_000)
    assert len(_losses(capture)) == (not is_missing)


@pytest.mark.parametrize(("expiry_s", "lost"), [(2, []), (60, [("not_delivered", "proved")])])
def test_message_of_qos_2_may_expire_before_it_is_released(expiry_s, lost):
    """The broker counts from PUBLISH on, and passes it on behind PUBREL."""
    capture, publisher = connected(b"pub", level=5, clean=False)
    subscriber = capture.connection(b"sub")
    subscriber.subscribe(b"#")
    for number in (1, 2, 3):
        publisher.publish(C2S, b"t", b"%d" % number, 2, number, message_expiry=expiry_s)
        publisher.ack(S2C, 0x50, number)
        publisher.ack(C2S, 0x62, number, after_ms=5000 if number == 2 else 1)
        publisher.ack(S2C, 0x70, number)
        if number != 2:
            subscriber.exchange(S2C, b"t", b"%d" % number, number, qos=2)
    subscriber.quiet()
    assert _losses(capture) == lost


@pytest.mark.parametrize(("asks", "lost"), [(False, 0), (True, 1)])
def test_what_was_kept_for_a_session_may_come_with_retain(asks, lost):
    """Some brokers leave the flag on; from the store it comes behind a SUBSCRIBE alone."""
    capture, publisher = _subscribed(keep_alive_s=600)
    publisher.exchange(C2S, b"t", b"1", 1, retain=1, after_ms=10_000)
    subscriber = _back(capture)
    if asks:
        subscriber.subscribe(b"#", 1, packet_id=2)
    subscriber.exchange(S2C, b"t", b"1", 1, retain=1)
    _pass(publisher, subscriber, b"2", 2)
    subscriber.quiet()
    assert len(_losses(capture)) == lost


@pytest.mark.parametrize(("pause_ms", "sure"), [(200, "not_knowable"), (10, "proved")])
def test_message_may_expire_while_a_slow_subscriber_takes_those_before_it(pause_ms, sure):
    """Where the next one came in time, so would it."""
    capture, publisher, subscriber = connected(b"pub", b"sub", level=5)
    subscriber.subscribe(b"#", 1)
    for number in range(1, 31):
        more = _expiry(2 if number == 25 else None)
        _exchange(publisher, C2S, b"%d" % number, number, **more)
    _take(subscriber, _NUMBERED[:30], [25], pause_ms)
    subscriber.quiet()
    kind = "not_delivered" if sure == "proved" else "unexplained"
    assert _losses(capture) == [(kind, sure)]


def test_message_sent_again_behind_a_subscription_is_of_its_publisher():
    """It was first sent before; the broker got what came again."""
    capture, publisher = connected(b"pub", clean=False)
    publisher.publish(C2S, b"t", b"1", 1, 1)
    publisher.reset()
    capture.now += 30_000_000
    subscriber = capture.connection(b"sub")
    subscriber.subscribe(b"#", 1)
    capture.now += 30_000_000
    publisher = capture.connection(b"pub", clean=False, present=True)
    publisher.exchange(C2S, b"t", b"1", 1, dup=1)
    _exchange(subscriber, S2C, b"1", 1)
    _pass(publisher, subscriber, b"2", 2)
    tables = capture.audit()
    assert rows(tables["findings"], "finding") == []
    assert sum(tables["routes"]["unmatched"].to_pylist()) == 0


def test_message_released_behind_a_subscription_is_of_its_publisher():
    """At QoS 2 a broker may wait for PUBREL."""
    capture, publisher, subscriber = connected(b"pub", b"sub")
    publisher.publish(C2S, b"t", b"1", 2, 1)
    publisher.ack(S2C, 0x50, 1)
    capture.now += 4_000_000
    subscriber.subscribe(b"#", 1)
    capture.now += 4_000_000
    publisher.ack(C2S, 0x62, 1)
    publisher.ack(S2C, 0x70, 1)
    _exchange(subscriber, S2C, b"1", 1)
    _pass(publisher, subscriber, b"2", 2)
    assert rows(capture.audit()["findings"], "finding") == []


@pytest.mark.parametrize(
    ("payload", "finding"), [(b"2", "not_subscribed"), (b"3", "publisher_not_captured")]
)
def test_delivery_behind_unsubscribe_is_of_its_publisher(payload, finding):
    """As RabbitMQ 3 delivers what a session of level 3 was subscribed to before its break."""
    capture, publisher, subscriber = routed(1)
    _pass(publisher, subscriber, b"1", 1)
    subscriber.send(C2S, packets.unsubscribe(9, b"#"))
    subscriber.send(S2C, packets.unsuback(9))
    _exchange(publisher, C2S, b"2", 2, after_ms=9000)
    _exchange(subscriber, S2C, payload, 2)
    found = capture.audit()["findings"]
    assert rows(found, "finding", "client_id") == [(finding, "sub")]


@pytest.mark.parametrize("value", [b"30", b"31"])
def test_equal_values_are_told_apart_by_qos_behind_a_subscription_at_another_one(value):
    """At QoS 0 they get lost, as they may; right behind the change all others come."""
    capture, publisher, subscriber = connected(b"pub", b"sub")
    for change, qos in enumerate((2, 0, 1)):
        subscriber.subscribe(b"t", qos, packet_id=100 + change)
        publisher.exchange(C2S, b"t", b"32", 100 + change, qos=2)
        subscriber.exchange(S2C, b"t", b"32", 100 + change, qos=qos)
    for number in range(1, 25):
        if number % 3 == 0:
            publisher.publish(C2S, b"t", value)
        else:
            _pass(publisher, subscriber, value, number)
    subscriber.quiet()
    assert _losses(capture) == []


def test_message_released_behind_a_later_one_waits_behind_it():
    """The window is full with the later one, and the client answers nothing."""
    capture, publisher, subscriber = routed(1)
    _pass(publisher, subscriber, b"1", 1)
    publisher.publish(C2S, b"t", b"2", 2, 2)
    _exchange(publisher, C2S, b"3", 3)
    subscriber.publish(S2C, b"t", b"3", 1, 2)
    publisher.release(C2S, 2)
    subscriber.quiet()
    assert _losses(capture) == [("unexplained", "not_knowable")]


def test_equal_values_released_behind_later_ones_are_all_there():
    """The broker passes on what is of QoS 2 when it is released, all of it at QoS 1."""
    capture, publisher, subscriber = routed(1)
    for number, value in enumerate((b"30", b"31", b"31", b"30"), 1):
        _exchange(publisher, C2S, value, number, after_ms=800)
        if number != 3:  # it is lost
            _exchange(subscriber, S2C, value, number)
    capture.now += 9_000_000
    _pass(publisher, subscriber, b"30", 5)
    for number, value in ((6, b"30"), (7, b"31")):
        publisher.publish(C2S, b"t", value, 2, number)
    _pass(publisher, subscriber, b"30", 8)
    for number, value in ((6, b"30"), (7, b"31")):
        publisher.release(C2S, number)
        _exchange(subscriber, S2C, value, number)
    subscriber.quiet()
    assert lost_of(capture.audit()) == [(3,)]


@pytest.mark.parametrize("after_ms", [1, 9000])
def test_copy_for_a_subscription_that_begins_meanwhile_is_no_duplicate(after_ms):
    """A broker passes a message of QoS 2 on when it is released."""
    capture, publisher, subscriber = routed()
    publisher.publish(C2S, b"t", b"message 1", 2, 1)
    capture.now += after_ms * 1000
    subscriber.subscribe(b"+", packet_id=2)
    publisher.release(C2S, 1)
    for number in (1, 2):
        subscriber.exchange(S2C, b"t", b"message 1", number, qos=2)
    assert _losses(capture) == []


def test_copies_for_overlapping_subscriptions_have_no_order_among_them():
    """RabbitMQ has a queue for each QoS of a client, and each keeps the order."""
    capture, publisher, subscriber = routed(0)
    subscriber.subscribe(b"+", 1, packet_id=2)
    for talk, side in ((publisher, C2S), (subscriber, S2C), (subscriber, S2C)):
        for payload in (b"message 1", b"message 2", b"30", b"31", b"30"):
            talk.publish(side, b"t", payload)
    assert _losses(capture) == []
