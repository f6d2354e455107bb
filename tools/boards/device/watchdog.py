# Runs on the board: feeds the watchdog that the firmware may have started, every
# second, for as long as this connection lasts.  A board without the firmware has
# none, and one that is started here would reset it later on.
def _has_watchdog():
    try:
        import board

        return board.WATCHDOG_MS is not None
    except ImportError:
        return False
    except Exception:
        return True  # a broken file, which may have started one


try:
    if _has_watchdog():
        import sys

        import machine

        _watchdog = machine.WDT(timeout=8000)
        _timer = machine.Timer(0) if sys.platform == "esp32" else machine.Timer()
        _timer.init(period=1000, callback=lambda timer: _watchdog.feed())
except AttributeError:
    pass  # the unix port
