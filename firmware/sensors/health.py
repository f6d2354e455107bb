"""The node's own health as values: free heap and Wi-Fi signal strength."""

import gc

from reading import FREE_HEAP, SIGNAL


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
