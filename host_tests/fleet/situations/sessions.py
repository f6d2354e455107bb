"""Not loss: sessions, options of level 5, what a publisher or a broker may refuse."""

import time
from functools import partial
from typing import Any

import paho.mqtt.client as mqtt

from tools.demo.tap import BROKER, CLIENT

from .recorder import HOST, packet_id
from .stage import TOPIC, Truth, situation, swallow


def _away(stage, **options):
    """Two messages, two while the subscriber is away, two when it is back."""
    pub = stage.client("pub")
    sub = stage.client("sub", **options).subscribe("site/#")
    pub.publish(TOPIC, b"1", b"2")
    sub.wait(2)
    stage.quiet()
    sub.disconnect()
    pub.publish(TOPIC, b"3", b"4")
    stage.quiet()
    return pub, sub


def _back(stage, pub, **options):
    again = stage.client("sub", **options).subscribe("site/#")
    pub.publish(TOPIC, b"5", b"6")
    return again


_KEPT_AT_5 = {"level": 5, "clean": False, "expiry_s": 600}
_SESSIONS: dict[str, tuple[int, dict]] = {  # how many come when the client is back, its options
    "clean_session_offline": (2, {}),  # the session ends with its connection
    "clean_session_level_3": (2, {"level": 3}),
    "session_expiry_zero": (2, {"level": 5, "clean": False}),
    "session_expiry_passed": (2, _KEPT_AT_5 | {"expiry_s": 1}),  # over a second later
    "session_kept_level_4": (4, {"clean": False}),  # what came meanwhile waited
    "session_kept_level_5": (4, _KEPT_AT_5),
}


def _left_and_back(stage, comes, options):
    pub, _ = _away(stage, **options)
    if options.get("expiry_s") == 1:
        time.sleep(2.5)
        pub.publish(TOPIC, b"late")
    _back(stage, pub, **options).wait(comes)


for _name, (_comes, _options) in _SESSIONS.items():
    situation(name=_name)(partial(_left_and_back, comes=_comes, options=_options))


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
    from tools.demo.mosquitto import Mosquitto

    address = "%s:%d" % (HOST, stage.recorder.port)
    lines: dict[str, Any] = {"connection": "north", "address": address, "topic": "# both 1"}
    lines |= {"remote_clientid": "bridge", "local_clientid": "local", "notifications": False}
    lines |= {"bridge_protocol_version": "mqttv311", "cleansession": True}
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
    pub = stage.client("pub", level=5)
    sub = stage.client("sub", **_KEPT_AT_5).subscribe("site/#")
    pub.publish(TOPIC, b"1")
    sub.wait(1)
    sub.disconnect()
    pub.publish(TOPIC, b"old", MessageExpiryInterval=1)
    pub.publish(TOPIC, b"3")
    time.sleep(2.2)
    again = stage.client("sub", **_KEPT_AT_5)
    again.wait(1)
    pub.publish(TOPIC, b"4")
    again.wait(2)


@situation()
def one_of_equal_values_was_too_old(stage):
    """The later of two, when the subscriber came back."""
    pub = stage.client("pub", level=5)
    sub = stage.client("sub", clean=False).subscribe("site/#")
    sub.disconnect()
    pub.publish(TOPIC, b"30")
    pub.publish(TOPIC, b"30", MessageExpiryInterval=1)
    time.sleep(2.2)
    again = stage.client("sub", clean=False)
    again.wait(1)
    pub.publish(TOPIC, b"31")
    again.wait(2)


@situation()
def maximum_packet_size(stage):
    pub, sub = stage.both(level=5, packet_bytes_max=100)
    pub.publish(TOPIC, b"1", b"x" * 200, b"3")
    sub.wait(2)


@situation()
def properties_make_it_too_large(stage):
    """The payload alone would fit; its properties travel with it."""
    pub = stage.client("pub", level=5)
    sub = stage.client("sub", level=5, packet_bytes_max=100).subscribe("site/#")
    pub.publish(TOPIC, b"1")
    pub.publish(TOPIC, b"x" * 60, ContentType="text/plain; charset=utf-8")
    pub.publish(TOPIC, b"3")
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
    pub, sub = stage.both(2)
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
    pub, sub = stage.both()
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


@situation(Truth(lost={("sub", TOPIC): [3]}))
def unsubscribe_refused(stage):
    """At level 5 the broker may refuse: the subscription goes on, and what is lost is lost."""
    pub, sub = stage.both(level=5)
    pub.publish(TOPIC, b"1")
    sub.wait(1)

    def fault(link, sender, packet):
        if packet[0] == 0xA2:
            link.to_client(b"\xb0\x04" + packet_id(packet) + b"\x00\x87")
            return False
        return not (packet[0] >> 4 == 3 and sender == BROKER and packet.endswith(b"4")) or (
            swallow(link, packet)
        )

    stage.recorder.fault = fault
    sub.unsubscribe("site/#")
    stage.quiet()
    pub.publish(TOPIC, b"2", b"3", b"4", b"5")
    sub.wait(4)


def _secret(stage, **options):
    pub, sub = stage.both(**options)
    pub.publish(TOPIC, b"1")
    pub.publish("site/secret", b"2", b"3")
    pub.publish(TOPIC, b"4")
    sub.wait(2)


@situation(Truth(unexplained={("sub", "site/secret"): [0, 1]}))
def write_denied_level_4(stage):
    """Level 3.1.1 acknowledges what it does not let through."""
    stage.recorder.fault = _deny(b"secret")
    _secret(stage)


@situation(
    Truth(unexplained={("sub", "site/secret"): [0, 1]}),
    acl="topic write #\nuser sub\ntopic read site/value",
)
def read_denied(stage):
    """The subscription is granted, and what may not be read does not come."""
    _secret(stage, user="sub")


@situation(Truth(unexplained={("sub", TOPIC): [20]}))
def subscriber_is_stuck(stage):
    """A program that acknowledges nothing gets no more than the broker's window."""
    pub, sub = stage.both(manual_ack=True)
    pub.publish(TOPIC, *(b"%d" % number for number in range(21)))
    sub.wait(20)


@situation(Truth(unexplained={("sub", TOPIC): [3, 4]}))
def receive_maximum_reached(stage):
    """The same, and the client has said how many it takes."""
    pub, sub = stage.both(level=5, manual_ack=True, receive_max=3)
    pub.publish(TOPIC, *(b"%d" % number for number in range(5)))
    sub.wait(3)


def _forgotten(stage, **options):
    pub, _ = _away(stage, **options)
    pub.disconnect()
    stage.broker.kill()
    stage.broker.start()
    _back(stage, stage.client("pub"), **options).wait(2)


@situation(Truth(findings=["session_not_kept"]), persistence=False)
def session_forgotten(stage):
    """The broker starts anew and has forgotten everybody."""
    _forgotten(stage, clean=False)


@situation(Truth(lost={("sub", TOPIC): [2, 3]}), persistence=False)
def session_forgotten_level_3(stage):
    """As above, and level 3 has no way to say so."""
    _forgotten(stage, level=3, clean=False)
