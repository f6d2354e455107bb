"""What a board can tell without a part: its chip's temperature, within a few degrees, free heap
and Wi-Fi signal strength."""

import gc

from reading import FREE_HEAP, SIGNAL, TEMPERATURE


class FreeHeap:
    """Bytes the garbage collector has free (walks the heap: some ms on a board)."""

    def measure(self, reading):
        reading.add(FREE_HEAP, gc.mem_free())


class Signal:
    """RSSI of the Wi-Fi link in dBm; raises OSError while there is none."""

    def __init__(self):
        import network

        self._wlan = network.WLAN(network.STA_IF)

    def measure(self, reading):
        reading.add(SIGNAL, self._wlan.status("rssi"))


class Esp32Temperature:
    """ESP32 family: whole °C on C3, C6, S2 and S3; °F on the first ESP32."""

    def __init__(self):
        import esp32

        self._celsius = getattr(esp32, "mcu_temperature", None)
        self._fahrenheit = getattr(esp32, "raw_temperature", None)

    def measure(self, reading):
        if self._celsius:
            reading.add(TEMPERATURE, self._celsius() * 100)
        else:
            reading.add(TEMPERATURE, (self._fahrenheit() - 32) * 500 // 9)


class RP2Temperature:
    """RP2040 and RP2350: a diode on the ADC, 27 °C at 706 mV, -1.721 mV per °C."""

    def __init__(self):
        from machine import ADC

        self._adc = ADC(ADC.CORE_TEMP)

    def measure(self, reading):
        raw = self._adc.read_u16()
        # 65536 steps of 3.3 V, in small integers only: 1 step is 50.354 µV.
        microvolts = raw * 50 + raw * 354 // 1000
        reading.add(TEMPERATURE, 2700 - (microvolts - 706000) * 100 // 1721)
