"""Equal values at several QoS, refused ones, and publishers that begin a new session."""

import itertools
import time

from tools.demo.tap import BROKER, CLIENT

from .recorder import packet_id
from .stage import TOPIC, VALUES, Truth, situation


@situation()
def equal_values_at_several_qos(stage):
    """Those at QoS 0 get lost, as they may, and each other one comes."""
    pub, sub = stage.both(2)
    stage.recorder.fault = lambda _, sender, packet: sender != BROKER or packet[0] != 0x30
    for number, value in enumerate(VALUES * 3):
        pub.publish(TOPIC, value, qos=number % 3)
    sub.wait(len(VALUES) * 2)


@situation()
def equal_values_released_late(stage):
    """A broker passes on what is of QoS 2 when it is released, all of it at QoS 1 here."""
    pub, sub = stage.both()
    for _ in range(3):
        for number, value in enumerate(VALUES):
            pub.publish_nowait(TOPIC, value, 1 + number % 2)
        sub.wait(len(VALUES))
        sub.messages.clear()


@situation(Truth(findings=["refused_publish"]))
def equal_values_of_which_some_are_refused(stage):
    """What the broker refuses it passes on to nobody, though the same value comes again."""
    pub = stage.client("pub", level=5)
    sub = stage.client("sub").subscribe("site/#")
    seen = itertools.count(1)

    def fault(link, sender, packet):
        if sender == BROKER or packet[0] >> 4 != 3 or next(seen) % 4:
            return True
        link.to_client(b"\x40\x03" + packet_id(packet) + b"\x97")
        return False

    stage.recorder.fault = fault
    for value in VALUES * 2:
        pub.publish(TOPIC, value)
    sub.wait(len(VALUES) * 2 * 3 // 4)


@situation()
def sent_again_in_a_new_session(stage):
    """The answer gets lost; the publisher begins anew and repeats, and the broker, which knows
    the message, only answers."""
    pub, sub = stage.both()
    pub.publish(TOPIC, b"1 of 3")
    sub.wait(1)

    def fault(link, sender, packet):
        if link.name != b"pub":
            return True
        if sender == BROKER and packet[0] == 0x40:
            link.cut()
            return False
        if sender == CLIENT and packet[0] == 0x3A:  # marked as a repetition
            stage.recorder.fault = lambda *_: True
            link.to_client(b"\x40\x02" + packet_id(packet))
            return False
        return True

    pub.expect_connect()
    stage.recorder.fault = fault
    sent = pub.publish_nowait(TOPIC, b"2 of 3")
    pub.connected()
    sent.wait_for_publish(10)
    pub.publish(TOPIC, b"3 of 3")
    sub.wait(3)


@situation(persistence=False)
def publisher_forgotten(stage):
    """A session that held nothing: no subscription, and no message that waits."""
    for number in range(3):
        dev = stage.client("dev", clean=False)
        dev.publish(TOPIC, b"%d" % number)
        dev.disconnect()
        time.sleep(0.1)
        if number == 1:
            stage.broker.kill()
            stage.broker.start()
