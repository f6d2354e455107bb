"""MQTTError and its codes: one exception for everything that is not a caller's slip.

Bad arguments raise ValueError or TypeError before anything is sent or stored;
all else is an MQTTError, which is an OSError, so that code written for other
clients, which catches OSError to reconnect, goes on working.
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
    258: "connection closed: connect() or reconnect()",
    259: "broker broke the protocol: reconnect()",
    260: "larger than buffer_size: send less or raise buffer_size",
    261: "queue full: poll() until there is room",
    262: "journal unusable: check the block device",
    263: "already inside this client: call it from one task, not from a handler",
    264: "broker sends more QoS 2 messages than max_awaiting_rel: raise it",
}


class MQTTError(OSError):
    """`code`: one of this module's numbers, or the broker's return code 6 to 255."""

    def __init__(self, code, text=None):
        super().__init__(code, text or _TEXTS.get(code) or "broker refused: %d" % code)
        self.code = code
