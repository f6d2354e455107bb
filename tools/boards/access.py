"""May anybody command a device?  Asked of the broker that its settings name."""

import secrets

import paho.mqtt.client as paho

from .config import keys
from .errors import BoardError
from .watch import connect

_WAIT_S = 0.2
_MOST_WAITS = 25


def doubt(settings, folder):
    """What to say of the broker of a device with these settings, if it lets anybody command it.

    None where it does not, or cannot be asked from here.  `folder` has the files that the
    settings name.
    """
    found = keys.complete(settings)
    host = f"[{found['server']}]" if ":" in found["server"] else found["server"]
    server = f"{host}:{found['port'] or (8883 if found['tls'] else 1883)}"
    ca = str(folder / found["tls"]) if found["tls"] else None
    names = [found["prefix"], found["site"], f"nobody-{secrets.token_hex(4)}", "command"]
    if not _takes(server, ca, "/".join(name for name in names if name)):
        return None
    return (
        f"{server} lets anybody command this device: it takes commands without a user name; "
        "docs/guides/access.md says what it should allow to whom"
    )


def _takes(server, ca, topic):
    # Does the broker accept a message without a user name, for a `topic` that nobody uses?
    for protocol in (paho.MQTTv5, paho.MQTTv311):
        try:
            client = connect(server, ca=ca, protocol=protocol)
        except BoardError:
            continue
        try:
            # Only a broker of level 5 says whether it did.
            return protocol != paho.MQTTv5 or _is_taken(client, topic)
        finally:
            client.disconnect()
    return False


def _is_taken(client, topic):
    reasons = []
    client.on_publish = lambda client, data, mid, reason, properties: reasons.append(reason)
    client.publish(topic, b"", qos=1)
    for _ in range(_MOST_WAITS):
        if reasons or client.loop(timeout=_WAIT_S) != paho.MQTT_ERR_SUCCESS:
            break
    return bool(reasons) and not reasons[0].is_failure
