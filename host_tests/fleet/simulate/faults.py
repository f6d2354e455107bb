"""Everything that can go wrong in a simulated fleet, one function for each kind.

`kinds` lists them.  A fault takes the place of one reading of one device:
`fault(world, device, ts)` puts its packets on the wire, writes into the truth what an
audit must find, and returns when the device is free again (microseconds).
"""

from host_tests.standin import packets

from .fleet import FORWARD_US, STEP_US

_SECOND = 1_000_000


def normal(world, device, ts):
    """A reading, published and forwarded."""
    _, payload = world.reading(device, ts)
    world.send(ts, device, payload)
    world.forward(ts + FORWARD_US, device, payload)
    if device.has_foreign and world.random.random() < 0.5:
        # Somebody else publishes one of the same values to the same topic.
        _, payload = world.reading(device, ts)
        world.forward(ts + 4 * _SECOND, device, payload)
        return ts + 5 * _SECOND
    return ts + 10_000


def _violation(world, requirement, client):
    world.truth.violations.append((requirement, client.name.decode()))


def never_sent(world, device, ts):
    """A number was used up, but the reading never left the device."""
    if not device.sequence:
        # Nobody can tell that the very first number was left out.
        ts = normal(world, device, ts)
    identity, payload = world.reading(device, ts, skip=1)
    world.truth.never_sent.append(world.identity(device, identity[3] - 1))
    world.send(ts, device, payload)
    world.forward(ts + FORWARD_US, device, payload)
    return ts + 10_000


def not_forwarded(world, device, ts):
    """The broker takes a reading and never forwards it."""
    identity, payload = world.reading(device, ts)
    world.send(ts, device, payload)
    world.lose(ts, device, identity)
    return ts + 10_000


def forwarded_twice(world, device, ts):
    """The broker forwards a QoS 2 message as two messages."""
    identity, payload = world.reading(device, ts)
    world.send(ts, device, payload)
    world.forward(ts + FORWARD_US, device, payload)
    world.forward(ts + _SECOND, device, payload)
    world.truth.duplicated.append(identity)
    _violation(world, "MQTT-4.3.3-10", device.subscriber)
    return ts + 2 * _SECOND


def overtaken(world, device, ts):
    """The broker forwards the second of two messages first."""
    _, first = world.reading(device, ts)
    _, second = world.reading(device, ts)
    world.send(ts, device, first)
    world.send(ts + 5_000, device, second)
    world.forward(ts + 5_000 + FORWARD_US, device, second)
    world.forward(ts + 10_000 + FORWARD_US, device, first)
    world.truth.overtaken.append((device.subscriber.name.decode(), device.topic.decode()))
    _violation(world, "MQTT-4.6.0-5", device.subscriber)
    return ts + 20_000


def _resent(world, device, ts, dup):
    identity, payload, packet_id = world.begin(ts, device)
    back = world.connect(world.cut(ts + 5_000, device), device, has_session=True)
    world.send(back, device, payload, dup, packet_id)
    world.forward(back + FORWARD_US, device, payload)
    world.truth.redelivered.append(identity)
    return back + 10_000


def resent(world, device, ts):
    """Legal: the connection breaks before the answer, the message is sent again with DUP."""
    return _resent(world, device, ts, 1)


def resent_without_dup(world, device, ts):
    """As `resent`, but the repeated PUBLISH does not say so."""
    _violation(world, "31-2.1-DUP", device)
    return _resent(world, device, ts, 0)


def dup_at_first(world, device, ts):
    """The first PUBLISH of a message has DUP set."""
    _, payload = world.reading(device, ts)
    world.send(ts, device, payload, 1)
    world.forward(ts + FORWARD_US, device, payload)
    requirement = ("MQTT-4.3.1-1", "MQTT-4.3.2-2", "MQTT-4.3.3-2")[device.qos]
    if device.qos and (device.has_broken or device.connections < 2):
        # A broken connection may have taken the first one with it.
        world.truth.excused.append((requirement, device.name.decode()))
    else:
        _violation(world, requirement, device)
    return ts + 10_000


