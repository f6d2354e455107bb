"""RabbitMQ 3 and 4 with their MQTT plugin, as ordinary processes of this user.

Everything that one writes is in its folder, AMQP is off, and its name service (epmd) is
one of its own on a free port, so nothing of an installed RabbitMQ is touched.  Messages
are on disk before they are acknowledged: it keeps its state through kill() too.
"""

import os
import shlex
from pathlib import Path
from typing import ClassVar

from tools.demo.broker import BrokerError, BrokerProcess, free_port
from tools.setup import programs

_CONFIGURATION = {
    "listeners.tcp": "none",
    "mqtt.allow_anonymous": "true",
    "log.console": "true",
    "log.file": "false",
}


class RabbitMQ(BrokerProcess):
    """Options are lines of rabbitmq.conf with `_` for `.`, e.g. `RabbitMQ4(mqtt_prefetch=1)`."""

    unpacked: ClassVar[Path]
    # Who an anonymous client is: lines of rabbitmq.conf.
    anonymous: ClassVar[dict[str, str]]

    def __init__(self, folder: Path | None = None, port: int = 0, **options: object) -> None:
        super().__init__(folder, port)
        self._names_port = free_port()
        given = {name.replace("_", ".", 1): str(value) for name, value in options.items()}
        self.options = {**_CONFIGURATION, **self.anonymous, **given}

    def _prepare(self) -> list[str]:
        server = next(self.unpacked.glob("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server"), None)
        if server is None:
            raise BrokerError("RabbitMQ is not there: run `pytest -m broker host_tests/brokers`")
        lines = {"mqtt.listeners.tcp.1": f"{self.host}:{self.port}", **self.options}
        self._file("rabbitmq.conf").write_text(
            "".join(f"{name} = {value}\n" for name, value in lines.items())
        )
        self._file("enabled_plugins").write_text("[rabbitmq_mqtt].\n")
        names = ["epmd", "-address", self.host, "-port", str(self._names_port)]
        # One process group: the name service ends with the server.
        return ["sh", "-c", f"{shlex.join(names)} & exec {shlex.quote(str(server))}"]

    def _environment(self) -> dict[str, str]:
        inherited = super()._environment()
        erlang = programs.erlang_of(self.unpacked)
        return {
            **inherited,
            "PATH": os.pathsep.join([str(erlang), inherited.get("PATH", os.defpath)]),
            "HOME": str(self.folder),  # where Erlang keeps its cookie
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_ALLOW_INPUT": "1",  # no shell in between that would catch signals
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput",
            "RABBITMQ_NODENAME": f"umqtt31-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONFIG_FILE": str(self._file("rabbitmq.conf")),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._file("enabled_plugins")),
            "RABBITMQ_CONF_ENV_FILE": str(self._file("rabbitmq-env.conf")),
            "RABBITMQ_MNESIA_BASE": str(self._file("mnesia")),
            "RABBITMQ_LOG_BASE": str(self._file("log")),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(self._file("feature_flags")),
        }

    def _file(self, name: str) -> Path:
        return self.folder / name


class RabbitMQ3(RabbitMQ):
    """Speaks MQTT 3.1 and 3.1.1."""

    name = "rabbitmq3"
    unpacked = programs.OLDER
    anonymous: ClassVar = {"mqtt.default_user": "guest", "mqtt.default_pass": "guest"}


class RabbitMQ4(RabbitMQ):
    """Speaks MQTT 5, too."""

    name = "rabbitmq4"
    unpacked = programs.NEWER
    anonymous: ClassVar = {"anonymous_login_user": "guest", "anonymous_login_pass": "guest"}
