"""More than one broker at one address, and what a bridge between two of them loses."""

import contextlib

from host_tests.brokers import Mosquitto
from tools.demo.tap import BROKER

from .losses import drop
from .recorder import Client
from .stage import NUMBERED, TOPIC, VALUES, Truth, freeze, situation, swallow

_PORT = 1884


@contextlib.contextmanager
def _second(stage):
    """Another broker at the same address -> function that makes clients of it."""
    with Mosquitto() as broker, stage.recorder.beside(broker.port, _PORT) as recorder:
        clients = []

        def client(name, **options):
            clients.append(Client(recorder, name, **options))
            return clients[-1].connect()

        yield client
        stage.quiet()
        for one in clients:
            one.disconnect()


def _bridged(stage, payloads, drops=()):
    """A program passes on to another broker what it gets, but for some of it: all else comes."""
    with _second(stage) as client:
        near, far = stage.client("bridge").subscribe("site/#"), client("bridge")

        def pass_on(_, __, message):
            near.messages.append(message.payload)
            if len(near.messages) - 1 not in drops:
                far.publish_nowait(message.topic, message.payload, message.qos)

        near.paho.on_message = pass_on
        sub = client("sub").subscribe("site/#")
        stage.client("pub").publish(TOPIC, *payloads, quiet_s=30)
        stage.recorder.fault = lambda *_: True
        sub.wait(len(near.messages) - len(drops))


@situation()
def two_brokers_with_the_same_topics(stage):
    """They know nothing of each other; the clients of both have the same names."""
    with _second(stage) as client:
        pubs = [stage.client("pub"), client("pub")]
        subs = [one("sub").subscribe("site/#") for one in (stage.client, client)]
        for number, value in enumerate(VALUES):
            for place, pub in enumerate(pubs):
                pub.publish(TOPIC, b"%s of %d" % (value, place if number % 2 else 0))
            stage.quiet(30)
        for sub in subs:
            sub.wait(10)


@situation()
def bridge_between_two_brokers(stage):
    """Its two sides have one client id; it is a client of both."""
    _bridged(stage, VALUES)


@situation(Truth(lost={("bridge@192.0.2.1:1884", TOPIC): [8, 13]}))
def bridge_that_loses_two(stage):
    """It got them on one side, and did not pass them on: they are the fifth and the eighth."""
    _bridged(stage, NUMBERED[:10], drops=(4, 7))


@situation(Truth(lost={("bridge@192.0.2.1:1883", TOPIC): [6]}))
def lost_on_the_way_to_a_bridge(stage):
    """The broker on the near side loses it, so that the far side never hears of it."""
    stage.recorder.fault = drop([3], b"bridge")
    _bridged(stage, NUMBERED[:10])


@situation(Truth(lost={("$share/g/site/#", TOPIC): [4]}))
def shared_subscription_that_loses_one(stage):
    """Both members are captured to their goodbye: the fifth came to neither of them."""
    subs = [stage.client("sub%d" % n).subscribe("$share/g/site/#") for n in range(2)]
    pub = stage.client("pub")
    stage.recorder.fault = drop([4])
    pub.publish(TOPIC, *NUMBERED[:10], quiet_s=10)
    assert sum(len(sub.messages) for sub in subs) == 9


@situation(Truth(findings=["silent_for_good", "will_not_sent"]))
def will_that_did_not_come(stage):
    """The broker ends the silent connection, and nobody gets the will."""
    sub = stage.client("sub").subscribe("site/#", 1)
    dev = stage.client("dev", keep_alive_s=1, will=("site/state", b"offline", 1))
    dev.publish("site/state", b"online")
    sub.wait(1)

    def fault(link, sender, packet):
        is_will = packet[0] >> 4 == 3 and sender == BROKER and b"offline" in packet
        return not is_will or swallow(link, packet)

    stage.recorder.fault = fault
    freeze(dev)
    stage.recorder.wait_until_closed(b"sub")
    sub.publish("site/alive", b"1")
    sub.wait(2)


@situation(Truth(lost={("sub", TOPIC): [3, 4]}, findings=["session_not_kept"]), persistence=False)
def broker_that_restarts(stage):
    """It had two in its memory for the subscriber, which was away; all others are cut off."""
    sub = stage.client("sub", clean=False).subscribe("site/#")
    pubs = [stage.client("pub%d" % number) for number in range(4)]
    pubs[0].publish(TOPIC, *NUMBERED[:3], quiet_s=5)
    sub.wait(3)
    stage.recorder.fault = lambda link, sender, packet: (
        link.name != b"sub" or packet[0] >> 4 != 3 or sender != BROKER
    )
    for number in range(3, 5):
        pubs[0].publish(TOPIC, b"number %d" % number)
    stage.quiet(6)
    for one in (sub, *pubs):
        one.expect_connect()
    stage.broker.stop()
    stage.recorder.wait_until_closed()
    stage.recorder.fault = lambda *_: True
    stage.broker.start()
    for one in (sub, *pubs):
        one.connected()
    sub.subscribe("site/#")
    stage.quiet(5)
    pubs[0].publish(TOPIC, *NUMBERED[5:8], quiet_s=5)
    sub.wait(6)


@situation(Truth(findings=["never_acknowledged"]))
def publish_never_acknowledged(stage):
    """The broker takes the third and says nothing; the client lives on, and sends others."""
    sub = stage.client("sub").subscribe("site/#")
    pub = stage.client("pub", keep_alive_s=60)
    pub.publish(TOPIC, b"number 1", b"number 2")
    stage.recorder.fault = drop([0], b"pub", kind=4)
    pub.publish_nowait(TOPIC, b"number 3")
    sub.wait(3)
    pub.publish(TOPIC, *NUMBERED[4:9], quiet_s=10)
    sub.wait(8)
