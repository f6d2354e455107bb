"""Script: the settings of one run, as one line of text.

`up=212 down=1 window=2` publishes three messages at QoS 2, 1, 2 while the broker
sends one at QoS 1.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Script:
    """What the program does, and what device and broker are like."""

    up: str = ""  # QoS of each message that it publishes
    down: str = ""  # and of each that the broker sends
    window: int = 4
    queue: int = 8
    start: str = "online"  # or "offline": publishes before it connects
    pace: int = 0  # messages published per turn, 0: as many as fit
    hasty: bool = False  # publishes when it has waited, before it polls
    spread_ms: int = 0  # between the broker's messages
    size: int = 1  # bytes of payload, at least
    grow: int = 0  # by so many each message of the program is longer than the one before
    buffer: int = 64
    keepalive: int = 60
    retry: int = 30
    held: int = 0  # max_awaiting_rel, 0: not given
    await_rel: int = 86400
    serve: int = 4
    latency_ms: int = 1
    level: int = 3
    # What the broker says in CONNACK at level 5, 0: nothing of it.
    receive: int = 0  # messages above QoS 0 that it takes before it has answered them
    most: int = 0  # bytes of a packet to it
    aliases: int = 0  # topics that may have a number; a script's client asks for as many
    expiry: int = 0  # seconds for which it keeps the session, less than it was asked for
    alive: int = 0  # the keep alive
    talk: bool = False  # its messages have properties
    sessions: str = "k"  # connections in turn, the last for ever: see Program
    age: int = 0  # seconds that every other message may wait, 0: for ever
    ping_ms: int = 0  # between pings that the program asks for itself, 0: none
    inside: str = ""  # what the program calls in each of its hooks
    narrow: int = 0  # bytes that a write takes at most, 0: any number
    reboot: bool = False  # a reset behind the first poll() offline
    pressure: int = 0  # bytes the broker lets wait before it reads no more, 0: any
    reuse: bool = False  # the broker's lowest free packet id comes first
    ordered: bool = False
    store: str = "log"  # or "journal", or "ram"
    blocks: int = 8  # of the journal's flash
    deferred: bool = False
    late: bool = False
    subscribe: bool = False
    keep_qos0: bool = False
    overflow: str = "refuse"
    seed: int = 0

    def __str__(self):
        words = []
        for item in fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                words.append(f"{item.name}={int(value) if item.type is bool else value}")
        return " ".join(words)


def chosen(dice, table, fixed=None):
    """-> {name: value} that the dice choose from a table: one of several values, or True with a
    probability.  Names in `fixed` keep their values."""
    found = dict(fixed or {})
    for name, values in table.items():
        if name not in found:
            is_chance = isinstance(values, float)
            found[name] = dice.random() < values if is_chance else dice.choice(values)
    return found


def parse(text):
    """The reverse of `str(script)`; raises ValueError."""
    known = {item.name: item for item in fields(Script)}
    values = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in known:
            raise ValueError(f"no setting {name!r} of a script: use one of {', '.join(known)}")
        kind = known[name].type
        values[name] = value if kind is str else kind(int(value))
    return Script(**values)
