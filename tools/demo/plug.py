"""Second act: the node's plug is pulled again and again; its journal is on flash."""

import random

from .stage import Outcome, Stage

_QOS = [1, 2]
_DEVICE = "demo-plug"
_LIFE_S = (0.1, 2.0)
_MORE_READINGS = 20


def play(stage: Stage, kills: int, seed: int) -> Outcome:
    """Kill the node `kills` times at random moments and let it finish at last."""
    moments = random.Random(seed)
    node = stage.node(
        _DEVICE, streams=_QOS, interval_ms=30, max_inflight=8, max_mqueue_len=128, store="journal"
    )
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
    accounts = stage.accounts(node, _QOS)
    stage.progress.remove_task(bar)
    broken = (
        f"it was broken: plug pulled {kills} times;"
        f" {node.counts['connected']} connections, {node.boot} starts counted",
        node.counts["connected"] > 1 and node.boot <= kills + 1,
    )
    return Outcome("Plug pulled, journal on flash", accounts, [broken, ending])
