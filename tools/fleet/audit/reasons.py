"""Reason codes of level 5, and return codes of CONNACK below it, in words."""

_RETURN_CODES = {
    1: "protocol version not accepted",
    2: "client id refused",
    3: "server unavailable",
    4: "user name or password wrong",
    5: "not authorized",
}
_REASONS = {
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "an error of this server's own",
    0x84: "protocol version not supported",
    0x85: "client id not valid",
    0x86: "user name or password wrong",
    0x87: "not authorized",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8A: "banned",
    0x8B: "server shuts down",
    0x8C: "bad way to authenticate",
    0x8D: "keep alive passed",
    0x8E: "another connection took its place",
    0x8F: "filter not valid",
    0x90: "topic not valid",
    0x91: "packet id in use",
    0x92: "packet id not known",
    0x93: "more in flight than the receive maximum",
    0x94: "topic alias not valid",
    0x95: "packet too large",
    0x96: "too many messages a second",
    0x97: "quota exceeded",
    0x98: "ended by an administrator",
    0x99: "payload format not valid",
    0x9A: "retain not supported",
    0x9B: "QoS not supported",
    0x9C: "use another server",
    0x9D: "the server has moved",
    0x9E: "shared subscriptions not supported",
    0x9F: "too many connections a second",
    0xA0: "longest time of a connection is over",
    0xA1: "subscription ids not supported",
    0xA2: "wildcards not supported",
}
# What operators bring about, or findings of their own tell.
NO_TROUBLE = (0x8B, 0x8D, 0x8E, 0x98, 0x9C, 0x9D, 0xA0)


def words(code):
    """Such as "0x95 (packet too large)"."""
    text = _RETURN_CODES.get(code) or _REASONS.get(code)
    number = "%d" % code if code < 0x80 else "0x%02X" % code
    return "%s (%s)" % (number, text) if text else number
