"""amqtt, a broker in Python for MQTT 3.1.1 only: it refuses level 3.

A package of `.venv`; keeps everything in memory.
"""

import sys
from pathlib import Path

from tools.demo.broker import BrokerProcess

_CONFIGURATION = """\
listeners:
  default:
    type: tcp
    bind: {host}:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""


class Amqtt(BrokerProcess):
    """Has no options."""

    name = "amqtt"

    def __init__(self, folder: Path | None = None, port: int = 0) -> None:
        super().__init__(folder, port)

    def _prepare(self) -> list[str]:
        path = self.folder / "amqtt.yaml"
        path.write_text(_CONFIGURATION.format(host=self.host, port=self.port))
        return [sys.executable, "-m", "amqtt.scripts.broker_script", "-c", str(path)]
