"""The codes of MQTTError, and what it says to a person: what happened, what to do.

A module of its own, since on a good day no board needs it: it is loaded with the first
error, or by a program that asks for one of the names.
"""

# 1 to 255 are the broker's own words: the return code of CONNACK (MQTT 3.1 §3.2).
REFUSED_VERSION = 1
REFUSED_CLIENT_ID = 2
REFUSED_UNAVAILABLE = 3
REFUSED_CREDENTIALS = 4
REFUSED_NOT_AUTHORIZED = 5

NETWORK = 256
TIMEOUT = 257
CLOSED = 258
PROTOCOL = 259
TOO_LARGE = 260
FULL = 261
JOURNAL = 262
BUSY = 263
AWAITING_REL = 264

_TEXTS = {
    1: "broker refused MQTT 3.1: check that it speaks this version",
    2: "broker refused the client id: use another one of 1 to 23 characters",
    3: "broker unavailable: try again later",
    4: "broker refused user name or password: check both",
    5: "broker says not authorized: check the broker's access rules",
    256: "no network connection to the broker: check address, port and link",
    257: "no answer in time: reconnect()",
    258: "no connection, or the broker closed it: connect() or reconnect()",
    259: "broker broke the protocol: reconnect()",
    260: "larger than buffer_size: send less or raise buffer_size",
    261: "queue full: poll() until there is room",
    262: "journal unusable: check the block device",
    263: "already inside this client: call it from one task, not from a handler",
    264: "broker sends more QoS 2 messages than max_awaiting_rel: raise it",
}


def text_of(code):
    """-> the text of an error code."""
    return _TEXTS.get(code) or "broker refused: %d" % code


# The names above, for `errors` and the package to look in.
NAMES = globals()
