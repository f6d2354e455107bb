"""Session by itself: the ring, its order, and the packet ids, up to 65,535 and around.

Against a model that keeps a list of messages and searches it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umqtt31.packet import new_buffer
from umqtt31.ram import RamStore
from umqtt31.session import Session

PUBACK, PUBREC, PUBCOMP = 0x40, 0x50, 0x70
PUBLISH, PUBREL, DUP = 0x30, 0x60, 0x08
BYTES = 16


def new_session(window=3, queue=5, held=2):
    store = RamStore()
    session = Session(store, window, queue, held, 3, 0)
    store.open(b"dev", window + queue, BYTES, held)
    return session


def add(session, qos=1, when=None):
    """A message into the queue -> its packet id."""
    packet_id = session.next_id() if qos else 0
    packet = bytes((PUBLISH | qos << 1, 14, packet_id >> 8, packet_id & 255)) + bytes(12)
    assert session.add(packet, BYTES, packet_id, qos, False, when)
    return packet_id


def sent(session, now=0):
    """All that is due -> [(type, packet id, is it marked DUP)]."""
    buf = new_buffer(BYTES)
    found = []
    while session.next(buf, now):
        found.append((buf[0] & 0xF0, buf[2] << 8 | buf[3], bool(buf[0] & DUP)))
    assert not session.is_due
    return found


def counts(session):
    return session.count, session.queued, session.again, session.owed


def check_ring(session):
    """Every slot stands once in the ring, and only those in use have an id."""
    assert sorted(session.order) == list(range(len(session.order)))
    for k, slot in enumerate(session.order):
        assert bool(session.ids[slot]) <= (k < session.count)
    assert 0 <= session.queued + session.again <= session.count
    assert 0 <= session.owed <= session.count - session.queued - session.again


def test_messages_leave_in_their_order_and_only_as_many_as_the_window():
    """RT-INFLIGHT, MQTT-4.6.0-1: the window is filled from the queue's front."""
    session = new_session()
    ids = [add(session) for _ in range(5)]
    assert counts(session) == (5, 5, 0, 0)
    assert sent(session) == [(PUBLISH, i, False) for i in ids[:3]]
    assert counts(session) == (5, 2, 0, 0)
    assert session.on_ack(PUBACK, ids[0])
    assert session.is_due
    assert sent(session) == [(PUBLISH, ids[3], False)]
    check_ring(session)


def test_acknowledgement_out_of_order_leaves_the_others_in_order():
    session = new_session()
    ids = [add(session) for _ in range(3)]
    sent(session)
    assert session.on_ack(PUBACK, ids[1])
    session.rewind(0)
    assert sent(session) == [(PUBLISH, ids[0], True), (PUBLISH, ids[2], True)]
    check_ring(session)


def test_acknowledgement_while_all_is_to_be_sent_again_takes_the_message_out():
    """31-3.4-PUBACK: a late answer counts, and its message is not sent again."""
    session = new_session()
    ids = [add(session) for _ in range(3)]
    sent(session)
    session.rewind(1)
    assert session.on_ack(PUBACK, ids[0]) and session.on_ack(PUBACK, ids[2])
    assert counts(session) == (1, 0, 1, 0)
    assert sent(session) == [(PUBLISH, ids[1], True)]


@pytest.mark.parametrize("packet_id", [0, 2, 65535])
def test_acknowledgement_of_nothing_in_flight_changes_nothing(packet_id):
    """MQTT-4.3.2-2: a stray, an id that only waits, and 0."""
    session = new_session(window=1)
    add(session)
    add(session)
    sent(session)
    before = counts(session), list(session.ids), list(session.order)
    for first in (PUBACK, PUBREC, PUBCOMP):
        assert not session.on_ack(first, packet_id)
    assert (counts(session), session.ids, session.order) == before
    assert session.stats.strays == 3


def test_acknowledgement_of_an_empty_session_is_a_stray_even_with_id_0():
    session = new_session()
    add(session)
    sent(session)
    assert session.on_ack(PUBACK, 1)
    assert not session.on_ack(PUBACK, 0) and not session.on_ack(PUBACK, 1)
    assert counts(session) == (0, 0, 0, 0)


