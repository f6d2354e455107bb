"""Eclipse Mosquitto, with persistence on, for anonymous clients on the loopback.

Any line of mosquitto.conf can be given as an option.  State is written at stop();
a kill() loses what changed since, unless autosave is set by option.
"""

import os
from pathlib import Path

from tools.setup.system import find

from .broker import BrokerError, BrokerProcess

_DEFAULTS: dict[str, object] = {
    "allow_anonymous": True,
    "persistence": True,
    "max_queued_messages": 0,  # no limit: receivers here count every message
    "sys_interval": 0,
    "log_type": "all",
    "log_dest": "stderr",
}


class Mosquitto(BrokerProcess):
    """Options are configuration lines, e.g. `Mosquitto(max_inflight_messages=1)`."""

    name = "mosquitto"

    def __init__(self, folder: Path | None = None, port: int = 0, **options: object) -> None:
        super().__init__(folder, port)
        self.options = {**_DEFAULTS, **options}

    def _prepare(self) -> list[str]:
        program = find("mosquitto")
        if program is None:
            raise BrokerError("mosquitto is not installed: run `make setup`")
        path = self.folder / "mosquitto.conf"
        path.write_text("".join(f"{line}\n" for line in self._lines()))
        return [program, "-c", str(path)]

    def _lines(self) -> list[str]:
        lines = [f"listener {self.port} {self.host}", f"persistence_location {self.folder}/"]
        if os.geteuid() == 0:
            # Else the broker runs as the user "mosquitto", who cannot write into our folder.
            lines.append("user root")
        for name, value in self.options.items():
            lines.append(f"{name} {str(value).lower() if isinstance(value, bool) else value}")
        return lines
