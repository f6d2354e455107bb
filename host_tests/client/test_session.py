"""What a session keeps, by generated steps: order, packet ids, window, and the received ids.

Against models that keep lists and sets, and search them.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_tests.client import wire
from host_tests.client.dialogue import Dialogue, code_of
from umqtt31 import CLOSED, FULL

PUBACK, PUBREC, PUBCOMP = 0x40, 0x50, 0x70
WINDOW, QUEUE = 3, 5
RETRY_S = 30


class Message:
    """What the model knows of one message."""

    state = "publish"  # or "owed", "released"
    is_here = False  # went out on this connection, since the last time-out
    was_sent = was_released = False

    def __init__(self, packet_id, qos, payload):
        self.packet_id, self.qos, self.payload = packet_id, qos, payload


class Model:
    """A session as a list of messages."""

    def __init__(self, level):
        self.dup = level == 3  # of PUBREL
        self.messages = []
        self.answers = []
        self.is_online = True

    def inflight(self):
        return sum(m.is_here or m.was_sent for m in self.messages)

    def has_room(self):
        waiting = len(self.messages) - self.inflight()
        return waiting < QUEUE or self.is_online and len(self.messages) < WINDOW

    def all_go_again(self):
        for message in self.messages:
            message.is_here = False

    def renew(self):
        for message in self.messages:
            message.was_sent = message.was_released = False
            message.state = "publish"

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
                if message.is_here and (message is self.messages[0] or not self.dup):
                    self.release(message)
        elif first == PUBREC and not message:
            self.answers.append(wire.pubrel(packet_id))
        elif message and (
            (first == PUBACK and message.qos == 1)
            or (first == PUBCOMP and message.state == "released")
        ):
            self.messages.remove(message)

    def take(self):
        """-> what goes out now, packet by packet."""
        found = []
        while self.is_online:
            for message in self.messages:
                if message.is_here and message.state == "owed":
                    self.release(message)
                elif message.is_here and message.qos == 2 and message.state == "publish":
                    if self.dup:  # 31-4.3-STAGE
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
                fields = message.payload, message.qos, message.packet_id, int(message.was_sent)
                found.append(wire.publish(b"t", *fields))
                message.was_sent = True
            else:
                message.state = "owed"
        return found


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish"] * 4 + ["ack"] * 4 + ["answer any", "time-out", "lose"]
            + ["connect", "new session"]
        ),
        st.integers(0, 2**16),
    ),
    min_size=20,  # or most of them are too short to get anywhere
    max_size=60,
)  # fmt: skip


@settings(max_examples=40)
@given(STEPS, st.sampled_from([3, 4]), st.sampled_from([1, 8, 65530, 65534]))
def test_any_steps_keep_the_order_and_lose_nothing(steps, level, first_id):
    """MQTT-4.6.0-1, MQTT-4.3.2-1, MQTT-4.3.3-1, MQTT-4.3.3-6, 31-2.1-DUP, 31-2.4-ID, 31-4.3-STAGE,
    RT-INFLIGHT."""
    d = Dialogue(
        level=level,
        first_id=first_id,
        max_inflight=WINDOW,
        max_mqueue_len=QUEUE,
        queue_bytes=4096,
        keepalive=0,
        retry_interval=RETRY_S,
    )
    model = Model(level)
    next_id = first_id
    for name, number in steps:
        if name == "publish":
            next_id = publish(d, model, number % 3, b"%d" % number, next_id)
        else:
            take_step(d, model, name, number)
        assert look(d) == model.take()
        assert d.client.inflight == model.inflight()
        assert d.client.inflight + d.client.queued == len(model.messages)
    if not model.is_online:
        take_step(d, model, "connect", 0)
    assert look(d) == model.take()


def look(d):
    """-> what the client sent."""
    if d.client.is_connected:
        d.work()
        for _ in range(WINDOW + QUEUE):
            if not d.client.next_due_ms():  # behind a PUBREL that waits
                d.work()
    return d.take_packets()


def publish(d, model, qos, payload, next_id):
    """-> the next packet id."""
    if not qos:  # it needs no place, and has none to wait in
        if model.is_online:
            assert d.publish(payload, 0) == 0
            assert look(d) == [wire.publish(b"t", payload)]
        else:
            assert code_of(d.publish, payload, 0) == CLOSED
    elif model.has_room():
        assert d.publish(payload, qos) == next_id
        model.messages.append(Message(next_id, qos, payload))
        next_id = next_id % 65535 + 1
    else:
        assert code_of(d.publish, payload, qos) == FULL
    return next_id


def take_step(d, model, name, number):
    """One step of both."""
    if name == "ack" and model.is_online and model.messages:
        message = model.messages[number % len(model.messages)]
        first = PUBACK if message.qos == 1 else (PUBREC, PUBCOMP)[number // 8 % 2]
        answer(d, model, first, message.packet_id)
    elif name == "answer any" and model.is_online:
        answer(d, model, (PUBACK, PUBREC, PUBCOMP)[number % 3], 1 + number % 12)
    elif name == "time-out" and model.is_online and model.messages:
        d.clock.now_ms += d.client.next_due_ms()
        model.all_go_again()
    elif name == "lose" and model.is_online:
        d.lose()
        model.is_online = False
        model.all_go_again()
    elif name in ("connect", "new session") and not model.is_online:
        is_new = name == "new session" and d.level > 3
        d.connect(False, is_present=d.level > 3 and not is_new)
        if is_new:
            model.renew()
        model.is_online = True


def answer(d, model, first, packet_id):
    d.stream.feed(wire.packet(first, bytes((packet_id >> 8, packet_id & 255))))
    model.on_ack(first, packet_id)


def meant(step, packet_id, held):
    """-> the id of a step: "next" is behind the last one held, "release" for one that is held."""
    if step == "next" and held:
        return max(held) + 1
    if step == "release" and held:
        return sorted(held)[packet_id % len(held)]
    return packet_id


@pytest.mark.parametrize("level", [3, 4])
@settings(max_examples=15)
@given(
    most=st.integers(1, 60),
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "next", "remove", "release"]), st.integers(1, 900)),
        min_size=20,
        max_size=120,
    ),
)
def test_received_ids_are_a_set(level, most, steps):
    """MQTT-4.3.3-10, MQTT-4.3.3-12, RT-AWAITREL: in whatever order they come, never more than
    `most`, and one that finds no place is not answered."""
    d = Dialogue(level=level, keepalive=0, max_awaiting_rel=most)
    held = set()
    for name, packet_id in steps:
        packet_id = meant(name, packet_id, held)
        if name in ("remove", "release"):
            d.b2c(wire.pubrel(packet_id))
            d.c2b(wire.pubcomp(packet_id))
            held.discard(packet_id)
            assert not d.take_messages()
            continue
        neighbours = {one // 30 for one in held}
        has_place = packet_id // 30 in neighbours or len(neighbours) < d.places()
        is_new = packet_id not in held
        if is_new and (len(held) == most or not has_place):
            d.stream.feed(wire.publish(b"t", b"x", 2, packet_id))
            d.work()
            d.c2b()
            assert d.client.stats.refused and not d.take_messages()
            d.lose()  # the broker sends it again on the next connection
            d.connect(False)
            continue
        d.b2c(wire.publish(b"t", b"x", 2, packet_id))
        d.c2b(wire.pubrec(packet_id))
        assert len(d.take_messages()) == is_new
        held.add(packet_id)