def test_pubrels_leave_in_the_order_of_their_messages():
    """31-4.3-STAGE: the second one's waits until the first one's PUBREC is there."""
    session = new_session()
    first, second = add(session, 2), add(session, 2)
    sent(session)
    assert session.on_ack(PUBREC, second)
    assert sent(session) == []
    assert session.on_ack(PUBREC, first)
    assert sent(session) == [(PUBREL, first, False), (PUBREL, second, False)]
    session.rewind(0)
    assert sent(session) == [(PUBREL, first, True), (PUBREL, second, True)]
    assert session.on_ack(PUBCOMP, second) and session.on_ack(PUBCOMP, first)
    check_ring(session)
    assert counts(session) == (0, 0, 0, 0)


def test_interval_doubles_with_each_try_and_begins_anew_with_the_next_message():
    """31-4.2-RETRY: 1 s, 2 s, 4 s … 64 s."""
    session = new_session()
    session.retry_ms = 1000
    ids = [add(session), add(session)]
    sent(session)
    for tries in (0, 1, 2, 3, 4, 5, 6, 6):
        assert session.retry_in(0, 10**6) == 1000 << tries
        session.rewind(1)
        assert session.retry_in(0, 10**6) == 10**6
        sent(session)
    session.on_ack(PUBACK, ids[0])
    assert session.retry_in(0, 10**6) == 1000


def test_ids_wrap_behind_65535_and_pass_by_those_in_use():
    """31-2.4-ID: 0 is none, and neither is one that waits for its answer."""
    session = new_session(window=4)
    session.last_id = 65533
    session.control_id = 2
    ids = [add(session) for _ in range(4)]
    assert ids == [65534, 65535, 1, 3]
    sent(session)
    session.last_id = 65532
    assert [add(session), add(session)] == [65533, 4]


def test_id_end_never_lies_behind_an_id_in_use():
    """What publish() relies on: all ids from the last one to `id_end` are free."""
    session = new_session(window=2)
    session.last_id = 9
    stuck = add(session)
    sent(session)
    session.last_id = 3
    assert (session.next_id(), session.id_end) == (4, stuck)
    session.control_id = 7
    assert (session.next_id(), session.id_end) == (4, 7)
    session.last_id = 65535
    assert (session.next_id(), session.id_end) == (1, 7)


def test_all_ids_but_one_in_use_then_that_one_is_found():
    session = new_session(window=65534, queue=0)
    session.ids[:] = list(range(1, 40000)) + list(range(40001, 65536))
    session.last_id = 39990
    assert session.next_id() == 40000
    assert session.id_end == 40001


def test_held_ids_keep_their_order_and_an_unknown_one_changes_nothing():
    """MQTT-4.3.3-12, RT-AWAITREL-T: the oldest is the first to be given up."""
    session = new_session(held=3)
    session.held_ms = 1000
    for at, packet_id in enumerate((7, 8, 9)):
        session.hold(packet_id, at * 100)
    session.release(5)
    assert session.held == [7, 8, 9] and session.held_in(300, 10**6) == 700
    session.release(7)
    assert session.held[: session.held_count] == [8, 9]
    assert session.held_in(300, 10**6) == 800
    session.clear_held()
    assert session.held == [0, 0, 0] and session.held_in(300, 10**6) == 10**6


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "send", "ack", "rewind", "give up"]), st.integers(0, 2**16)),
    max_size=60,
)


@settings(max_examples=300)
@given(STEPS)
def test_any_steps_keep_the_order_and_lose_nothing(steps):
    """MQTT-4.6.0-1, MQTT-4.3.2-1: QoS 1, against a list of [id, sent here, sent ever]."""
    session = new_session()
    model = []
    for name, number in steps:
        in_flight = [m for m in model if m[2]]
        if name == "add" and len(model) < len(session.order):
            model.append([add(session), False, False])
        elif name == "send":
            expected = []
            for message in model[:3]:
                if not message[1]:
                    expected.append((PUBLISH, message[0], message[2]))
                    message[1:] = True, True
            assert sent(session) == expected
        elif name == "ack" and in_flight:
            message = in_flight[number % len(in_flight)]
            assert session.on_ack(PUBACK, message[0])
            model.remove(message)
        elif name == "rewind":
            session.rewind(number % 2)
            for message in model:
                message[1] = False
        elif name == "give up" and len(model) > len(in_flight):
            message = model[len(in_flight)]
            assert session.remove(len(in_flight)) == message[0]
            model.remove(message)
        check_ring(session)
        assert [session.ids[slot] for slot in session.order[: session.count]] == [
            message[0] for message in model
        ]
        assert session.count - session.queued == sum(message[2] for message in model)
