"""The words of a script: what values, packets and lists of them mean.

`dialogues/README.md` describes them.  Packets are those of `wire`, which the library's
codec has no part in.  Runs under CPython and MicroPython.
"""

import array  # noqa: F401 - for words

from host_tests.client import wire
from umqtt31.properties import encode  # noqa: F401 - for words

_ANSWERS = ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "DISCONNECT")
# What the broker's side of a stream does besides packets.
_EVENTS = {"end": b"", "failure": OSError(104), "pause": None}


def value_of(word):
    """-> the number, bytes, name, or other value of Python that a word says."""
    if word[0] == '"':
        return eval("b" + word)
    if word in ("True", "False", "None") or word[0] in "'([{" or word[-1] == ")":
        return eval(word)
    try:
        return int(word, 0)
    except ValueError:
        return float(word) if word.replace(".", "", 1).isdigit() else word


def bytes_of(word):
    value = value_of(word)
    return value if isinstance(value, bytes) else word.encode()


def items_of(text, level):
    """-> the words of each item of a list, what is for other levels left out."""
    found = []
    for item in text.split(", "):
        for one in counted(item):
            words = [_at_level(word, level) for word in one.split()]
            if None not in words:  # an @5 by itself is for the whole item
                found.append([word for word in words if word])
    return found


def _at_level(word, level):
    """-> the word; "" if it is for other levels, None if the item is."""
    text, _, levels = word.partition("@")
    if not levels or '"' in word:
        return word
    if str(level) in levels:
        return text
    return "" if text else None


def counted(item):
    """-> the item; each of many of them if it counts with "1..3" or ends with "x3"."""
    before, _, count = item.rpartition(" x")
    if before and count.isdigit():
        return [before] * int(count)
    before, dots, after = item.partition("..")
    if not dots:
        return [item]
    at = len(before)
    while at and before[at - 1].isdigit():
        at -= 1
    size = 0
    while size < len(after) and after[size].isdigit():
        size += 1
    numbers = range(int(before[at:]), int(after[:size]) + 1)
    rest = counted(after[size:])
    return [before[:at] + str(number) + rest[k % len(rest)] for k, number in enumerate(numbers)]


def arguments_of(words):
    """-> what stands by itself, and what has a name."""
    alone, named = [], {}
    for word in words:
        name, equals, value = word.partition("=")
        is_value = word[0] in "\"'([{" or "(" in name
        if is_value or not (equals or name in ("dup", "retain", "q0", "q1", "q2")):
            alone.append(value_of(word))
        elif equals:
            named[name] = value_of(value)
        elif name[0] == "q":
            named["qos"] = int(name[1])
        else:
            named[name] = True
    return alone, named


def packet_of(words):
    """-> the bytes of one packet, or what else a stream may give."""
    name = words[0]
    if name in _EVENTS:
        return OSError(int(words[1], 0)) if words[1:] else _EVENTS[name]
    if name[0] == '"' or name[-1] == ")":
        return value_of(name)
    make = getattr(wire, name.lower())
    if name in ("SUBSCRIBE", "UNSUBSCRIBE"):
        pairs = [word.rsplit(":", 1) for word in words[2:] if word != "dup"]
        pairs = [(bytes_of(one[0]), int(one[1])) if one[1:] else bytes_of(one[0]) for one in pairs]
        return make(int(words[1]), *pairs, dup=int("dup" in words))
    alone, named = arguments_of(words[1:])
    if name == "PUBLISH":
        return _publish(alone, named)
    dup = {"dup": 1} if named.pop("dup", False) else {}
    if named:  # properties: a reason stands before them
        return make(*alone, properties=wire.properties(**named), **dup)
    if name in _ANSWERS and len(alone) + (name == "DISCONNECT") > 1:
        reason = {"reason": alone.pop()}
        return make(*alone, **dup, **reason)
    return make(*alone, **dup)


def _publish(alone, named):
    packet_id, payload = 0, b"x"
    for value in alone:
        if isinstance(value, int):
            packet_id = value
        else:
            payload = value
    qos = named.pop("qos", 1 if packet_id else 0)
    topic = named.pop("topic", "t")
    head = [int(named.pop(name, 0)) for name in ("dup", "retain")]
    properties = wire.properties(**named) if named and wire.level == 5 else b""
    topic = topic if isinstance(topic, bytes) else topic.encode()
    return wire.publish(topic, payload, qos, packet_id, *head, properties=properties)
