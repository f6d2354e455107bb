"""Aedes, a broker for Node.js, with its state in a LevelDB folder.

Set-up installs it into `.tools/node`.  What it has acknowledged is on disk, so it
keeps its state through kill() too.
"""

import json
from pathlib import Path

from tools.setup.node import FOLDER
from tools.setup.system import find

from .process import BrokerError, BrokerProcess

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
            "database": str(self.folder / "state"),
            "options": self.options,
        }
        return [node, str(_SCRIPT), json.dumps(arguments)]
