"""Aedes, a broker for Node.js, which keeps everything in memory.

Its store on disk (aedes-persistence-level 9.2) loses about 5 in 10,000 acknowledged
messages, between two clients of paho too, so there is no use in testing against it.
Set-up installs aedes into `.tools/node`.
"""

import json
from pathlib import Path

from tools.demo.broker import BrokerError, BrokerProcess
from tools.setup.nodejs import FOLDER
from tools.setup.system import find

_SCRIPT = Path(__file__).parent / "node" / "aedes.mjs"


class Aedes(BrokerProcess):
    """Options are those of its constructor, e.g. `Aedes(queueLimit=1000)`."""

    name = "aedes"

    def __init__(self, folder: Path | None = None, port: int = 0, **options: object) -> None:
        super().__init__(folder, port)
        self.options = options

    def _prepare(self) -> list[str]:
        node = find("node")
        if node is None or not (FOLDER / "node_modules").is_dir():
            raise BrokerError("aedes is not installed: run `make setup`")
        arguments = {
            "modules": str(FOLDER),
            "host": self.host,
            "port": self.port,
            "options": self.options,
        }
        return [node, str(_SCRIPT), json.dumps(arguments)]
