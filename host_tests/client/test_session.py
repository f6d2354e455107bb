"""Session by itself: the ring, its order, packet ids, the window, and the received ids.

Against a model that keeps a list of messages and searches it.  What runs here goes
through the faces that `protocol` uses.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_tests.client import wire
from umqtt31 import BUSY, FULL, TOO_LARGE
from umqtt31.held import Held
from umqtt31.protocol import Protocol
from umqtt31.ram import RamStore
from umqtt31.runs import Runs

PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
SUBSCRIBE = 0x82
BYTES = 32
WINDOW, QUEUE = 3, 5


def new_session(window=WINDOW, queue=QUEUE, dup=8, is_online=True, last_id=0):
    session = Protocol(RamStore(), window, queue, BYTES, 3 if dup else 4, 4)
    session.open(b"dev", 20)
    session.last_id = last_id
    if is_online:
        connect(session)
    return session


def connect(session):
    """On a stream that takes nothing by itself: take() does."""
    session.write = lambda buf, at, n: None
    session.connected()


def publish(session, qos=1, payload=b"x"):
    return session.accept(b"t", payload, qos << 1)


def take(session):
    """All that is due -> the packets, whole."""
    data = b""
    while session.left or session.is_due and session.next():
        data += bytes(session.out[session.end - session.left : session.end])
        session.left = 0
    return wire.split(data)


def receive(session, data):
    """The stream gives `data`, as far as is asked for at once."""
    framing = session.framing
    while data:
        n = min(framing.need, len(data))
        framing.into[:n] = data[:n]
        data = data[n:]
        session.received(n)


def again(session):
    """The connection is lost, and another one follows."""
    session.lost()
    connect(session)


def go_to(session, packet_id):
    """The next id is the one behind `packet_id`, as far as it is free."""
    session.last_id = packet_id
    session._id_end = 0  # as in a new session


def sent(packet_id, qos=1, dup=0, payload=b"x"):
    return wire.publish(b"t", payload, qos, packet_id, dup)


def test_messages_leave_in_their_order_and_only_as_many_as_the_window():
    """RT-INFLIGHT, MQTT-4.6.0-1: the window is filled from the queue's front."""
    session = new_session()
    assert [publish(session) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert take(session) == [sent(1), sent(2), sent(3)]
    assert (session.count, session.inflight()) == (5, 3)
    session.on_ack(PUBACK, 1)
    assert take(session) == [sent(4)]
    session.on_ack(PUBACK, 4)
    assert take(session) == [sent(5)]


def test_acknowledgement_out_of_order_leaves_the_others_in_order():
    session = new_session()
    for _ in range(3):
        publish(session)
    take(session)
    session.on_ack(PUBACK, 2)
    session.rewind()
    assert take(session) == [sent(1, dup=1), sent(3, dup=1)]


def test_acknowledgement_while_all_is_to_be_sent_again_takes_the_message_out():
    """31-3.4-PUBACK: a late answer counts, and its message is not sent again."""
    session = new_session()
    for _ in range(3):
        publish(session)
    take(session)
    session.rewind()
    session.on_ack(PUBACK, 1)
    session.on_ack(PUBACK, 3)
    assert (session.count, session.inflight()) == (1, 1)
    assert take(session) == [sent(2, dup=1)]


@pytest.mark.parametrize("packet_id", [0, 2, 65535])
def test_acknowledgement_of_nothing_in_flight_changes_nothing(packet_id):
    """MQTT-4.3.2-2: a stray, an id that only waits, and 0."""
    session = new_session(window=1)
    publish(session)
    publish(session)
    take(session)
    for first in (PUBACK, PUBCOMP):
        session.on_ack(first, packet_id)
    assert session.stats.strays == 2
    assert (session.count, session.inflight(), take(session)) == (2, 1, [])
    session.on_ack(PUBREC, packet_id)
    # What nobody knows any more may end on the other side, too.
    assert take(session) == [wire.pubrel(packet_id)]
    assert (session.count, session.inflight()) == (2, 1)
    session.on_ack(PUBACK, 1)
    assert take(session) == [sent(2)]


def test_acknowledgement_of_an_empty_session_is_a_stray_even_with_id_0():
    session = new_session()
    publish(session)
    take(session)
    for packet_id in (1, 0, 1):
        session.on_ack(PUBACK, packet_id)
    assert (session.stats.strays, session.count, session.unsent) == (2, 0, 0)


def test_pubrels_leave_in_the_order_of_their_messages_at_level_3():
    """31-4.3-STAGE: the second one's waits until the first one's PUBREC is there."""
    session = new_session()
    publish(session, 2)
    publish(session, 2)
    take(session)
    session.on_ack(PUBREC, 2)
    assert take(session) == []
    session.on_ack(PUBREC, 1)
    assert take(session) == [wire.pubrel(1), wire.pubrel(2)]
    session.rewind()
    assert take(session) == [wire.pubrel(1, dup=1), wire.pubrel(2, dup=1)]
    session.on_ack(PUBCOMP, 2)
    session.on_ack(PUBCOMP, 1)
    assert (session.count, session.stats.strays) == (0, 0)


def test_pubrels_leave_in_the_order_of_the_pubrecs_at_level_4():
    """MQTT-4.6.0-4."""
    session = new_session(dup=0)
    publish(session, 2)
    publish(session, 2)
    take(session)
    session.on_ack(PUBREC, 2)
    assert take(session) == [wire.pubrel(2)]
    session.on_ack(PUBREC, 1)
    assert take(session) == [wire.pubrel(1)]
    again(session)
    assert take(session) == [wire.pubrel(1), wire.pubrel(2)]


def test_ids_wrap_behind_65535_and_pass_by_those_in_use():
    """31-2.4-ID: 0 is none, and neither is one that waits for its answer."""
    session = new_session(window=6, last_id=1)
    assert publish(session) == 2
    go_to(session, 65533)
    assert [publish(session) for _ in range(4)] == [65534, 65535, 1, 3]
    go_to(session, 65532)
    take(session)
    assert publish(session) == 65533
    assert publish(session) == 4


def test_request_has_an_id_that_no_message_gets():
    """31-2.4-ID: SUBSCRIBE, too."""
    session = new_session(window=6, last_id=8)
    request = [b"a"], bytearray(wire.subscribe(0, (b"a", 1))), 2, bytearray(1)
    session.ask(request, [], 0)
    assert take(session) == [wire.subscribe(9, (b"a", 1))]
    go_to(session, 7)
    assert [publish(session), publish(session)] == [8, 10]
    receive(session, wire.suback(8, 1))
    assert session.request is request
    receive(session, wire.suback(9, 1))
    assert session.request is None and request[3][0] == 1
    go_to(session, 8)
    assert publish(session) == 9


def test_refused_publish_gives_no_id_away_twice():
    """31-2.4-ID: however often a full client refuses, just below an id in use."""
    session = new_session(window=3, queue=0, last_id=9)
    assert publish(session) == 10
    take(session)
    go_to(session, 7)
    assert [publish(session), publish(session)] == [8, 9]
    take(session)
    for _ in range(20):
        assert publish(session) == -FULL
    session.on_ack(PUBACK, 8)
    assert publish(session) == 11


def test_all_ids_but_one_in_use_then_that_one_is_found():
    session = new_session(window=65535, queue=0, last_id=40000)
    for _ in range(65534):
        publish(session)
        session.left = 0
    go_to(session, 39995)  # a search from farther away takes long
    assert publish(session) == 40000
    session.on_ack(PUBACK, 39990)
    go_to(session, 39985)
    assert publish(session) == 39990


def test_refusals_change_nothing():
    """RT-INFLIGHT."""
    session = new_session(window=1, queue=1)
    assert publish(session, payload=b"x" * 40) == -TOO_LARGE
    assert publish(session) == 1 and publish(session) == 2
    assert publish(session) == -FULL
    session.lock(True)
    assert publish(session) == -BUSY
    session.lock(False)
    assert take(session) == [sent(1)] and session.count == 2
    session.lost()
    assert publish(session) == -FULL and publish(session, 0) == -FULL
    connect(session)
    assert take(session) == [sent(1, dup=1)]


class Message:
    """What the model knows of one message."""

    def __init__(self, packet_id, qos, payload):
        self.packet_id = packet_id
        self.qos = qos
        self.payload = payload
        self.state = "publish"  # or "owed", "released"
        self.is_here = False  # went out on this connection, since the last time-out
        self.was_sent = False
        self.was_released = False


class Model:
    """The same session as a list of messages."""

    def __init__(self, dup, session):
        self.dup = dup
        self.session = session
        self.messages = []
        self.answers = []
        self.is_online = True

    def inflight(self):
        k = 0
        while k < len(self.messages) and (self.messages[k].is_here or self.messages[k].was_sent):
            k += 1
        return k

    def has_room(self):
        flight = self.inflight()
        room = max(QUEUE, WINDOW - flight if self.is_online else 0)
        return len(self.messages) - flight < room and len(self.messages) < WINDOW + QUEUE

    def release(self, message):
        dup = self.dup and message.was_released
        message.state = "released"
        message.was_released = True
        self.answers.append(wire.pubrel(message.packet_id, dup=1 if dup else 0))

    def on_ack(self, first, packet_id):
        found = [m for m in self.messages if m.was_sent and m.packet_id == packet_id]
        message = found[0] if found else None
        if first == PUBREC and message and message.qos == 2:
            if message.state != "owed":
                message.state = "owed"
                is_oldest = message is self.messages[0]
                if message.is_here and (is_oldest or not self.dup):
                    self.release(message)
        elif first == PUBREC and not message:
            self.answers.append(wire.pubrel(packet_id))
        elif message and (
            (first == PUBACK and message.qos == 1)
            or (first == PUBCOMP and message.state == "released")
        ):
            self.messages.remove(message)

    def take(self):
        found = []
        while self.is_online:
            for message in self.messages:
                if message.is_here and message.state == "owed":
                    self.release(message)
                elif message.is_here and message.qos == 2 and message.state == "publish":
                    if self.dup:
                        break
            found += self.answers
            self.answers = []
            here = sum(m.is_here for m in self.messages)
            if here == len(self.messages):
                break
            message = self.messages[here]
            if here >= WINDOW and not message.was_sent:
                break
            message.is_here = True
            if message.state == "publish":
                dup = int(message.was_sent)
                found.append(sent(message.packet_id, message.qos, dup, message.payload))
                message.was_sent = message.qos > 0
                if not message.qos:
                    self.messages.remove(message)
            else:
                message.state = "owed"
        return found


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish", "publish", "publish", "take", "take", "ack", "ack", "ack", "answer any"]
            + ["rewind", "lose", "connect", "new session", "give up"]
        ),
        st.integers(0, 2**16),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(STEPS, st.sampled_from([8, 0]), st.sampled_from([0, 7, 65530, 65534]))
