"""Fleets without our envelope: counters in JSON, plain values at QoS 0, short values."""

import json

from .faults import twice
from .losses import drop
from .stage import NUMBERED, TOPIC, Truth, situation


def _counted(device, number, **more):
    return json.dumps({"device": device, "n": number, "temperature": 21 + number % 2, **more})


@situation(Truth(missing={("one", TOPIC): [(4, 5)]}))
def json_counter_that_leaves_out_two(stage):
    """The device never sends the fourth and the fifth."""
    sub = stage.client("sub").subscribe("site/#")
    dev = stage.client("dev")
    for number in (1, 2, 3, 6, 7, 8, 9, 10):
        dev.publish(TOPIC, _counted("one", number).encode())
        stage.quiet(30)
    sub.wait(8)


@situation(Truth(missing={("two", TOPIC): [(3, 3)]}))
def json_counter_of_a_device_that_is_not_captured(stage):
    """Only the subscriber is: what the numbers leave out did not come."""
    sub = stage.client("sub").subscribe("site/#")
    dev = stage.client("dev", direct=True)
    for number in (1, 2, 4, 5, 6, 7):
        dev.publish(TOPIC, _counted("two", number).encode())
        stage.quiet(30)
    sub.wait(6)


@situation()
def json_values_that_are_no_counters(stage):
    """They go up and down, repeat, and one of them begins anew."""
    sub = stage.client("sub").subscribe("site/#")
    dev = stage.client("dev")
    for number in (1, 2, 5, 5, 9, 3, 4, 2, 8, 1):
        dev.publish(TOPIC, json.dumps({"value": number, "up": number % 3}).encode())
        stage.quiet(30)
    sub.wait(10)


@situation(Truth(lost_at_0={("sub", TOPIC): [3, 6]}))
def plain_values_lost_at_qos_0(stage):
    """Both sides are captured: what the broker got and did not pass on is seen."""
    sub = stage.client("sub").subscribe("site/#", 0)
    pub = stage.client("pub")
    stage.recorder.fault = drop([3, 6])
    pub.publish(TOPIC, *NUMBERED[:10], qos=0, quiet_s=4)
    sub.wait(8)


@situation()
def equal_values_at_intervals(stage):
    """Nothing happens to them; `derive` sets the clock back in their midst."""
    pub, sub = stage.both()
    pub.publish(TOPIC, *[b"30"] * 10, quiet_s=7)
    sub.wait(10)


@situation(Truth(violations=[("MQTT-4.3.3-10", "sub")], duplicates=1))
def short_value_twice_at_qos_2(stage):
    """One byte; packet ids, sessions and what came around it show that it is a duplicate."""
    pub, sub = stage.both(2)
    pub.publish(TOPIC, b"1", b"2", qos=2, quiet_s=10)
    sub.wait(2)
    stage.recorder.fault = twice(stage, pause_s=1)
    pub.publish(TOPIC, b"7", b"3", b"4", qos=2, quiet_s=10)
    sub.wait(6)
