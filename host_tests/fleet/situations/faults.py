"""Brokers that break their promises."""

import time

from tools.demo.tap import BROKER, CLIENT

from .recorder import packet_id
from .stage import TOPIC, Truth, situation


def twice(stage, pause_s=0):
    """A fault: what is delivered next comes again as a message of its own, of which the broker
    knows nothing."""
    first: list[bytes] = []

    def fault(link, sender, packet):
        if packet[0] >> 4 == 3 and sender == BROKER and not first:
            first.append(packet_id(packet))
            link.to_client(packet)
            if pause_s:
                stage.quiet(pause_s)
            link.to_client(packet.replace(first[0], b"\x77\x77", 1))
            return False
        if sender == CLIENT and packet[2:4] == b"\x77\x77":
            if packet[0] == 0x50:
                link.to_client(b"\x62\x02\x77\x77")
            return False
        return True

    return fault


@situation(Truth(violations=[("MQTT-4.3.3-10", "sub")], duplicates=1))
def forwarded_twice_at_qos_2(stage):
    pub, sub = stage.both(2)
    pub.publish(TOPIC, b"number 1 of 3", qos=2)
    sub.wait(1)
    stage.recorder.fault = twice(stage)
    pub.publish(TOPIC, b"number 2 of 3", qos=2)
    sub.wait(3)
    time.sleep(0.2)
    pub.publish(TOPIC, b"number 3 of 3", qos=2)
    sub.wait(4)


@situation(Truth(violations=[("MQTT-4.6.0-5", "sub")], overtaking=1))
def forwarded_out_of_order(stage):
    pub, sub = stage.both()
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
