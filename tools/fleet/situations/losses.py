"""Loss, among payloads that come again and again."""

from tools.tap import BROKER

from .stage import TOPIC, VALUES, Truth, situation, swallow


def _drop(which, name=b"sub"):
    """A fault that loses the deliveries with these numbers, from 0."""
    seen = [0]

    def fault(link, sender, packet):
        if packet[0] >> 4 != 3 or sender != BROKER or link.name != name:
            return True
        seen[0] += 1
        return seen[0] - 1 not in which or swallow(link, packet)

    return fault


@situation(Truth(lost={("sub", TOPIC): [6]}))
def one_of_plain_values_lost(stage):
    pub = stage.client("pub")
    sub = stage.client("sub").subscribe("site/#")
    stage.recorder.fault = _drop([6])
    for value in VALUES:
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
