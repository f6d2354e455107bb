# Runs on the board: does what was deployed work?  Imports it as the node does, in its order,
# checks settings, certificates and journal, measures the heap; touches neither network nor
# radio.
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
    del settings
    sys.modules.pop("settings")  # as start.py does: its tables are large
    gc.collect()
    # As the node makes it: reads certificates, opens the journal, refuses another's.
    from assemble import make_client

    client = make_client(config, board.journal() if config["store"] == "journal" else None)
    if config["store"] == "journal":
        report["journal"] = {"inflight": client.inflight, "queued": client.queued}
    import node  # noqa: F401

    if config["update_key"]:
        import ota  # noqa: F401


_report = {"problem": None, "micropython": list(sys.implementation[1][:3])}
try:
    check(_report)
except Exception as _error:
    _report["problem"] = "%s: %s" % (type(_error).__name__, _error)
print(json.dumps(_report))
