"""Real brokers on this computer, each in a folder and on a loopback port of its own.

Each says how it is configured and started; all else is `tools.demo.broker.BrokerProcess`.
The demo owns mosquitto.
"""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import ClassVar

from tools.demo.broker import BrokerError, BrokerProcess, free_port
from tools.demo.mosquitto import Mosquitto
from tools.setup import nodejs, programs
from tools.setup.system import find

_BY_HAND = "is not there: run `pytest -m broker host_tests/brokers`"


class Amqtt(BrokerProcess):
    """amqtt, a package of `.venv`, in memory: MQTT 3.1.1 only, so that it refuses level 3."""

    name = "amqtt"
    _CONFIGURATION = """\
listeners:
  default:
    type: tcp
    bind: {host}:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""

    def _prepare(self) -> list[str]:
        path = self.folder / "amqtt.yaml"
        path.write_text(self._CONFIGURATION.format(host=self.host, port=self.port))
        return [sys.executable, "-m", "amqtt.scripts.broker_script", "-c", str(path)]


class Aedes(BrokerProcess):
    """Aedes, a broker for Node.js, which keeps everything in memory.

    Its store on disk (aedes-persistence-level 9.2) loses about 5 in 10,000 acknowledged
    messages, between two clients of paho too, so there is no use in testing against it.
    """

    name = "aedes"

    def _prepare(self) -> list[str]:
        node = find("node")
        if node is None or not (nodejs.FOLDER / "node_modules").is_dir():
            raise BrokerError("aedes is not installed: run `make setup`")
        where = {"modules": str(nodejs.FOLDER), "host": self.host, "port": self.port}
        return [node, str(Path(__file__).parent / "node" / "aedes.mjs"), json.dumps(where)]


class Ejabberd(BrokerProcess):
    """ejabberd, a server for XMPP whose module mod_mqtt is a broker for MQTT 3.1.1 and 5.

    It keeps sessions in memory, and retained messages on disk.  A client is known by user
    name and client id together; a client without a user name is somebody else each time.
    """

    name = "ejabberd"
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
  mod_mqtt: {{max_queue: infinity}}
"""

    def _prepare(self) -> list[str]:
        program = programs.erlang_of(programs.NEWER) / "erl"
        if not program.exists():
            raise BrokerError(f"ejabberd {_BY_HAND}")
        text = self._CONFIGURATION.format(host=self.host, port=self.port)
        (self.folder / "ejabberd.yml").write_text(text)
        database = f'"{self.folder / "mnesia"}"'  # an Erlang term
        return [str(program), "-noinput", "-mnesia", "dir", database, "-s", "ejabberd"]

    def _environment(self) -> dict[str, str]:
        libraries = programs.NEWER.glob("usr/lib/*-linux-gnu*")
        return {
            **super()._environment(),
            "HOME": str(self.folder),  # where Erlang keeps its cookie
            "ERL_LIBS": os.pathsep.join(map(str, libraries)),
            "EJABBERD_CONFIG_PATH": str(self.folder / "ejabberd.yml"),
            "EJABBERD_LOG_PATH": str(self.folder / "ejabberd.log"),
        }


class RabbitMQ(BrokerProcess):
    """RabbitMQ with its MQTT plugin, as an ordinary process of this user.

    Everything that one writes is in its folder, AMQP is off, and its name service (epmd) is
    one of its own on a free port, so nothing of an installed RabbitMQ is touched.  Messages
    are on disk before they are acknowledged: it keeps its state through kill() too.
    """

    unpacked: ClassVar[Path]
    anonymous: ClassVar[tuple[str, str]]  # the options for name and password of the anonymous
    _CONFIGURATION = """\
mqtt.listeners.tcp.1 = {host}:{port}
listeners.tcp = none
mqtt.allow_anonymous = true
log.console = true
log.file = false
{user} = guest
{password} = guest
"""

    def __init__(self, folder: Path | None = None, port: int = 0) -> None:
        super().__init__(folder, port)
        self._names_port = free_port()

    def _prepare(self) -> list[str]:
        server = next(self.unpacked.glob("usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server"), None)
        if server is None:
            raise BrokerError(f"RabbitMQ {_BY_HAND}")
        user, password = self.anonymous
        text = self._CONFIGURATION.format(
            host=self.host, port=self.port, user=user, password=password
        )
        (self.folder / "rabbitmq.conf").write_text(text)
        (self.folder / "enabled_plugins").write_text("[rabbitmq_mqtt].\n")
        names = ["epmd", "-address", self.host, "-port", str(self._names_port)]
        # One process group: the name service ends with the server.
        return ["sh", "-c", f"{shlex.join(names)} & exec {shlex.quote(str(server))}"]

    def _environment(self) -> dict[str, str]:
        inherited = super()._environment()
        erlang = programs.erlang_of(self.unpacked)
        files = {
            "CONFIG_FILE": "rabbitmq.conf",
            "ENABLED_PLUGINS_FILE": "enabled_plugins",
            "CONF_ENV_FILE": "rabbitmq-env.conf",
            "MNESIA_BASE": "mnesia",
            "LOG_BASE": "log",
            "FEATURE_FLAGS_FILE": "feature_flags",
        }
        return {
            **inherited,
            "PATH": os.pathsep.join([str(erlang), inherited.get("PATH", os.defpath)]),
            "HOME": str(self.folder),  # where Erlang keeps its cookie
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_ALLOW_INPUT": "1",  # no shell in between that would catch signals
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput",
            "RABBITMQ_NODENAME": f"umqtt31-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            **{f"RABBITMQ_{name}": str(self.folder / file) for name, file in files.items()},
        }


class RabbitMQ3(RabbitMQ):
    """Speaks MQTT 3.1 and 3.1.1."""

    name = "rabbitmq3"
    unpacked = programs.OLDER
    anonymous = ("mqtt.default_user", "mqtt.default_pass")


class RabbitMQ4(RabbitMQ):
    """Speaks MQTT 5, too."""

    name = "rabbitmq4"
    unpacked = programs.NEWER
    anonymous = ("anonymous_login_user", "anonymous_login_pass")


class TLSMosquitto(Mosquitto):
    """Shows the certificate NAME of a folder with `certificates`; speaks TLS up to `version`.

    Clients may have a certificate of the folder's authority "ca".
    """

    # What OpenSSL reads at its start.
    _UP_TO = """\
openssl_conf = main
[main]
ssl_conf = ssl
[ssl]
system_default = limits
[limits]
MaxProtocol = TLSv{}
# TLS 1.2 without RSA-PSS, which boards do not offer and Mbed TLS 3.6.3 takes wrongly.
SignatureAlgorithms = {}
"""
    _SIGNATURES: ClassVar = {
        "1.2": "ECDSA+SHA256:ECDSA+SHA384:RSA+SHA256:RSA+SHA384",
        "1.3": "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256",
    }

    def __init__(
        self, certificates: Path, name: str, version: str = "1.3", **options: object
    ) -> None:
        super().__init__()
        files = {"cafile": "ca.crt", "certfile": f"{name}.crt", "keyfile": f"{name}.key"}
        self.options |= {option: certificates / file for option, file in files.items()} | options
        self._limits = self.folder / "openssl.cnf"
        self._limits.write_text(self._UP_TO.format(version, self._SIGNATURES[version]))

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "OPENSSL_CONF": str(self._limits)}
