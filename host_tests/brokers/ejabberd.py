"""ejabberd, a server for XMPP whose module mod_mqtt is a broker for MQTT 3.1.1 and 5.

It keeps sessions in memory, and retained messages on disk.  A client is known by user
name and client id together; a client without a user name is somebody else each time.
"""

import os
from pathlib import Path

from tools.demo.broker import BrokerError, BrokerProcess
from tools.setup import programs

_CONFIGURATION = """\
hosts: [localhost]
auth_method: anonymous
anonymous_protocol: login_anon
allow_multiple_connections: true
listen:
  - module: mod_mqtt
    ip: "{host}"
    port: {port}
modules:
  mod_mqtt: {{{options}}}
"""


class Ejabberd(BrokerProcess):
    """Options are those of mod_mqtt, e.g. `Ejabberd(max_queue=100)`."""

    name = "ejabberd"

    def __init__(self, folder: Path | None = None, port: int = 0, **options: object) -> None:
        super().__init__(folder, port)
        self.options = {"max_queue": "infinity", **options}

    def _prepare(self) -> list[str]:
        program = programs.erlang_of(programs.NEWER) / "erl"
        if not program.exists():
            raise BrokerError("ejabberd is not there: run `pytest -m broker host_tests/brokers`")
        options = ", ".join(f"{name}: {value}" for name, value in self.options.items())
        self._configuration.write_text(
            _CONFIGURATION.format(host=self.host, port=self.port, options=options)
        )
        database = f'"{self.folder / "mnesia"}"'  # an Erlang term
        return [str(program), "-noinput", "-mnesia", "dir", database, "-s", "ejabberd"]

    def _environment(self) -> dict[str, str]:
        libraries = programs.NEWER.glob("usr/lib/*-linux-gnu*")
        return {
            **super()._environment(),
            "HOME": str(self.folder),  # where Erlang keeps its cookie
            "ERL_LIBS": os.pathsep.join(map(str, libraries)),
            "EJABBERD_CONFIG_PATH": str(self._configuration),
            "EJABBERD_LOG_PATH": str(self.folder / "ejabberd.log"),
        }

    @property
    def _configuration(self) -> Path:
        return self.folder / "ejabberd.yml"
