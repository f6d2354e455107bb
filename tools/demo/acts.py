"""The acts: the link breaks in every way it can; the node's plug is pulled again and again."""

import random
import time

from .desk import DeskNode
from .stage import Outcome, Stage
from .tap import BROKER, CLIENT

_INTERVAL_MS = 100
_COMMANDED_MS = 40
_BROKER_DOWN_S = 1.5
_LIFE_S = (0.1, 2.0)
_MORE_READINGS = 20


def break_links(stage: Stage, readings: int) -> Outcome:
    """Go through all faults, with `readings` on each of three streams between two."""
    device, qos = "demo-links", [0, 1, 2]
    node = stage.node(
        device, streams=qos, interval_ms=_INTERVAL_MS, max_inflight=8, max_mqueue_len=128
    )
    bar = stage.progress.add_task("faults", total=len(_FAULTS))
    stage.tell(f"node starts: a sample every {_INTERVAL_MS} ms, published at QoS 0, 1 and 2")
    node.start()
    node.wait_until(lambda: "online" in stage.collector.statuses[device], 60, "connection")
    node.wait_for_readings(readings, 1)
    stage.tell(f"command to the node at QoS 2: interval {_COMMANDED_MS}")
    stage.collector.command(device, f"interval {_COMMANDED_MS}")
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
    accounts = stage.accounts(node, qos)
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
# Each act: what is told, and what is done then.
_FAULTS = (_SENDING, _RECEIVING, _RESTART, _SENDING, _AT_ONCE, _RECEIVING)


def pull_plugs(stage: Stage, kills: int, seed: int) -> Outcome:
    """Kill the node, its journal on flash, `kills` times at random moments; it ends at last."""
    moments = random.Random(seed)
    qos = [1, 2]
    node = stage.node(
        "demo-plug", streams=qos, interval_ms=30, max_inflight=8, max_mqueue_len=128,
        store="journal",
    )  # fmt: skip
    bar = stage.progress.add_task("plug pulled", total=kills)
    stage.tell(f"node starts with its journal on flash; its plug is pulled {kills} times")
    for _ in range(kills):
        node.start()
        node.live(moments.uniform(*_LIFE_S))
        node.kill()
        stage.progress.advance(bar)
    stage.tell("node starts for the last time")
    node.start()
    connects = node.counts["connected"]
    node.wait_for_readings(_MORE_READINGS, 1)
    node.wait_for_word("connected", connects + 1)
    ending = stage.finish(node)
    accounts = stage.accounts(node, qos)
    stage.progress.remove_task(bar)
    broken = (
        f"it was broken: plug pulled {kills} times;"
        f" {node.counts['connected']} connections, {node.boot} starts counted",
        node.counts["connected"] > 1 and node.boot <= kills + 1,
    )
    return Outcome("Plug pulled, journal on flash", accounts, [broken, ending])
