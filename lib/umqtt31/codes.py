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
REFUSED_FILTER = 265

_TEXTS = {
    1: "broker refused this version of MQTT: try another level",
    2: "broker refused the client id: use another one of 1 to 23 characters",
    3: "broker unavailable: try again later",
    4: "broker refused user name or password: check both",
    5: "broker says not authorized: check user name, password and the broker's access rules",
    256: "no network connection to the broker: check address, port and link",
    257: "no answer in time: reconnect()",
    258: "no connection, or the broker closed it: connect() or reconnect()",
    259: "broker broke the protocol: reconnect()",
    260: "larger than buffer_size: send less or raise buffer_size",
    261: "queue full: poll() until there is room",
    262: "journal unusable: check the block device",
    263: "already inside this client: call it from one task, not from a handler",
    264: "broker sends more QoS 2 messages than max_awaiting_rel: raise it",
    265: "broker refused to subscribe: check its access rules",
}


def text_of(code):
    """-> the text of an error code."""
    text = _TEXTS.get(code)
    if not text and 127 < code < 256:
        from .reasons import TEXTS

        text = code in TEXTS and "%s (reason %d)" % (TEXTS[code], code)
    return text or "broker refused: %d" % code


def refusal(code, level, address):
    """-> the MQTTError of a connection that the broker did not accept: where, why, what to
    do.  `code`: as MQTTError has it, or the broker's own + 512."""
    from .errors import MQTTError

    code &= 511
    text = text_of(code)
    if code == REFUSED_VERSION or code == CLOSED:
        text = "broker %s CONNECT of MQTT %s: if it does not speak that, try level=%d" % (
            "refused the" if code == 1 else "closed the connection on the",
            ("3.1", "3.1.1", "5")[level - 3],
            3 if level == 4 else 4,
        )
    elif code == TIMEOUT:
        text = "no answer in time: reconnect(), or is it no MQTT port, or one with TLS?"
    return MQTTError(code, "%s (%s port %d)" % (text, address[0], address[1]))


# The names above, for `errors` and the package to look in.
NAMES = globals()
