"""Reason codes of level 5, and return codes of CONNACK below it, in words."""

_RETURN_CODES = """
protocol version not accepted; client id refused; server unavailable; user name or password
wrong; not authorized
"""  # from 1 on
_REASONS = """
unspecified error; malformed packet; protocol error; an error of this server's own; protocol
version not supported; client id not valid; user name or password wrong; not authorized; server
unavailable; server busy; banned; server shuts down; bad way to authenticate; keep alive passed;
another connection took its place; filter not valid; topic not valid; packet id in use; packet id
not known; more in flight than the receive maximum; topic alias not valid; packet too large; too
many messages a second; quota exceeded; ended by an administrator; payload format not valid;
retain not supported; QoS not supported; use another server; the server has moved; shared
subscriptions not supported; too many connections a second; longest time of a connection is over;
subscription ids not supported; wildcards not supported
"""  # from 0x80 on
_WORDS = {
    first + at: " ".join(text.split())
    for first, texts in ((1, _RETURN_CODES), (0x80, _REASONS))
    for at, text in enumerate(texts.split(";"))
}
# What operators bring about, or findings of their own tell.
NO_TROUBLE = (0x8B, 0x8D, 0x8E, 0x98, 0x9C, 0x9D, 0xA0)


def words(code):
    """Such as "0x95 (packet too large)"."""
    text = _WORDS.get(code)
    number = "%d" % code if code < 0x80 else "0x%02X" % code
    return "%s (%s)" % (number, text) if text else number
