"""The situations: how each is brought about, and what an audit must find in it.

A function plays its part on a `Stage`; what it is not said to hold (`Truth`) an audit must
not find.  Names of clients: `pub`, `sub` and what they are.  Quiet time is turned, not
waited for, except where the broker's own clock matters.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as mqtt

from tools.capture import BROKER, CLIENT

from .recorder import HOST, Client, packet_id

TOPIC = "site/value"


@dataclass
class Truth:
    """What an audit must find, and nothing else.

    `lost` and `unexplained`: {(client, topic): which of the topic's PUBLISHes, from 0};
    `violations`: [(requirement, client)]; `findings`: names about clients and brokers,
    `told`: names about the capture; the rest are sums over all subscribers.
    """

    lost: dict = field(default_factory=dict)
    unexplained: dict = field(default_factory=dict)
    violations: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    told: list = field(default_factory=list)
    duplicates: int = 0
    repeated: int = 0
    overtaking: int = 0


@dataclass
class Situation:
    """`play(stage)` records it; `broker` are options of mosquitto."""

    name: str
    play: Callable
    truth: Truth
    broker: dict


SITUATIONS: dict[str, Situation] = {}


def situation(truth=None, **broker):
    """Put the function into `SITUATIONS`."""

    def add(play):
        SITUATIONS[play.__name__] = Situation(play.__name__, play, truth or Truth(), broker)
        return play

    return add


class Stage:
    """A broker, a recorder and the clients on them."""

    def __init__(self, broker, recorder, folder):
        self.broker, self.recorder, self.folder = broker, recorder, folder
        self._clients = []

    def client(self, name, *, direct=False, **options):
        """A connected client; `direct`: past the capture."""
        if direct:
            options["port"] = self.broker.port
        client = Client(self.recorder, name, **options)
        self._clients.append(client)
        return client.connect()

    def quiet(self, seconds=10):
        """Let time pass in the capture."""
        self.recorder.quiet(seconds)

    def finish(self):
        """Ten quiet seconds, then goodbye."""
        self.quiet()
        for client in self._clients:
            client.disconnect()
        time.sleep(0.1)


# Not loss


def _away(stage, *, name="sub", **back):
    """Two messages, two while the subscriber is away, two when it is back."""
    pub = stage.client("pub")
    sub = stage.client(name, **back).subscribe("site/#")
    pub.publish(TOPIC, b"1", b"2")
    sub.wait(2)
    stage.quiet()
    sub.disconnect()
    pub.publish(TOPIC, b"3", b"4")
    stage.quiet()
    return pub, sub


def _back(stage, pub, sub, **options):
    again = stage.client("sub", **options).subscribe("site/#")
    pub.publish(TOPIC, b"5", b"6")
    return again


@situation()
def clean_session_offline(stage):
    """The session of a clean session ends with its connection."""
    pub, sub = _away(stage)
    _back(stage, pub, sub).wait(2)


@situation()
def clean_session_level_3(stage):
    pub, sub = _away(stage, level=3)
    _back(stage, pub, sub, level=3).wait(2)


@situation()
def session_expiry_zero(stage):
    """Level 5 without an expiry time: the session ends with its connection."""
    pub, sub = _away(stage, level=5, clean=False)
    _back(stage, pub, sub, level=5, clean=False).wait(2)


@situation()
def session_expiry_passed(stage):
    """The session is over a second after its connection."""
    pub, sub = _away(stage, level=5, clean=False, expiry_s=1)
    time.sleep(2.5)
    pub.publish(TOPIC, b"late")
    _back(stage, pub, sub, level=5, clean=False, expiry_s=1).wait(2)


@situation()
def session_kept_level_4(stage):
    """What came meanwhile is delivered from the queue."""
    pub, sub = _away(stage, clean=False)
    _back(stage, pub, sub, clean=False).wait(4)


@situation()
def session_kept_level_5(stage):
    pub, sub = _away(stage, level=5, clean=False, expiry_s=600)
    _back(stage, pub, sub, level=5, clean=False, expiry_s=600).wait(4)


@situation()
def clean_start_first_only(stage):
    """Clean start on the first connection; the session goes on after the break."""
    pub = stage.client("pub")
    first_only = mqtt.MQTT_CLEAN_START_FIRST_ONLY
    sub = stage.client("sub", level=5, clean=first_only, expiry_s=600).subscribe("site/#", 2)
    pub.publish(TOPIC, b"1", b"2", qos=2)
    sub.wait(2)
    sub.expect_connect()
    stage.recorder.cut(b"sub")
    pub.publish(TOPIC, b"3", b"4", qos=2)
    sub.connected()
    sub.wait(4)


@situation()
def no_local(stage):
    both = stage.client("both", level=5).subscribe("site/#", 1, noLocal=True)
    sub = stage.client("sub").subscribe("site/#")
    both.publish(TOPIC, b"1", b"2", b"3")
    sub.wait(3)


@situation()
def retain_as_published(stage):
    pub = stage.client("pub", level=5)
    pub.publish(TOPIC, b"0", retain=True)
    sub = stage.client("sub", level=5).subscribe("site/#", 1, retainAsPublished=True)
    pub.publish(TOPIC, b"1", b"2", b"1", retain=True)
    sub.wait(4)


@situation()
def bridge(stage):
    """A bridge subscribes like a client, and is not sent its own messages back."""
    from tools.brokers import Mosquitto

    lines: dict[str, Any] = {
        "connection": "north",
        "address": "%s:%d" % (HOST, stage.recorder.port),
        "topic": "# both 1",
        "remote_clientid": "bridge",
        "local_clientid": "local",
        "bridge_protocol_version": "mqttv311",
        "notifications": False,
        "cleansession": True,
    }
    with Mosquitto(**lines) as south:
        far = stage.client("far", port=south.port).subscribe("site/#")
        near = stage.client("near").subscribe("site/#")
        _until_bridged(near, far)
        near.publish("site/down", b"1", b"2", retain=True)
        far.publish("site/up", b"3", b"4", retain=True)
        near.wait(5)
        far.wait(5)
        stage.quiet()
        far.disconnect()


def _until_bridged(near, far):
    for _ in range(100):
        near.publish_nowait("site/hello", b"", 0)
        time.sleep(0.1)
        if far.messages:
            break
    time.sleep(0.3)
    near.messages[:] = far.messages[:] = [b""]


@situation()
def message_expiry(stage):
    """A message that was too old when the subscriber came back."""
    options = {"level": 5, "clean": False, "expiry_s": 600}
    pub = stage.client("pub", level=5)
    sub = stage.client("sub", **options).subscribe("site/#")
    pub.publish(TOPIC, b"1")
    sub.wait(1)
    sub.disconnect()
    pub.publish(TOPIC, b"old", MessageExpiryInterval=1)
    pub.publish(TOPIC, b"3")
    time.sleep(2.2)
    again = stage.client("sub", **options)
    again.wait(1)
    pub.publish(TOPIC, b"4")
    again.wait(2)


@situation()
def maximum_packet_size(stage):
    pub = stage.client("pub")
    sub = stage.client("sub", level=5, packet_bytes_max=100).subscribe("site/#")
    pub.publish(TOPIC, b"1", b"x" * 200, b"3")
    sub.wait(2)


def _deny(topic, code=b""):
    """A fault: the broker acknowledges (with a reason code) and lets nothing through.

    Mosquitto 2.0 closes the connection of the client that it denies; others do not.
    """

    def fault(link, sender, packet):
        if sender == BROKER or packet[0] >> 4 != 3 or topic not in packet:
            return True
        first = 0x40 if packet[0] >> 1 & 3 == 1 else 0x50
        link.to_client(bytes((first, 2 + len(code))) + packet_id(packet) + code)
        return False

    return fault


@situation(Truth(findings=["refused_publish"]))
def refused_publish(stage):
    """The broker refuses with a reason code at level 5."""
    pub = stage.client("pub", level=5)
    sub = stage.client("sub", level=5).subscribe("site/#")
    stage.recorder.fault = _deny(b"secret", b"\x87")
    pub.publish(TOPIC, b"1")
    pub.publish("site/secret", b"2")
    pub.publish("site/secret", b"3", qos=2)
    pub.publish(TOPIC, b"4")
    sub.wait(2)


@situation()
def publisher_dies_before_pubrel(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#", 2)
    pub.publish(TOPIC, b"1", qos=2)

    def fault(link, sender, packet):
        if sender == BROKER and packet[0] == 0x50 and link.name == b"pub":
            link.to_client(packet)
            pub.paho.loop_stop()
            link.cut()
            return False
        return True

    sub.wait(1)
    stage.recorder.fault = fault
    pub.publish_nowait(TOPIC, b"2", 2)
    time.sleep(0.5)
    stage.recorder.fault = lambda *_: True
    pub = stage.client("pub")
    pub.publish(TOPIC, b"3", qos=2)
    sub.wait(2)


@situation()
def unsubscribed_meanwhile(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    pub.publish(TOPIC, b"1", b"2")
    sub.wait(2)
    sub.unsubscribe("site/#")
    pub.publish(TOPIC, b"3", b"4")
    stage.quiet()
    sub.subscribe("site/#")
    pub.publish(TOPIC, b"5", b"6")
    sub.wait(4)


@situation()
def unsubscribed_after_return(stage):
    """What waited is not wanted any more when the client is back."""
    pub, sub = _away(stage, clean=False)
    stage.recorder.fault = lambda link, sender, packet: packet[0] >> 4 != 3 or sender == CLIENT
    again = stage.client("sub", clean=False)
    again.unsubscribe("site/#")
    stage.recorder.fault = lambda *_: True


@situation(
    Truth(lost={("sub", TOPIC): [3]}),
)
def unsubscribe_refused(stage):
    """At level 5 the broker may refuse: the subscription goes on, and what is lost is lost."""
    pub = stage.client("pub")
    sub = stage.client("sub", level=5).subscribe("site/#")
    pub.publish(TOPIC, b"1")
    sub.wait(1)

    def fault(link, sender, packet):
        if packet[0] == 0xA2:
            link.to_client(b"\xb0\x04" + packet_id(packet) + b"\x00\x87")
            return False
        return not (packet[0] >> 4 == 3 and sender == BROKER and packet.endswith(b"4")) or (
            _swallow(link, packet)
        )

    stage.recorder.fault = fault
    sub.unsubscribe("site/#")
    stage.quiet()
    pub.publish(TOPIC, b"2", b"3", b"4", b"5")
    sub.wait(4)


def _swallow(link, packet):
    # The broker believes that the client got it.
    qos = packet[0] >> 1 & 3
    if qos == 1:
        link.to_broker(b"\x40\x02" + packet_id(packet))
    return False


@situation(Truth(unexplained={("sub", "site/secret"): [0, 1]}))
def write_denied_level_4(stage):
    """Level 3.1.1 acknowledges what it does not let through."""
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    stage.recorder.fault = _deny(b"secret")
    pub.publish(TOPIC, b"1")
    pub.publish("site/secret", b"2", b"3")
    pub.publish(TOPIC, b"4")
    sub.wait(2)


@situation(
    Truth(unexplained={("sub", "site/secret"): [0, 1]}),
    acl="topic write #\nuser sub\ntopic read site/value",
)
def read_denied(stage):
    """The subscription is granted, and what may not be read does not come."""
    pub = stage.client("pub")
    sub = stage.client("sub", user="sub").subscribe("site/#")
    pub.publish(TOPIC, b"1")
    pub.publish("site/secret", b"2", b"3")
    pub.publish(TOPIC, b"4")
    sub.wait(2)


@situation(Truth(unexplained={("sub", TOPIC): [20]}))
def subscriber_is_stuck(stage):
    """A program that acknowledges nothing gets no more than the broker's window."""
    pub = stage.client("pub")
    sub = stage.client("sub", manual_ack=True).subscribe("site/#")
    pub.publish(TOPIC, *(b"%d" % number for number in range(21)))
    sub.wait(20)


# Loss


def _drop(which, name=b"sub"):
    """A fault that loses the deliveries with these numbers, from 0."""
    seen = [0]

    def fault(link, sender, packet):
        if packet[0] >> 4 != 3 or sender != BROKER or link.name != name:
            return True
        seen[0] += 1
        return seen[0] - 1 not in which or _swallow(link, packet)

    return fault


_VALUES = [b"%d" % value for value in (30, 31, 30, 30, 31, 31, 30, 31, 30, 31)]


@situation(Truth(lost={("sub", TOPIC): [6]}))
def one_of_plain_values_lost(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    stage.recorder.fault = _drop([6])
    for value in _VALUES:
        pub.publish(TOPIC, value)
        stage.quiet(30)
    sub.wait(9)


@situation(Truth(lost={("sub", TOPIC): [4]}))
def one_of_equal_values_lost(stage):
    """All payloads are equal: only time tells which one is missing."""
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    stage.recorder.fault = _drop([4])
    for _ in range(9):
        pub.publish(TOPIC, b"30")
        stage.quiet(30)
    sub.wait(8)


@situation(Truth(lost={("sub", TOPIC): [5]}))
def one_of_plain_values_lost_from_the_queue(stage):
    """Ten wait for the subscriber; only their order tells which one is missing."""
    pub = stage.client("pub")
    sub = stage.client("sub", clean=False).subscribe("site/#")
    sub.disconnect()
    for value in (b"1", b"2", b"1", b"2", b"3", b"1", b"2", b"3", b"2", b"1"):
        pub.publish(TOPIC, value)
        stage.quiet(1)
    stage.recorder.fault = _drop([5])
    again = stage.client("sub", clean=False)
    again.wait(9)


# Not disorder, not a duplicate


@situation()
def plain_values(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#", 2)
    pub.publish(TOPIC, *_VALUES, *_VALUES, qos=2)
    sub.wait(20)


@situation()
def plain_values_in_a_burst(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    for value in _VALUES * 3:
        pub.publish_nowait(TOPIC, value)
    sub.wait(30)


@situation(Truth(told=["publisher_not_captured"]))
def publisher_not_captured(stage):
    pub = stage.client("pub")
    other = stage.client("other", direct=True)
    sub = stage.client("sub").subscribe("site/#", 2)
    for value in (b"30", b"31", b"30"):
        pub.publish(TOPIC, value, qos=2)
        other.publish(TOPIC, value, b"x" + value, qos=2)
    pub.publish(TOPIC, b"31", qos=2)
    sub.wait(10)


@situation(Truth(findings=["silent_for_good"]))
def will_equal_to_a_message(stage):
    """The will says what the client had said before, at QoS 2."""
    sub = stage.client("sub").subscribe("site/#", 2)
    dev = stage.client("dev", keep_alive_s=1, will=("site/state", b"offline for now", 2))
    dev.publish("site/state", b"offline for now", b"online and well", qos=2)
    sub.wait(2)
    stage.recorder.fault = lambda link, sender, packet: packet[0] != 0xC0
    _freeze(dev)
    sub.wait(3)


def _freeze(client):
    # The program hangs: its socket stays open.
    client.paho.loop_stop()


@situation(Truth(repeated=1))
def repeated_at_qos_1(stage):
    """The PUBACK gets lost with the connection; the broker passes the message on again."""
    sub = stage.client("sub").subscribe("site/#")
    pub = stage.client("pub", clean=False)
    pub.publish(TOPIC, b"30", b"31")
    sub.wait(2)

    def fault(link, sender, packet):
        if packet[0] == 0x40 and sender == BROKER:
            stage.recorder.fault = lambda *_: True
            link.cut()
            return False
        return True

    pub.expect_connect()
    stage.recorder.fault = fault
    pub.publish_nowait(TOPIC, b"30").wait_for_publish(10)
    pub.connected()
    pub.publish(TOPIC, b"31")
    sub.wait(5)


@situation(allow_duplicate_messages=True)
def overlapping_subscriptions(stage):
    """The broker sends a copy for each of two filters."""
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#", 2).subscribe("site/+", 2)
    pub.publish(TOPIC, *_VALUES, qos=2)
    sub.wait(20)


@situation()
def topic_alias(stage):
    pub = stage.client("pub", level=5)
    sub = stage.client("sub").subscribe("site/#")
    pub.publish(TOPIC, b"1", TopicAlias=1)
    pub.publish("", b"2", TopicAlias=1)
    pub.publish("", b"1", TopicAlias=1)
    sub.wait(3)


@situation()
def shared_subscription(stage):
    pub = stage.client("pub")
    subs = [stage.client("sub%d" % n).subscribe("$share/g/site/#", 2) for n in range(2)]
    pub.publish(TOPIC, *_VALUES, qos=2)
    for _ in range(100):
        if sum(len(sub.messages) for sub in subs) == 10:
            break
        time.sleep(0.05)


# Real faults of a broker


@situation(Truth(violations=[("MQTT-4.3.3-10", "sub")], duplicates=1))
def forwarded_twice_at_qos_2(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#", 2)
    pub.publish(TOPIC, b"number 1 of 3", qos=2)
    sub.wait(1)

    def fault(link, sender, packet):
        if packet[0] >> 4 == 3 and sender == BROKER:
            number = packet_id(packet)
            link.to_client(packet)
            link.to_client(packet.replace(number, b"\x77\x77", 1))
            return False
        # The broker knows nothing of the second one.
        return not (sender == CLIENT and packet[2:4] == b"\x77\x77" and _answer(link, packet))

    stage.recorder.fault = fault
    pub.publish(TOPIC, b"number 2 of 3", qos=2)
    sub.wait(3)
    time.sleep(0.2)
    stage.recorder.fault = lambda *_: True
    pub.publish(TOPIC, b"number 3 of 3", qos=2)
    sub.wait(4)


def _answer(link, packet):
    if packet[0] == 0x50:
        link.to_client(b"\x62\x02\x77\x77")
    return True


@situation(Truth(violations=[("MQTT-4.6.0-5", "sub")], overtaking=1))
def forwarded_out_of_order(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    held: list[bytes] = []

    def fault(link, sender, packet):
        if packet[0] >> 4 == 3 and sender == BROKER:
            if packet.endswith(b"2"):
                held.append(packet)
                return False
            link.to_client(packet)
            if held:
                link.to_client(held.pop())
            return False
        return True

    pub.publish(TOPIC, b"number 1")
    sub.wait(1)
    stage.recorder.fault = fault
    pub.publish(TOPIC, b"number 2", b"number 3", b"number 4")
    sub.wait(4)


@situation(Truth(findings=["session_not_kept"]), persistence=False)
def session_forgotten(stage):
    """The broker starts anew and has forgotten everybody."""
    pub, sub = _away(stage, clean=False)
    pub.disconnect()
    stage.broker.kill()
    stage.broker.start()
    pub = stage.client("pub")
    _back(stage, pub, sub, clean=False).wait(2)


# Clients in trouble


@situation(Truth(findings=["silent_for_good"]))
def silent_for_good(stage):
    """The device hangs; the broker closes when one and a half keep alive times are over."""
    dev = stage.client("dev", keep_alive_s=2)
    dev.publish(TOPIC, b"1")
    _freeze(dev)
    stage.recorder.wait_until_closed()


@situation(Truth(findings=["client_id_conflict"]))
def two_programs_with_one_client_id(stage):
    one, other = (Client(stage.recorder, "dev") for _ in range(2))
    one.connect()
    other.connect()
    time.sleep(4.5)
    for client in (one, other):
        client.paho.loop_stop()
    stage.recorder.cut()


@situation(Truth(findings=["refused_connects"]), allow_anonymous=False)
def refused_in_series(stage):
    for _ in range(4):
        Client(stage.recorder, "dev").connect().paho.loop_stop()
        stage.recorder.cut()
        stage.quiet(30)


@situation(Truth(findings=["socket_left", "socket_left", "socket_left"]))
def sockets_left(stage):
    for _ in range(3):
        with socket.create_connection((HOST, stage.recorder.port)):
            time.sleep(0.2)
        stage.quiet(60)


# What the derived captures are made of (see `derive`)


@situation()
def ordinary_traffic(stage):
    """Two publishers, two subscribers, levels 4 and 5, a break, equal values."""
    subs = [
        stage.client("sub4", clean=False).subscribe("site/#", 2),
        stage.client("sub5", level=5, clean=False, expiry_s=600).subscribe("site/#", 1),
    ]
    pubs = [stage.client("pub4"), stage.client("pub5", level=5)]
    for number, value in enumerate(_VALUES):
        for pub in pubs:
            pub.publish("site/%s" % pub.name, value, qos=number % 3)
        stage.quiet(1)
        if number == 4:
            subs[0].disconnect()
        if number == 6:
            subs[0] = stage.client("sub4", clean=False)
    subs[1].wait(20)
    time.sleep(0.2)
