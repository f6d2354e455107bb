"""What a fleet publishes, as it comes: one line each, for people or as JSON.

Subscribes with a client that is not ours; decodes, judges nothing.
"""

import ipaddress
import json
import re
import time
from datetime import UTC, datetime, timedelta

import paho.mqtt.client as paho

from tools.terminal import printable

from .envelope import read_envelope
from .errors import BoardError
from .fleetkey import PROOF_LENGTH

_SERVER = re.compile(r"(\[.*\]|[^:\[\]]+)(?::([0-9]+))?")
_KEEPALIVE_S = 30
_ANSWER_S = 10
_LONGEST_PAUSE_S = 10  # from one try to connect again to the next
# What is shown before the text of a message, by kind.
_UPDATE = "update/answer"
_WORDS = {"status": "is ", "answer": "answers: ", "fault": "fault: ", _UPDATE: "update: "}
_CHUNK = " have "  # in the answer to each chunk, which only the rollout needs
_PROOF = re.compile(rf" [0-9a-f]{{{PROOF_LENGTH}}}$")


def line_of(topic, payload, arrived, as_json=False):
    """One message as a line of text; None when it is nothing that a device publishes.

    `arrived` is a datetime with a time zone.
    """
    device, kind = _device_and_kind(topic)
    if device is None or kind == "command":
        return None
    envelope = read_envelope(payload)
    if envelope:
        return _json(topic, envelope) if as_json else printable(_reading(envelope, arrived))
    text = payload.decode(errors="replace")
    if kind not in _WORDS or kind == _UPDATE and _CHUNK in text:
        return None
    if kind in (_UPDATE, "answer"):
        text = _PROOF.sub("", text)  # the proof is for the sender of the command
    if as_json:
        word = kind.partition("/")[0]
        about = {"topic": topic, "device": device, word: text, "arrived": arrived.isoformat()}
        return json.dumps(about)
    return printable(f"{_clock(arrived)} {device} {_WORDS[kind]}{text or 'none'}")


def _device_and_kind(topic):
    # The kind is what follows the device, "reading/0" for ("reading", "0").
    *before, device, kind = ("//" + topic).split("/")
    if before[-1] and (device == "reading" or f"{device}/{kind}" == _UPDATE):
        return before[-1], f"{device}/{kind}"
    return device or None, kind


def _reading(envelope, arrived):
    when = datetime.fromtimestamp(envelope.time, UTC) if envelope.time else arrived
    values = ", ".join(envelope.texts()) or "no values"
    if envelope.is_health:
        up = timedelta(seconds=envelope.uptime_s)
        about = f"health: boot {envelope.boot}, up {up}, firmware {envelope.firmware}"
        return f"{_clock(when)} {envelope.device} {about}, {values}"
    place = f"{envelope.boot}/{envelope.stream}/{envelope.sequence}"
    guess = "" if envelope.time else " (arrived)"
    return f"{_clock(when)}{guess} {envelope.device} {place}: {values}"


def _clock(when):
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _json(topic, envelope):
    about = {"topic": topic, "kind": "health" if envelope.is_health else "reading"}
    return json.dumps(about | vars(envelope) | {"values": envelope.named_values()})


def connect(server, user=None, password=None, ca=None, cert=None, key=None, cleared=None, **more):
    """A paho client that is connected to `server` (HOST, HOST:PORT or [IPv6]:PORT), with TLS if
    `ca` is named; `cert` and `key` are files of our own.  `cleared`: a topic whose retained
    message the broker forgets when the connection is lost; `more` is for paho.  BoardError."""
    host, port = _host_and_port(server)
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, **more)
    client.reconnect_delay_set(max_delay=_LONGEST_PAUSE_S)
    if user:
        client.username_pw_set(user, password)
    if cleared:
        client.will_set(cleared, b"", retain=True)
    try:
        if ca:
            client.tls_set(ca, cert, key)
    except (OSError, ValueError) as error:
        names = ", ".join(filter(None, (ca, cert, key)))
        raise BoardError(f"{names}: no certificate or key in PEM: {error}") from None
    try:
        client.connect(host, port or (8883 if ca else 1883), _KEEPALIVE_S)
    except (OSError, ValueError) as error:
        raise BoardError(f"{server}: {getattr(error, 'strerror', None) or error}") from None
    _await_answer(client, server)
    return client


def _host_and_port(server):
    # -> (host, port or 0); an address of IPv6 alone needs no brackets.
    is_bare = "[" not in server and server.count(":") > 1
    found = _SERVER.fullmatch(f"[{server}]" if is_bare else server)
    host, port = found.groups("") if found else ("", "")
    try:
        if host.startswith("["):
            host = str(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        host = ""
    if not host or port and not 0 < int(port) < 65536:
        raise BoardError(f"{server}: no server; allowed: HOST, HOST:PORT or [IPv6]:PORT")
    return host, int(port or 0)


def _await_answer(client, server):
    # Without a limit it would try for ever where no broker listens, or one that wants TLS.
    client.on_connect = check_answer
    limit = time.monotonic() + _ANSWER_S
    while not client.is_connected():
        is_open = client.loop(timeout=0.2) == paho.MQTT_ERR_SUCCESS
        if not is_open or time.monotonic() >= limit:
            why = f"no answer in {_ANSWER_S} s" if is_open else "it closes the connection"
            raise BoardError(f"{server}: {why}; is that an MQTT broker's port, and is --ca right?")
    client.on_connect = None


def check_answer(client, data, flags, reason, properties):
    """As paho's on_connect: BoardError where the broker refuses."""
    if reason.is_failure:
        hint = "; are --user and --password-file right?" if "uthor" in str(reason) else ""
        raise BoardError(f"the broker refuses: {reason}{hint}")


def watch(client, prefix, on_line, as_json=False, on_text=lambda text: None):
    """Hand a line for each message below `prefix` to `on_line`, for ever.  BoardError.

    `on_text` hears when the connection is lost, and when there is one again.
    """

    def begin(client, *answer):
        check_answer(client, *answer)
        client.subscribe(f"{prefix}/#", 1)
        if losses:
            losses.clear()
            on_text("connected again")

    def end(client, data, flags, reason, properties):
        if reason.is_failure and not losses:
            losses.append(reason)
            on_text("the broker is gone; waiting for it")

    def hear(client, data, message):
        line = line_of(message.topic, message.payload, datetime.now(UTC), as_json)
        if line:
            on_line(line)

    losses: list = []
    client.on_connect, client.on_disconnect, client.on_message = begin, end, hear
    client.subscribe(f"{prefix}/#", 1)
    client.loop_forever(retry_first_connection=False)
    raise BoardError("disconnected")
