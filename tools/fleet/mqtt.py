"""What the specification says of packets and topics, in the words of no client.

The pipeline judges clients, ours too, so it takes nothing from one.
"""

CONNECT, CONNACK, PUBLISH = 0x10, 0x20, 0x30
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = 0x82, 0x90, 0xA2, 0xB0
PINGREQ, PINGRESP, DISCONNECT, AUTH = 0xC0, 0xD0, 0xE0, 0xF0
_MOST_CHARACTERS = 32767


def is_topic(data, is_filter=False):
    """Are these bytes a topic name, or a filter of topics?  MQTT 3.1.1 §4.7."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    if not 0 < len(text) <= _MOST_CHARACTERS or "\0" in text:
        return False
    levels = text.split("/")
    if not is_filter:
        return "+" not in text and "#" not in text
    is_whole = all(level in ("+", "#") or not set(level) & {"+", "#"} for level in levels)
    return is_whole and "#" not in levels[:-1]


def is_filter(text):
    """Is the text a filter of topics?"""
    return is_topic(text.encode("utf-8", "surrogateescape"), True)


def matches(pattern, name):
    """Does the filter match the topic name?  Both are text."""
    if name.startswith("$") and pattern[:1] in ("+", "#"):
        return False  # wildcards do not match the broker's own topics
    wanted, levels = pattern.split("/"), name.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        levels = levels[: len(wanted)]
    same = (one in ("+", other) for one, other in zip(wanted, levels, strict=False))
    return len(wanted) == len(levels) and all(same)
