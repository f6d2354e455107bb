"""Which schedules there are: every single fault, every pair of places, and random ones.

A schedule is a script and its faults.  A run without a fault tells how often each
place is passed; a run with the first fault tells where a second one can strike.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from .faults import NEVER, PLACES, Fault
from .script import Script

Schedule = tuple[Script, tuple[Fault, ...]]

_KINDS = {
    place: [Fault(place, 0, kind, value) for kind, value in kinds.items()]
    for place, kinds in PLACES.items()
}

_OVERFLOWS = ("refuse", "refuse", "drop_oldest", "latest")


def single_scripts(longest: int = 6, widest: int = 4) -> Iterator[Script]:
    """Up to `longest` messages of one QoS, either way, with every window up to `widest`.

    A window wider than the messages are many changes nothing and is left out.
    """
    for qos in "012":
        for count in range(1, longest + 1):
            for window in range(1, min(count, widest) + 1):
                if qos == "0" and window > 1:
                    break  # QoS 0 knows no window
                yield Script(up=qos * count, window=window)
                yield Script(down=qos * count, serve=window)
                if qos != "0":
                    yield Script(up=qos * count, window=window, start="offline", deferred=True)


def pair_scripts() -> Iterator[Script]:
    """Two messages, each way and both ways, for every pair of faults."""
    for qos in "12":
        for window in (1, 2):
            yield Script(up=qos * 2, window=window)
            yield Script(down=qos * 2, serve=window)
    yield Script(up="21", window=2, start="offline", deferred=True)
    yield Script(up="2", down="2", window=1, late=True)


def single_faults(places: dict[str, int]) -> Iterator[Fault]:
    """Every fault that can strike a run that passes `places`."""
    for place, count in places.items():
        for kind in _KINDS[place]:
            for at in range(count):
                yield kind._replace(at=at)
                if place == "store":
                    # All that was lazy is there after all.
                    yield kind._replace(at=at, value=NEVER)


def second_faults(first: Fault, before: dict[str, int], places: dict[str, int]) -> Iterator[Fault]:
    """One fault at each place behind `first`, the kinds taking turns.

    `before`: the places passed when `first` struck; `places`: in the whole run.
    """
    turn = first.at + len(first.kind)
    for place, count in places.items():
        kinds = _KINDS[place]
        for at in range(before[place], count):
            turn += 1
            kind = kinds[turn % len(kinds)]
            if (place, at) != (first.place, first.at):
                yield kind._replace(at=at)


def random_schedule(seed: int) -> Schedule:
    """A script of up to 12 messages each way and up to 6 faults, all from `seed`."""
    rng = random.Random(seed)
    script = _random_script(rng)
    messages = len(script.up) + len(script.down)
    faults = {}
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6))):
        place = rng.choice(("up", "up", "up", "down", "down", *_KINDS))
        if place == "flash":
            continue
        reach = 30 + messages * (14 + script.size) if place in ("up", "down", "read") else 3 * messages
        at = rng.randrange(reach + 2)
        kind = rng.choice(_KINDS[place])
        value = kind.value
        if kind.kind in ("stall", "late", "jump", "jam"):
            value = rng.choice((1, 7, 900, value))
        elif place == "store":
            value = rng.choice((0, 0, 1, 2, NEVER))
        faults[place, at] = Fault(place, at, kind.kind, value)
    if any(item.kind in ("lose", "late") for item in faults.values()):
        # Such brokers need a client that asks again by itself.
        script = replace(script, retry=script.retry or 30)
    if any(item.kind == "forget" for item in faults.values()):
        # Ids that the broker forgot may block the way until they time out.
        script = replace(script, await_rel=300)
    return script, tuple(faults.values())


def _random_script(rng: random.Random) -> Script:
    qos = rng.choice(("1", "2", "12", "012", "12", "2"))
    up = "".join(rng.choice(qos) for _ in range(rng.randrange(0, 13)))
    down = "".join(rng.choice(qos) for _ in range(rng.randrange(0, 13)))
    ordered = rng.random() < 0.2 and "0" not in qos
    if ordered:
        up = rng.choice("12") * len(up)
    return Script(
        up=up,
        down=down,
        overflow="refuse" if ordered else rng.choice(_OVERFLOWS),
        window=rng.randrange(1, 7),
        queue=rng.choice((0, 1, 2, 8)),
        start=rng.choice(("online", "offline")),
        pace=rng.choice((0, 0, 1, 2)),
        spread_ms=rng.choice((0, 0, 1, 5, 400)),
        size=rng.choice((1, 1, 9, 40, 130)),
        buffer=rng.choice((160, 300)),
        keepalive=rng.choice((60, 60, 20, 100)),
        retry=rng.choice((30, 30, 5, 0)),
        held=rng.choice((4, 4, 2, 1)),
        serve=rng.choice((1, 2, 3, 4)),
        latency_ms=rng.choice((0, 1, 1, 3, 20)),
        ordered=ordered,
        deferred=rng.random() < 0.5,
        late=rng.random() < 0.3,
        subscribe=rng.random() < 0.2,
        keep_qos0=rng.random() < 0.4,
        seed=rng.randrange(1000),
    )