def publish_after_pubrel(world, device, ts):
    """The connection breaks after PUBREL; the device starts over with PUBLISH."""
    identity, payload, packet_id = world.begin(ts, device)
    world.truth.redelivered.append(identity)
    world.emit(ts + STEP_US, device, 1, packets.pubrec(packet_id))
    world.emit(ts + 2 * STEP_US, device, 0, packets.pubrel(packet_id))
    world.forward(ts + FORWARD_US, device, payload)
    back = world.connect(world.cut(ts + 5_000, device), device, has_session=True)
    world.publish(back, device, 0, device.topic, payload, 2, packet_id, 1)
    world.answer(back, device, 0, 2, packet_id)
    _violation(world, "MQTT-4.3.3-6", device)
    return back + 10_000


def id_in_flight(world, device, ts):
    """A new message takes the packet id of one that is not acknowledged yet."""
    identity, first, packet_id = world.begin(ts, device)
    _, second = world.reading(device, ts)
    world.forward(ts + FORWARD_US, device, first)
    world.send(ts + 3_000, device, second, packet_id=packet_id)
    world.forward(ts + 3_000 + FORWARD_US, device, second)
    _violation(world, ("", "MQTT-4.3.2-1", "MQTT-4.3.3-1")[device.qos], device)
    world.truth.incomplete.append(identity)
    return ts + 10_000


def resend_order(world, device, ts):
    """Two messages are sent again in the wrong order."""
    one, first, first_id = world.begin(ts, device)
    two, second, second_id = world.begin(ts + 1_000, device)
    world.forward(ts + FORWARD_US, device, first)
    world.forward(ts + 2_000 + FORWARD_US, device, second)
    back = world.connect(world.cut(ts + 5_000, device), device, has_session=True)
    world.send(back, device, second, 1, second_id)
    world.send(back + 2_000, device, first, 1, first_id)
    world.truth.redelivered += [one, two]
    _violation(world, "MQTT-4.6.0-1", device)
    return back + 10_000


def pubrel_order(world, device, ts):
    """PUBRELs leave in another order than the PUBRECs came."""
    _, first, first_id = world.begin(ts, device)
    _, second, second_id = world.begin(ts + 100, device)
    world.emit(ts + 300, device, 1, packets.pubrec(first_id))
    world.emit(ts + 400, device, 1, packets.pubrec(second_id))
    world.release(ts + 500, device, 0, second_id)
    world.release(ts + 600, device, 0, first_id)
    world.forward(ts + FORWARD_US, device, first)
    world.forward(ts + 2 * FORWARD_US, device, second)
    _violation(world, "MQTT-4.6.0-4", device)
    return ts + 10_000


def acknowledge_order(world, device, ts):
    """A subscriber acknowledges in another order than the messages came."""
    subscriber = device.subscriber
    payloads = [world.reading(device, ts)[1] for _ in range(2)]
    ids = subscriber.next_id(1), subscriber.next_id(1)
    for place in range(2):
        world.send(ts + 5_000 * place, device, payloads[place])
        at = ts + 5_000 * place + FORWARD_US
        world.publish(at, subscriber, 1, device.topic, payloads[place], device.qos, ids[place])
    for place in (1, 0):
        at = ts + 20_000 - 5_000 * place
        if device.qos == 1:
            world.emit(at, subscriber, 0, packets.puback(ids[place]))
        else:
            world.emit(at, subscriber, 0, packets.pubrec(ids[place]))
            world.release(at + STEP_US, subscriber, 1, ids[place])
    _violation(world, ("", "MQTT-4.6.0-2", "MQTT-4.6.0-3")[device.qos], subscriber)
    return ts + 50_000


