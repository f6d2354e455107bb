# Runs on the board: feeds the watchdog that the firmware may have started, every
# second, for as long as this connection lasts.  The unix port has neither.
try:
    import machine

    _watchdog = machine.WDT(timeout=8000)
    _timer = machine.Timer(0) if __import__("sys").platform == "esp32" else machine.Timer()
    _timer.init(period=1000, callback=lambda timer: _watchdog.feed())
except (ImportError, AttributeError):
    pass
