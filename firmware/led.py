"""The status LED: lit while the broker is there, blinking while it is not."""


class Led:
    """`pin` is a machine.Pin or None (no LED), `on_level` the level that lights it."""

    def __init__(self, pin, on_level=1):
        self._pin = pin
        self._on = on_level
        self._lit = False

    def show(self, is_online):
        """Called once per round of the main loop, which makes the blinking."""
        self._lit = is_online or not self._lit
        if self._pin:
            self._pin.value(self._on if self._lit else 1 - self._on)