def redelivered(world, device, ts):
    """Legal: a subscriber loses its connection and sees 1, 2, 3, 2, 3, 4."""
    subscriber = device.subscriber
    made = [world.reading(device, ts) for _ in range(4)]
    ids = [subscriber.next_id(1) for _ in range(4)]
    for place in range(3):
        at = ts + 5_000 * place
        world.send(at, device, made[place][1])
        world.publish(at + FORWARD_US, subscriber, 1, device.topic, made[place][1], 1, ids[place])
    world.emit(ts + FORWARD_US + STEP_US, subscriber, 0, packets.puback(ids[0]))
    back = world.connect(world.cut(ts + 30_000, subscriber), subscriber, has_session=True)
    for place in (1, 2):
        at = back + 1_000 * place
        world.publish(at, subscriber, 1, device.topic, made[place][1], 1, ids[place], 1)
        world.answer(at, subscriber, 1, 1, ids[place])
        world.truth.redelivered.append(made[place][0])
    world.send(back + 5_000, device, made[3][1])
    at = back + 5_000 + FORWARD_US
    world.publish(at, subscriber, 1, device.topic, made[3][1], 1, ids[3])
    world.answer(at, subscriber, 1, 1, ids[3])
    return back + 20_000


def silent(world, device, ts):
    """The device says nothing for twice its keep alive time."""
    back = world.connect(world.cut(ts, device), device, has_session=True, keep_alive_s=5)
    normal(world, device, back)
    after = back + 10 * _SECOND
    normal(world, device, after)
    _violation(world, "31-2.2-KA", device)
    return world.connect(world.cut(after + 10_000, device), device, has_session=True)


def reset(world, device, ts):
    """Legal: the device restarts; its readings are numbered from 1 again."""
    back = world.connect(world.cut(ts, device), device, has_session=True)
    device.boot += 1
    device.sequence = 0
    device.booted = ts
    return normal(world, device, back)


def no_answer(world, device, ts):
    """The broker never acknowledges a message; the device gives up its session."""
    identity, payload, _ = world.begin(ts, device)
    world.forward(ts + FORWARD_US, device, payload)
    world.truth.incomplete.append(identity)
    back = world.connect(world.cut(ts + 9 * _SECOND, device), device, clean=True)
    back = world.disconnect(back, device) + 1_000
    return world.connect(back, device)


def stray_answer(world, device, ts):
    """The broker acknowledges a message that was never sent."""
    world.emit(ts, device, 1, packets.puback((device.ids[0] + 999) % 65535 + 1))
    _violation(world, "MQTT-4.3.2-4", device)
    return normal(world, device, ts + 5_000)


def id_zero(world, device, ts):
    """A message with packet id 0."""
    _, payload, _ = world.begin(ts, device, packet_id=0)
    world.emit(ts + STEP_US, device, 1, packets.puback(0))
    world.forward(ts + FORWARD_US, device, payload, 1)
    _violation(world, "31-2.4-ID", device)
    return ts + 10_000


def qos_three(world, device, ts):
    """A PUBLISH with the reserved QoS 3."""
    world.publish(ts, device, 0, device.topic, b"qos 3", 3, device.next_id(0))
    _violation(world, "31-2.1-QOS3", device)
    back = world.connect(world.cut(ts + 5_000, device), device, has_session=True)
    return normal(world, device, back)


def wildcard_topic(world, device, ts):
    """A PUBLISH to a topic with a wildcard in it."""
    world.publish(ts, device, 0, device.topic + b"/+", b"wildcard", 0, None)
    _violation(world, "31-3.3-WILD", device)
    return normal(world, device, ts + 5_000)


def pubrel_flags(world, device, ts):
    """A PUBREL without the QoS bits that it must carry."""
    _, payload, packet_id = world.begin(ts, device)
    release = bytes((packets.PUBREL << 4,)) + packets.pubrel(packet_id)[1:]
    world.answer(ts, device, 0, 2, packet_id, release)
    world.forward(ts + FORWARD_US, device, payload)
    _violation(world, "31-3.6-PUBREL", device)
    return ts + 10_000
