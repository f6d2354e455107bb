"""Wi-Fi that stays up, on ESP32 and RP2040."""

from collections.abc import Callable
from typing import Any

class WiFi:
    """A station of the network `ssid`, which is open without `password`.

    `country`: two letters, where the port has a choice.  `pm`: power management, a value for
    `WLAN.config(pm=)`; None is off on RP2, where it delays what arrives, else the port's own.
    The radio stays off until `is_up()` is asked.
    """

    wlan: Any
    """MicroPython's `network.WLAN`."""
    why: str | None
    """Why there is no link, in words; None while it is not known."""
    on_change: Callable[[bool], object] | None
    """Called with True when the link came, with False when it is gone."""

    def __init__(
        self, ssid: str, password: str | None = None, country: str | None = None,
        pm: int | None = None,
    ) -> None: ...  # fmt: skip
    def is_up(self, timeout_ms: int = 0) -> bool:
        """Is there a link?  When not, and it is time, join again; wait for it so long."""

    async def keep(self) -> None:
        """For asyncio: a task that keeps the link up."""

    def rssi(self) -> int | None:
        """Signal strength in dBm; None without a link."""
