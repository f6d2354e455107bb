"""What errors are called and what they say to a person: what happened, what to do.

On a good day no board needs this module: it is loaded when an error is shown, when a program
asks the package for a name, or when an argument is refused.
"""

import errno
import sys

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
    # Wrong arguments: TypeError, then ValueError.
    "stream": "stream has no readinto()",
    "store": "store must be a Journal",
    "server": "server must be a host name or an address",
    "filters": "topic must be a list of (filter, QoS)",
    "no filter": "topic: no filter given",
    "password": "password without user",
    "client_id": "an empty client_id needs clean_session=True",
    "ordered": "ordered: one QoS, 1 or 2, for all, and no max_age",
    "overflow": 'overflow: "refuse", without ordered "drop_oldest" or "latest"',
}


def text_of(error, cause, place):
    """-> the text of an MQTTError.  `cause`: what the stream raised, a text, or what the core
    knows; `place`: ((server, port, SSLContext), level, was it still connecting), or None."""
    code = error.code
    if isinstance(cause, str):
        return cause
    if code == NETWORK and place:
        if error.errno != errno.ECONNRESET or place[0][2] or not place[2]:
            return _lost(cause, *place)
        code = CLOSED  # as a port with TLS does
    if code == TOO_LARGE and cause:
        return (
            "a message of %d bytes came, larger than memory or buffer_size: "
            "raise buffer_size or set on_oversize" % cause
        )
    if code == REFUSED_FILTER and cause:
        return "broker refused %r: %s" % (cause[0], text_of_code(cause[1] | 128))
    text = text_of_code(code)
    if not place:
        return text
    (server, port, context), level, _ = place
    if code == REFUSED_VERSION or code == CLOSED:
        text = "broker %s CONNECT of MQTT %s: if it does not speak that, try level=%d%s" % (
            "refused the" if code == 1 else "closed the connection on the",
            ("3.1", "3.1.1", "5")[level - 3],
            3 if level == 4 else 4,
            "" if code == 1 or context else ", or ssl=True if this is a TLS port",
        )
    elif code == TIMEOUT:
        text += ", or is it no MQTT port, or one with TLS?"
    return "%s (%s port %d)" % (text, server, port)


def text_of_code(code):
    """-> the text of an error code."""
    text = _TEXTS.get(code)
    if not text and 127 < code < 256:
        from .reasons import TEXTS

        text = code in TEXTS and "%s (reason %d)" % (TEXTS[code], code)
    return text or "broker refused: %d" % code


def _lost(cause, address, level, is_new):
    server, port, context = address
    text = str(cause)
    if "addrinfo" in text or text in ("-2", "-3", "-202"):  # of getaddrinfo()
        cause = "name %s is not known" % server
    elif context:
        from .tls import text_of as text_of_tls

        # `sslparams` may know another name.
        cause = text_of_tls(cause, is_new and getattr(context, "server", server))
    elif isinstance(cause, ImportError):
        cause = "this build has no sockets: connect(stream=)"
    what = "connection to", "lost"
    if is_new:
        what = "cannot reach", "(check both)"
    return "%s the broker %s port %d %s: %s" % (what[0], server, port, what[1], cause)


def complaint(what, *about):
    """-> the exception for an argument that the core refuses.  `about`: the value; where numbers
    are allowed, the least and the most of them, too; nothing for what stands in _TEXTS."""
    if not about:
        is_type = what in ("stream", "store", "server", "filters")
        return (TypeError if is_type else ValueError)(_TEXTS[what])
    value = about[0]
    if what == "option":
        text = "unexpected argument %s"
        if value in ("overflow", "mqueue_store_qos0", "ordered", "max_age"):
            text = "%s: take MQTTClient from umqtt31.queueing"
        return TypeError(text % value)
    if about[1:]:
        least, most = about[1:]
        if not isinstance(value, int):
            return TypeError("%s must be an int, not %r" % (what, value))
        text = "%s must be %d to %d, not %r" % (what, least, most, value)
        if what == "level" and 2 < value < 6:
            text += ": take MQTTClient from umqtt31" + (".v5" if value == 5 else "")
        if what == "client_id":
            text = "client_id must have %d to %d characters, not %d" % (least, most, value)
            if most == 23:
                text += ": level=4 takes longer ones"
        return ValueError(text)
    if not isinstance(value, (bytes, bytearray, memoryview, str)):
        return TypeError("%s must be bytes or str, not %r" % (what, value))
    if what != "topic" and what != "filter":
        return ValueError("%s must be UTF-8 without NUL" % what)
    shown = value[:80] if isinstance(value, str) else bytes(value[:80])
    return ValueError("not a valid %s: %r%s" % (what, shown, "..." if value[80:] else ""))


def show(value):
    """-> what print() says of a Message or of Stats."""
    if hasattr(value, "topic_len"):
        return "%r: %r (QoS %d%s)" % (
            value.topic, value.payload, value.qos, ", retained" if value.retain else ""
        )  # fmt: skip
    names = "sent received retried duplicates strays dropped oversize refused reconnects pings"
    text = ""
    for name in names.split():
        text += ", %s %d" % (name, value[name])
    return text[2:]


def find(name):
    """-> what the package has under this name: a class or a module of an option, a code."""
    if name == "__all__":  # a miss here would end "from umqtt31 import *"
        return "MQTTClient", "MQTTError", "Message"
    if name[0] == "_":
        raise AttributeError(name)
    if name in globals() and name.upper() == name:
        return globals()[name]
    # Who imports an option needs none of this: only codes and texts stay.
    del sys.modules["umqtt31"].errors, sys.modules[__name__]
    # "from umqtt31 import aio": MicroPython asks here before it looks for a module.
    path = "umqtt31." + (name.lower() if name in ("Journal", "FileBlockDevice") else name)
    try:
        __import__(path)
    except ImportError as error:
        raise AttributeError(name) if name in path else error
    found = sys.modules[path]
    return found if name in path else getattr(found, name)
