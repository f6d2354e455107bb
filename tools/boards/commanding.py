"""A command to a device, and its answer; signed where the device asks for that.

Layout: docs/guides/access.md.  `firmware/commands.py` reads it, with code of its own.
"""

import secrets
import time
from hmac import compare_digest

import paho.mqtt.client as paho

from tools.terminal import printable

from .errors import BoardError
from .fleetkey import ANSWER, COMMAND, proof

_WAIT_S = 0.2


def command(client, root, words, key=None, patience_s=30.0, clock=time):
    """Send `words` to the device with the topics `root` over the paho `client` -> its answer.

    None: no answer came, or, with `key`, none with its proof.  The signature's number is the
    time in milliseconds, so that of two senders with right clocks each is heard.
    """
    name = secrets.token_hex(4)
    said = f"#{name} {words}".encode()
    if key:
        said = b"%d %s" % (clock.time_ns() // 1_000_000, said)
        said = proof(key, COMMAND, f"{root}/command".encode(), said) + b" " + said
    answers: list[str] = []

    def hear(client, data, message):
        text = answer_in(message.payload, message.topic, name, key)
        if text is not None:
            answers.append(text)

    client.on_message = hear
    client.on_subscribe = lambda *_: client.publish(f"{root}/command", said, qos=2)
    client.subscribe(f"{root}/answer", 1)
    end = clock.monotonic() + patience_s
    while not answers and clock.monotonic() < end:
        if client.loop(timeout=_WAIT_S) != paho.MQTT_ERR_SUCCESS:
            raise BoardError("the broker is gone; the command may have been carried out")
    return answers[0] if answers else None


def answer_in(payload, topic, name, key):
    """What the command with the id `name` was answered, None if it is another's or unproven."""
    if key:
        payload, _, shown = payload.rpartition(b" ")
        if not compare_digest(proof(key, ANSWER, b"", topic.encode(), payload), shown):
            return None
    begin, _, text = payload.decode(errors="replace").partition(" ")
    return printable(text) if begin == name else None
