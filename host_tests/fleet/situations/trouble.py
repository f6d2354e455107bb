"""Clients in trouble, and the ordinary traffic that `derive` needs."""

import socket
import time

from .recorder import HOST, Client
from .stage import TOPIC, VALUES, Truth, freeze, situation


@situation(Truth(findings=["silent_for_good"]))
def silent_for_good(stage):
    """The device hangs; the broker closes when one and a half keep alive times are over."""
    dev = stage.client("dev", keep_alive_s=2)
    dev.publish(TOPIC, b"1")
    freeze(dev)
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


@situation()
def cut_off_and_back_at_once(stage):
    """One client, whose link breaks four times; it is back within a second each time."""
    for number in range(5):
        dev = stage.client("dev", clean=False)
        dev.publish(TOPIC, b"%d" % number)
        if number < 4:
            stage.recorder.cut()
            dev.paho.loop_stop()
            stage.quiet(0.5)
    dev.disconnect()


@situation()
def first_sent_on_a_dead_link(stage):
    """What the device sends first gets lost on its way; it sends it again, with DUP."""
    sub = stage.client("sub").subscribe("site/#")
    for clean in (False, True):
        dev = stage.client("dev-%d" % clean, clean=clean)
        dev.publish(TOPIC, b"1 of %d" % clean)
        dev.expect_connect()
        stage.recorder.unplug(dev.name.encode())
        dev.publish_nowait(TOPIC, b"2 of %d" % clean)
        stage.quiet(3)
        stage.recorder.cut(dev.name.encode())
        dev.connected()
        dev.publish(TOPIC, b"3 of %d" % clean)
    sub.wait(6)


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


@situation()
def ordinary_traffic(stage):
    """Two publishers, two subscribers, levels 4 and 5, a break, equal values."""
    subs = [
        stage.client("sub4", clean=False).subscribe("site/#", 2),
        stage.client("sub5", level=5, clean=False, expiry_s=600).subscribe("site/#", 1),
    ]
    pubs = [stage.client("pub4"), stage.client("pub5", level=5)]
    for number, value in enumerate(VALUES):
        for pub in pubs:
            pub.publish("site/%s" % pub.name, value, qos=number % 3)
        stage.quiet(1)
        if number == 4:
            subs[0].disconnect()
        if number == 6:
            subs[0] = stage.client("sub4", clean=False)
    subs[1].wait(20)
    time.sleep(0.2)


@situation(Truth(findings=["disconnected"]), max_packet_size=100)
def thrown_out_with_a_reason(stage):
    """At level 5 the broker says why it ends a connection."""
    dev = stage.client("dev", level=5)
    dev.publish(TOPIC, b"1")
    dev.expect_connect()
    dev.publish_nowait(TOPIC, b"x" * 200, qos=0)
    stage.recorder.wait_until_closed()
    dev.connected()
    dev.publish(TOPIC, b"2")
