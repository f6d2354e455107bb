"""Neither disorder nor duplicates: equal payloads, wills, what QoS 1 allows."""

from host_tests.patience import until
from tools.demo.tap import BROKER

from .stage import TOPIC, VALUES, Truth, freeze, situation


@situation()
def plain_values(stage):
    pub, sub = stage.both(2)
    pub.publish(TOPIC, *VALUES, *VALUES, qos=2)
    sub.wait(20)


@situation()
def plain_values_in_a_burst(stage):
    pub, sub = stage.both()
    for value in VALUES * 3:
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
    freeze(dev)
    sub.wait(3)


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
    pub.publish(TOPIC, *VALUES, qos=2)
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
    pub.publish(TOPIC, *VALUES, qos=2)
    until(lambda: sum(len(sub.messages) for sub in subs) == 10)
