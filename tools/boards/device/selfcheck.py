# Runs on the board: does what was deployed work?  Imports it, checks settings and
# journal, measures the heap; touches neither network nor radio.
import gc
import json
import sys


def check(report):
    gc.collect()
    report["free_before"] = gc.mem_free()
    import umqtt31

    report["version"] = getattr(umqtt31, "__version__", "unknown")
    gc.collect()
    report["free_heap"] = gc.mem_free()
    import board
    import settings

    report["board"] = board.NAME
    config = settings.load(has_wifi=board.NETWORK == "wifi")
    report["client_id"] = config["client_id"]
    report["store"] = config["store"]
    if config["store"] == "journal":
        report["journal"] = check_journal(board.journal(), config)


def check_journal(journal, config):
    # The constructor of the client opens the journal: another id's is refused.
    from umqtt31 import MQTTClient

    client = MQTTClient(
        config["client_id"],
        config["server"],
        buffer_size=config["buffer_size"],
        store=journal,
        max_inflight=config["max_inflight"],
        max_mqueue_len=config["max_mqueue_len"],
        max_awaiting_rel=20,  # as start.py: smaller could be too small for what is stored
    )
    return {"inflight": client.inflight, "queued": client.queued}


_report = {"problem": None, "micropython": list(sys.implementation[1][:3])}
try:
    check(_report)
except Exception as _error:
    _report["problem"] = "%s: %s" % (type(_error).__name__, _error)
print(json.dumps(_report))
