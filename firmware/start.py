"""Puts the node of this board together and runs it, for good.

`board` is the module `board.py`; docs/reference/board-profiles.md lists what it must define.
"""

import gc
import json
import sys
import time

_CRASH_PAUSE_MS = 5000


def start(board):
    """Run the node until it resets itself or sleeps; one that cannot start says why."""
    try:
        _run(board)
    except Exception as error:
        if board.WATCHDOG_MS is None:
            raise
        # An error nobody foresaw: in the field nobody presses the reset button.
        sys.print_exception(error)
        time.sleep_ms(_CRASH_PAUSE_MS)
        board.reset()


def _run(board):
    # The settings' tables take 8 KB of heap, so they are freed before anything else is loaded.
    config = _once("settings", lambda settings: _load(settings, board))
    node = config and _once("assemble", lambda module: module.assemble(config, board))
    if not node:
        board.halt()
        return
    # The texts of errors are loaded now; later the heap may lack a free block for them.
    import umqtt31.errors  # noqa: F401

    sleep_ms = node.run()
    print("report", json.dumps(node.report()))
    if sleep_ms:
        board.sleep(sleep_ms)
    else:
        board.reset()


def _load(settings, board):
    try:
        return settings.load(has_wifi=board.NETWORK == "wifi")
    except settings.SettingsError as error:
        print("cannot start:", error)
        return None


def _once(name, use):
    # use(module) -> what it returns; the module is forgotten.
    try:
        return use(__import__(name))
    finally:
        sys.modules.pop(name, None)
        gc.collect()
