"""A sensor for the desk: temperature and humidity that walk up and down in steps."""

from reading import HUMIDITY, TEMPERATURE


class Simulated:
    """The same values in every run: a triangle between 15 and 25 °C, 40 and 60 %."""

    def __init__(self):
        self._step = 0

    def measure(self, reading):
        self._step = (self._step + 1) % 200
        height = min(self._step, 200 - self._step)
        reading.add(TEMPERATURE, 1500 + height * 10)
        reading.add(HUMIDITY, 4000 + height * 20)
