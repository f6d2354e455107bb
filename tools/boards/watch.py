"""What a fleet publishes, as it comes: one line each, for people or as JSON.

Subscribes with a client that is not ours; decodes, judges nothing.
"""

import json
from datetime import UTC, datetime, timedelta

import paho.mqtt.client as paho

from .envelope import read_envelope
from .errors import BoardError

_KEEPALIVE_S = 30
# What stands before the text of messages that are text.
_WORDS = {"status": "is ", "answer": "answers: ", "fault": "fault: "}


def line_of(topic, payload, arrived, as_json=False):
    """One message as a line of text; None when it is nothing that a device publishes.

    `arrived` is a datetime with a time zone.
    """
    *_, kind = topic.rstrip("/").split("/reading/")[0].split("/")
    device = _device(topic)
    if device is None or kind == "command":
        return None
    envelope = read_envelope(payload)
    if envelope:
        return _json(topic, envelope) if as_json else _reading(envelope, arrived)
    text = payload.decode(errors="replace")
    if kind not in _WORDS:
        return None
    if as_json:
        about = {"topic": topic, "device": device, kind: text, "arrived": arrived.isoformat()}
        return json.dumps(about, ensure_ascii=False)
    return f"{_clock(arrived)} {device} {_WORDS[kind]}{text or 'none'}"


def _device(topic):
    parts = topic.split("/")
    if len(parts) > 2 and parts[-2] == "reading":
        return parts[-3]
    return parts[-2] if len(parts) > 1 else None


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
    about = {
        "topic": topic,
        "device": envelope.device,
        "kind": "health" if envelope.is_health else "reading",
        "time": envelope.time,
        "boot": envelope.boot,
        "stream": envelope.stream,
        "sequence": envelope.sequence,
        "uptime_s": envelope.uptime_s,
        "firmware": envelope.firmware,
        "values": envelope.named_values(),
    }
    return json.dumps(about, ensure_ascii=False)


def connect(server, user=None, password=None, ca=None, cert=None, key=None, cleared=None):
    """A paho client that is connected to `server` (HOST or HOST:PORT), with TLS if `ca` is
    named; `cert` and `key` are files of our own.  `cleared`: a topic whose retained message
    the broker forgets when the connection is lost.  BoardError."""
    host, _, port = server.partition(":")
    if not host or port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise BoardError(f"{server}: no server; allowed: HOST or HOST:PORT")
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    if user:
        client.username_pw_set(user, password)
    if cleared:
        client.will_set(cleared, b"", retain=True)
    try:
        if ca:
            client.tls_set(ca, cert, key)
        client.connect(host, int(port or (8883 if ca else 1883)), _KEEPALIVE_S)
    except (OSError, ValueError) as error:
        raise BoardError(f"{server}: {getattr(error, 'strerror', None) or error}") from None
    return client


def watch(client, prefix, on_line, as_json=False):
    """Hand a line for each message below `prefix` to `on_line`, for ever.  BoardError."""

    def subscribe(client, data, flags, reason, properties):
        if reason.is_failure:
            refusals.append(str(reason))
            client.disconnect()
        else:
            client.subscribe(f"{prefix}/#", 1)

    def hear(client, data, message):
        line = line_of(message.topic, message.payload, datetime.now(UTC), as_json)
        if line:
            on_line(line)

    refusals: list[str] = []
    client.on_connect, client.on_message = subscribe, hear
    client.loop_forever(retry_first_connection=False)
    raise BoardError(f"the broker refuses: {refusals[0]}" if refusals else "disconnected")
