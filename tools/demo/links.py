"""First act: the link breaks in every way it can, and the node goes on."""

import time

from .desk import DeskNode
from .stage import Outcome, Stage
from .tap import BROKER, CLIENT

_QOS = [0, 1, 2]
_INTERVAL_MS = 100
_COMMANDED_MS = 40
_DEVICE = "demo-links"
_BROKER_DOWN_S = 1.5


def play(stage: Stage, readings: int) -> Outcome:
    """Go through all faults, with `readings` on each of three streams between two."""
    node = stage.node(
        _DEVICE, streams=_QOS, interval_ms=_INTERVAL_MS, max_inflight=8, max_mqueue_len=128
    )
    bar = stage.progress.add_task("faults", total=len(_FAULTS))
    stage.tell(f"node starts: a sample every {_INTERVAL_MS} ms, published at QoS 0, 1 and 2")
    node.start()
    node.wait_until(lambda: "online" in stage.collector.statuses[_DEVICE], 60, "connection")
    node.wait_for_readings(readings, 1)
    stage.tell(f"command to the node at QoS 2: interval {_COMMANDED_MS}")
    stage.collector.command(_DEVICE, f"interval {_COMMANDED_MS}")
    node.wait_for_word("command")
    for text, break_it in _FAULTS:
        node.wait_for_readings(readings, 1)
        stage.tell(text)
        before = node.counts["connected"]
        break_it(stage)
        node.wait_for_word("connected", before + 1)
        stage.tell("node is connected again")
        stage.progress.advance(bar)
    node.wait_for_readings(readings, 1)
    ending = stage.finish(node)
    accounts = stage.accounts(node, _QOS)
    stage.progress.remove_task(bar)
    return Outcome("Links that break", accounts, [*_checks(stage, node), ending])


def _checks(stage: Stage, node: DeskNode) -> list[tuple[str, bool]]:
    proxy = stage.proxy
    commanded = node.lines.count(f"command interval {_COMMANDED_MS}")
    report = node.report or {}
    return [
        (
            f"it was broken: link cut {proxy.cuts} times ({proxy.cuts_in_packet} inside a packet),"
            " broker restarted",
            proxy.cuts == 5 and proxy.cuts_in_packet >= 4 and node.counts["connected"] >= 7,
        ),
        (
            f"command at QoS 2 carried out once: a sample every {report.get('interval_ms')} ms",
            commanded == 1 and report.get("interval_ms") == _COMMANDED_MS,
        ),
    ]


def _restart_broker(stage: Stage) -> None:
    stage.broker.stop()
    time.sleep(_BROKER_DOWN_S)
    stage.broker.start()
    stage.tell("broker started again, from what it kept on disk")


_SENDING = (
    "link cut in the middle of a packet from the node",
    lambda stage: stage.proxy.cut_in_packet(100, CLIENT),
)
_RECEIVING = (
    "link cut in the middle of a packet from the broker",
    lambda stage: stage.proxy.cut_in_packet(100, BROKER),
)
_RESTART = ("broker stopped", _restart_broker)
_AT_ONCE = ("link cut", lambda stage: stage.proxy.cut())
# What is told, and what is done then.
_FAULTS = (_SENDING, _RECEIVING, _RESTART, _SENDING, _AT_ONCE, _RECEIVING)
