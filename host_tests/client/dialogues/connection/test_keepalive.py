"""Keep alive on both silences.  MQTT 3.1 §2.2 (keep alive), §3.12, §3.13."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import pingreq, pingresp, puback, publish, suback, subscribe
from umqtt31 import TIMEOUT

# What level 5 does in their place is in `level_5/`.
BELOW_5 = ("test_next_due_ms_never_sleeps_past_what_is_due",)


# 311-3.1.2-23.
def test_c2b_silence_is_ended_by_pingreq_within_keepalive():
    """31-2.2-KA, 31-3.12-PING: also over the wrap of the ticks.

    C: PINGREQ within 60 s
    B: PINGRESP; again and again
    """
    d = Dialogue(keepalive=60)
    for _ in range(5):
        due = d.client.next_due_ms()
        assert 0 < due <= 60000
        d.wait((due - 1) / 1000)
        d.c2b()
        d.wait(0.001)
        d.c2b(b"\xc0\x00")
        d.b2c(b"\xd0\x00")
    assert d.client.stats.pings == 5


def test_c2b_sending_alone_puts_off_no_ping_for_ever():
    """31-2.2-KA: silence of the broker counts too, for a link that only sends may be dead.

    C: PUBLISH QoS 0 every 10 s; B: nothing
    C: PINGREQ within 60 s; no PINGRESP: closes with a time-out
    """
    d = Dialogue(keepalive=60)
    seconds = 0
    while pingreq() not in d.stream.sent:
        d.publish(b"x", 0)
        d.wait(10)
        seconds += 10
        assert seconds <= 60
    try:
        for _ in range(7):
            d.publish(b"x", 0)
            d.wait(10)
        raise AssertionError("a dead link was not noticed")
    except OSError as error:
        assert error.code == TIMEOUT
    assert d.stream.is_closed


def test_b2c_answer_puts_off_no_ping():
    """31-2.2-KA: nor is it a packet of the client.

    C: PUBLISH 1 and 2; B: PUBACK 1 and 2, 20 s later each
    C: PINGREQ within 60 s
    """
    d = Dialogue(keepalive=60, retry_interval=0)
    d.publish()
    d.publish()
    for packet_id in (1, 2):
        d.stream.take()
        for _ in range(10):
            d.wait(2)
        d.b2c(puback(packet_id))
    d.wait(d.client.next_due_ms() / 1000)
    d.c2b(pingreq())
    assert d.clock.now_ms <= 60000


def test_c2b_traffic_both_ways_needs_no_ping():
    """31-2.2-KA: PINGREQ only when there is nothing else.

    C: PUBLISH, B: PUBLISH, every 10 s
    """
    d = Dialogue(keepalive=60)
    for _ in range(30):
        d.publish(b"x", 0)
        d.b2c(publish(b"t", b"x"))
        d.wait(10)
    assert d.stream.take() == publish(b"t", b"x") * 30


def test_b2c_no_pingresp_in_time_closes_the_connection():
    """31-2.2-KATIMEOUT.

    C: PINGREQ
    B: nothing for 60 s
    C: closes
    """
    d = Dialogue(keepalive=60)
    d.wait(60)
    d.c2b(pingreq())
    due = d.client.next_due_ms()
    assert 0 < due <= 60000
    d.clock.sleep_ms(due)
    assert code_of(d.client.poll) == TIMEOUT
    assert d.stream.is_closed and not d.client.is_connected
    d.connect()
    d.wait(1)
    d.c2b()


def test_next_due_ms_never_sleeps_past_what_is_due():
    """31-2.2-KA, RT-INTERVAL: sleeping just so long meets every deadline, none too early."""
    d = Dialogue(keepalive=100, retry_interval=20)
    d.publish()
    d.stream.take()
    assert d.client.next_due_ms() == 20000
    d.wait(20)
    assert d.client.next_due_ms() == 40000
    d.b2c(b"\x40\x02\x00\x01")
    d.stream.take()
    due = d.client.next_due_ms()
    assert 0 < due <= 100000
    d.wait(due / 1000)
    d.c2b(pingreq())


# 31-3.12-PING: while the peer answers all is well.
def test_c2b_ping_by_hand_more_often_than_keepalive_then_answers_keep_the_connection():
    d = Dialogue(keepalive=10)
    for _ in range(50):
        d.client.ping()
        d.b2c(*[pingresp()] * (len(d.stream.take()) // 2))
        d.wait(2.4)
    assert d.client.is_connected


def test_c2b_ping_by_hand_behind_a_packet_that_is_stuck_is_not_sent():
    """It would stand in the middle of that packet.  After connect_timeout poll() says so."""
    d = Dialogue(connect_timeout=5)
    d.stream.is_blocked = True
    d.publish()
    d.wait(0)
    d.client.ping()
    d.wait(4.999)
    d.clock.now_ms += 1
    assert code_of(d.client.poll) == TIMEOUT
    assert d.stream.take() == b""


def test_request_in_the_place_of_a_ping_leaves_none_to_be_answered():
    """31-2.2-KATIMEOUT: no answer is awaited to what was never sent.

    The stream takes nothing; ping(), subscribe(); C: SUBSCRIBE 1; B: SUBACK 1; C: PINGREQ
    """
    d = Dialogue(keepalive=8, retry_interval=0)
    d.stream.is_blocked = True
    d.publish(b"waits", 0)
    d.client.ping()
    d.stream.is_blocked = False
    d.stream.answer(publish(b"t", b"waits") + subscribe(1, (b"a", 1)), suback(1, 1))
    assert d.client.subscribe(b"a", 1) == [1]
    d.wait(6)
    d.c2b(pingreq())
    d.b2c(pingresp())
    d.wait(3)
    assert d.client.is_connected
