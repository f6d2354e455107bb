"""Subscribers that are away, options of level 5, what QoS 1 allows: functions as in `faults`.

Most of it is legal, and an audit must not take it for loss or a duplicate.
"""

from host_tests.standin import packets

from .faults import normal
from .fleet import FORWARD_US, STEP_US

_SECOND_US = 1_000_000


def _subscribe_again(world, subscriber, ts, clean=False):
    ts = world.connect(ts, subscriber, clean=clean)
    world.subscribe(ts, subscriber)
    return ts + 1_000


def _leave(world, subscriber, ts):
    return world.disconnect(ts, subscriber) + 1_000


def _send(world, device, ts, count, pause_s=1, is_apart=False):
    """-> ([(identity, payload), …], time behind them); no neighbours equal if `is_apart`."""
    made = []
    for _ in range(count):
        one = world.reading(device, ts)
        while is_apart and made and one[1] == made[-1][1]:
            one = world.reading(device, ts)
        world.send(ts, device, one[1])
        made.append(one)
        ts += pause_s * _SECOND_US
    return made, ts


def _fetch(world, device, made, ts):
    """The subscriber is back in its session, and gets these."""
    ts = world.connect(ts + 10 * _SECOND_US, device.subscriber, has_session=True) + 1_000
    for _, payload in made:
        world.forward(ts, device, payload)
        ts += 2_000
    return ts


def away_clean(world, device, ts):
    """Legal: a subscriber's clean session ends with its connection; what comes then is gone."""
    subscriber = device.subscriber
    ts = _leave(world, subscriber, ts)
    kept_s, subscriber.expiry_s = subscriber.expiry_s, 0
    ts = _subscribe_again(world, subscriber, ts, clean=True)
    subscriber.expiry_s = kept_s
    ts = normal(world, device, ts + 1_000)
    ts = _leave(world, subscriber, ts + 1_000)
    _, ts = _send(world, device, ts, 2)
    return _subscribe_again(world, subscriber, ts + 10 * _SECOND_US)


def away_kept(world, device, ts):
    """Legal: what comes while a subscriber is away is delivered when it is back."""
    made, ts = _send(world, device, _leave(world, device.subscriber, ts), 4)
    return _fetch(world, device, made, ts)


def away_one_lost(world, device, ts):
    """The broker loses one of the messages that wait for a subscriber."""
    begin = _leave(world, device.subscriber, ts)
    # Of two equal neighbours nobody could tell which one was lost.
    made, ts = _send(world, device, begin, 5, is_apart=True)
    world.lose(begin + 2 * _SECOND_US, device, made[2][0])
    return _fetch(world, device, made[:2] + made[3:], ts)


def away_expired(world, device, ts):
    """Legal: the expiry time of a subscriber's session is over before it is back."""
    subscriber = device.subscriber
    ts = _leave(world, subscriber, ts)
    subscriber.expiry_s = 30
    ts = world.connect(ts, subscriber, has_session=True) + 1_000
    _, ts = _send(world, device, _leave(world, subscriber, ts), 2, 20)
    subscriber.expiry_s = 3600
    return _subscribe_again(world, subscriber, ts)


def message_expired(world, device, ts):
    """Legal: a message is too old when its subscriber is back."""
    ts = _leave(world, device.subscriber, ts)
    _, payload = world.reading(device, ts)
    world.send(ts, device, payload, expiry_s=5)
    ts = world.connect(ts + 20 * _SECOND_US, device.subscriber, has_session=True)
    return normal(world, device, ts + 1_000)


def refused(world, device, ts):
    """The broker refuses a message, with a reason code of level 5."""
    _, _, packet_id = world.begin(ts, device)
    kind = packets.PUBACK if device.qos == 1 else packets.PUBREC
    world.emit(ts + STEP_US, device, 1, packets.answer(kind, packet_id, reason=0x87))
    finding = ("refused_publish", device.name.decode())
    if finding not in world.truth.findings:
        world.truth.findings.append(finding)
    return ts + 10_000


def forwarded_again(world, device, ts):
    """Legal at QoS 1: the PUBACK is lost, and the repeated message is forwarded again."""
    identity, payload, packet_id = world.begin(ts, device)
    world.forward(ts + FORWARD_US, device, payload)
    back = world.connect(world.cut(ts + 5_000, device), device, has_session=True)
    world.send(back, device, payload, 1, packet_id)
    world.forward(back + FORWARD_US, device, payload)
    who = (device.subscriber.name.decode(), device.topic.decode())
    world.truth.repeated.append(who)
    if not device.is_plain:
        world.truth.redelivered.append(identity)
        world.truth.duplicated.append(identity)
    return back + 10_000
