"""The supply voltage at an ADC pin, usually the middle of a divider of two resistors."""

from reading import SUPPLY

_SAMPLES = 8


class Battery:
    """`adc` is a machine.ADC; `percent` what the supply has of the voltage at its pin."""

    def __init__(self, adc, percent=200):
        self._adc = adc
        self._percent = percent

    def measure(self, reading):
        """The mean of some samples, as the radio's current makes the voltage dip."""
        millivolts = 0
        for _ in range(_SAMPLES):
            millivolts += self._millivolts()
        reading.add(SUPPLY, millivolts // _SAMPLES * self._percent // 100)

    def _millivolts(self):
        # read_uv() knows how the chip's ADC was calibrated; rp2 has none.
        if hasattr(self._adc, "read_uv"):
            return self._adc.read_uv() // 1000
        return self._adc.read_u16() * 3300 >> 16