def test_any_steps_keep_the_order_and_lose_nothing(steps, dup, last_id):
    """MQTT-4.6.0-1, MQTT-4.3.2-1, MQTT-4.3.3-1, MQTT-4.3.3-6, 31-2.1-DUP, 31-4.3-STAGE."""
    session = new_session(dup=dup, last_id=last_id)
    session.mqueue_store_qos0 = True
    model = Model(dup, session)
    for name, number in steps:
        take_step(session, model, name, number)
        kept = [m.packet_id for m in model.messages]
        ids = [one for one in kept if one]
        assert len(set(ids)) == len(ids)
        assert session.count == len(kept) and session.inflight() == model.inflight()
        assert all(session._find(one) >= 0 for one in ids)
    if not model.is_online:
        connect(session)
        model.is_online = True
    assert take(session) == model.take()


def take_step(session, model, name, number):
    """One step of both, with the same outcome."""
    if name == "publish":
        qos, payload = number % 3, b"%d" % number
        # What could go at once does, so that nothing depends on when it is taken.
        assert take(session) == model.take()
        packet_id = publish(session, qos, payload)
        if not qos and model.is_online and all(m.is_here for m in model.messages):
            # At QoS 0 it needs no place where nothing waits before it.
            assert packet_id == 0
            assert take(session) == [sent(0, 0, 0, payload)]
        elif model.has_room():
            assert 0 < packet_id < 65536 if qos else not packet_id
            model.messages.append(Message(packet_id, qos, payload))
            assert take(session) == model.take()
        else:
            assert packet_id == -FULL
    elif name == "take":
        assert take(session) == model.take()
    elif name in ("ack", "answer any") and model.is_online:
        ids = [m.packet_id for m in model.messages if m.qos]
        if name == "answer any":
            first, packet_id = (PUBACK, PUBREC, PUBCOMP)[number % 3], number % 12
        elif ids:
            k = number % len(ids)
            packet_id = ids[k]
            message = [m for m in model.messages if m.qos][k]
            first = PUBACK if message.qos == 1 else (PUBREC, PUBCOMP)[number // 8 % 2]
        else:
            return
        session.on_ack(first, packet_id)
        model.on_ack(first, packet_id)
    elif name == "rewind" and model.is_online:
        assert take(session) == model.take()
        session.rewind()
        for message in model.messages:
            message.is_here = False
    elif name == "lose":
        assert take(session) == model.take()
        session.lost()
        model.is_online = False
        for message in model.messages:
            message.is_here = False
    elif name in ("connect", "new session") and not model.is_online:
        if name == "new session":
            session.renew(True)
            for message in model.messages:
                message.was_sent = message.was_released = False
                message.state = "publish"
        connect(session)
        model.is_online = True
    elif name == "give up" and len(model.messages) > model.inflight():
        k = model.inflight()
        assert session.remove(k) == model.messages.pop(k).packet_id


class Released:
    """The store's part: what was released, in order."""

    def __init__(self):
        self.ids = []

    def release(self, packet_id):
        self.ids.append(packet_id)


@pytest.mark.parametrize("first", [7, 65497])
@pytest.mark.parametrize(("kind", "beside"), [(Held, 16), (Runs, 1)])
def test_held_ids_are_given_up_oldest_first(kind, beside, first):
    """RT-AWAITREL-T, MQTT-4.3.3-12: an unknown id changes nothing."""
    store = Released()
    held = kind(10, store)
    for at, packet_id in enumerate((first, first + 33, first + beside)):
        held.add(packet_id, at * 100)
    assert held.remove(5) and held.count == 3 and not store.ids
    assert held.expires_in(300, 1000) == 900  # the first and the one beside it grew last at 200
    held.expire()
    assert (store.ids, held.count) == ([first, first + beside], 1)
    held.clear()
    assert held.count == 0 and held.find(first + 33) < 0


def test_runs_of_an_earlier_life_count_and_are_given_up_as_others_are():
    """RT-AWAITREL-T: their time begins with this life."""
    store = Released()
    held = Runs(10, store)
    held.restore(5, 9, 700)
    held.restore(20, 20, 700)
    held.add(30, 800)
    assert (held.count, held.expires_in(800, 1000)) == (7, 900)
    held.expire()
    assert (store.ids, held.count) == ([5, 6, 7, 8, 9], 2)
    assert held.expires_in(800, 1000) == 900
    held.expire()
    assert held.expires_in(800, 1000) == 1000


def test_runs_that_are_all_used_grow_and_one_of_them_may_be_split():
    """RT-AWAITREL: so a PUBREL from the middle of a burst is answered."""
    held = Runs(100)
    for packet_id in (1, 2, 3, 11, 21, 31, 41, 51, 61):
        assert held.has_room(packet_id)
        held.add(packet_id, 0)
    assert not held.has_room(71)
    for packet_id in (4, 62):
        assert held.has_room(packet_id)
        held.add(packet_id, 0)
    assert held.remove(2)
    assert [k for k in range(1, 70) if held.find(k) >= 0] == [1, 3, 4, 11, 21, 31, 41, 51, 61, 62]


def test_held_ids_find_room_in_a_set_that_is_there_when_all_are_used():
    held = Held(64)
    for k in range(held.places):
        assert held.has_room(30 * k)
        held.add(30 * k, 0)
    assert held.has_room(1) and held.has_room(30 * (held.places - 1) + 29)
    assert not held.has_room(30 * held.places)
    held.add(1, 0)
    assert held.find(1) >= 0 and held.count == held.places + 1


# Of a table of held ids.
STEPS = ["add", "next", "remove", "release"]


def meant(step, packet_id, held):
    """-> the id of a step: "next" is behind the last one held, "release" for one that is held."""
    if step == "next" and held:
        return max(held) + 1
    if step == "release" and held:
        return sorted(held)[packet_id % len(held)]
    return packet_id


@settings(max_examples=300)
@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 500))),
)
def test_held_ids_are_a_set(most, steps):
    """MQTT-4.3.3-10, RT-AWAITREL: in whatever order they come, and never more than `most`."""
    store = Released()
    held = Held(most, store)
    model = set()
    for name, packet_id in steps:
        packet_id = meant(name, packet_id, model)
        if name in ("remove", "release"):
            del store.ids[:]
            assert held.remove(packet_id)
            assert store.ids == ([packet_id] if packet_id in model else [])
            model.discard(packet_id)
        elif packet_id not in model and held.has_room(packet_id):
            held.add(packet_id, 0)
            model.add(packet_id)
        elif packet_id not in model:
            # As many ids as there are places always find one.
            assert len(model) == most or len(model) >= held.places
        assert held.count == len(model) <= most
        assert (held.find(packet_id) >= 0) == (packet_id in model)
    assert {k for k in range(600) if held.find(k) >= 0} == model


@settings(max_examples=300)
@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 60))),
)
def test_runs_of_held_ids_are_a_set(most, steps):
    """MQTT-4.3.3-10, RT-AWAITREL: whatever its runs are, and never more than `most`."""
    store = Released()
    held = Runs(most, store)
    model = set()
    for name, packet_id in steps:
        packet_id = meant(name, packet_id, model)
        if name in ("remove", "release"):
            del store.ids[:]
            is_removed = held.remove(packet_id)
            inside = {packet_id - 1, packet_id, packet_id + 1} <= model
            assert is_removed or inside
            assert store.ids == ([packet_id] if is_removed and packet_id in model else [])
            if is_removed:
                model.discard(packet_id)
        elif packet_id not in model and held.has_room(packet_id):
            held.add(packet_id, 0)
            model.add(packet_id)
        elif packet_id not in model:
            # A burst of consecutive ids always has room.
            assert len(model) == most or packet_id - 1 not in model
        assert held.count == len(model) <= most
        assert {k for k in range(70) if held.find(k) >= 0} == {k for k in model if k < 70}
