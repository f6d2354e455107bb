"""One situation that a client may meet, and what the program sees of it.

Usage: micropython -m main ADAPTER PORT SITUATION.  Prints "goes on", or "unnoticed", or
"told" where a wait ended without an answer, or what was raised.
"""

import random
import sys

TOPIC = b"bench/reading"
GO = b"bench/go"
_TIMEOUT_S = 2
_KEEPALIVE_S = 2
_WATCH_S = 9


def seed_near_wrap():
    """The next 16 random bits, from which umqtt31 takes its first packet id, are high."""
    k = 0
    while True:
        random.seed(k)
        if 65520 <= random.getrandbits(16) < 65535:
            random.seed(k)
            return
        k += 1


class Ssl:
    """The module `ssl` of boards, which the unix port lacks."""

    def wrap_socket(sock, **_):
        return unverified().wrap_socket(sock)


def unverified():
    import tls

    sys.modules["ssl"] = sys.modules["ussl"] = Ssl
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    context.verify_mode = tls.CERT_NONE
    return context


def publish_unanswered(client):
    if hasattr(client, "publish_for"):
        return "goes on" if client.publish_for(TOPIC, b"x", 1, 3000) else "told"
    client.publish(TOPIC, b"x", 1, 1, 1)
    return "goes on"


def watch(client):
    for _ in range(_WATCH_S * 2):
        client.pause(500)
    return "unnoticed"


def receive_after_go(client, count=1):
    client.publish(GO, b"x", 0, 1, 1)
    client.receive(count)
    if hasattr(client, "publish_for"):
        client.pause(300)
    return "goes on"


def wrap(client):
    if hasattr(client, "near_wrap"):
        client.near_wrap()
    client.publish(TOPIC, b"x", 1, 20, 1)
    return "goes on"


def burst(client):
    return receive_after_go(client, 50) if client.highest_qos > 1 else "no QoS 2"


# What it does once it is connected; in the other situations receive_after_go().
ACTS = {"connack": None, "tls": None, "puback": publish_unanswered, "silence": watch}
ACTS.update(wrap=wrap, burst=burst)

adapter, port, situation = sys.argv[1:]
settings = {"timeout": _TIMEOUT_S, "keepalive": _KEEPALIVE_S}
try:
    adapter = __import__(adapter)
    if situation == "wrap":
        seed_near_wrap()
    if situation == "tls":
        settings["tls"] = unverified()
    client = adapter.Adapter(int(port), 1, **settings)
    client.connect()
    act = ACTS.get(situation, receive_after_go)
    print(act(client) if act else "goes on")
except Exception as error:
    print("raises " + type(error).__name__)
