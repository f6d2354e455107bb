"""Which schedules there are: every single fault, every pair of places, and random ones.

A schedule is a script and its faults.  A run without a fault tells how often each
place is passed; a run with the first fault tells where a second one can strike.
"""

import random
from dataclasses import replace
from itertools import groupby

from host_tests.standin.nor import MODES

from .faults import NEVER, PLACES, Fault
from .script import INSIDE
from .settings import Script, chosen

Schedule = tuple[Script, tuple[Fault, ...]]

_OFTEN = 6  # failures of the flash in a row, of which the journal bears 4
_KINDS = {
    place: [Fault(place, 0, kind, value) for kind, value in kinds.items()]
    for place, kinds in PLACES.items()
}
_PLACES = [place for place in PLACES if place != "load"]  # of which only a journal passes any
_TORN = 2  # variants of each way in which a flash operation is torn
# Of random scripts: what a setting may be, the likelier the more often, or how often it is so.
_SETTINGS = {
    "overflow": ("refuse", "refuse", "drop_oldest", "latest"), "window": range(1, 7),
    "queue": (0, 1, 2, 8), "start": ("online", "offline"), "pace": (0, 0, 1, 2),
    "spread_ms": (0, 0, 1, 5, 400), "size": (1, 1, 9, 40, 130), "buffer": (100, 160, 300),
    "keepalive": (60, 60, 20, 100), "retry": (30, 30, 5, 0), "held": (0, 0, 2, 1),
    "serve": (1, 2, 3, 4), "latency_ms": (0, 1, 1, 3, 20),
    "store": ("log", "log", "log", "journal", "ram"), "deferred": 0.5, "late": 0.3,
    "subscribe": 0.2, "keep_qos0": 0.4, "seed": range(1000), "level": (3, 3, 4),
    "sessions": ("k", "k", "k", "r", "kr", "mr", "c", "cr", "ck", "kc", "ckr", "crk", "kcrk"),
    "age": (0, 0, 0, 3, 50), "ping_ms": (0, 0, 0, 7000), "inside": ("",) * 16 + tuple(INSIDE),
    "pressure": (0, 0, 0, 150, 400), "reuse": 0.3, "narrow": (0, 0, 0, 0, 1, 3, 30),
    "reboot": 0.1, "blocks": (8, 8, 6),
}  # fmt: skip
_LEVEL_5 = {
    "receive": (0, 0, 1, 2), "most": (0, 0, 0, 60), "aliases": (0, 0, 1),
    "expiry": (0, 0, 5, 600), "alive": (0, 0, 20), "talk": 0.4,
}  # fmt: skip


def single_scripts(longest=6):
    """Up to `longest` messages of one QoS, either way, with every window up to 4.

    A window wider than the messages are many changes nothing and is left out.
    """
    for qos in "012":
        for count in range(1, longest + 1):
            for window in range(1, min(count, 4) + 1):
                if qos == "0" and window > 1:
                    break  # QoS 0 knows no window
                yield Script(up=qos * count, window=window)
                yield Script(down=qos * count, serve=window)
                if qos != "0":
                    yield Script(up=qos * count, window=window, start="offline", deferred=True)
    for qos in "12":
        yield Script(up=qos * 3, ordered=True)
        yield Script(up=qos * 3, ordered=True, start="offline")
    yield Script(up="1020", window=1, start="offline", keep_qos0=True)
    yield Script(up="222", window=3, late=True)
    yield Script(up="222", window=1, start="offline")
    yield Script(up="1212", down="212", window=2)
    yield Script(up="1112", window=1, queue=1, overflow="drop_oldest")
    yield Script(up="2212", window=1, queue=1, overflow="latest", start="offline")
    yield Script(down="2222", serve=3, held=1)
    yield Script(down="021", subscribe=True)
    yield Script(down="12", size=80)
    yield Script(up="111", window=3, pace=1, narrow=3, size=20)


def session_scripts():
    """Clean and kept sessions one after the other, what the broker says of them, and resets
    that forget them."""
    for sessions in ("cr", "ck", "kc", "ckrc"):
        for level in (3, 4):
            yield Script(up="22", window=2, sessions=sessions, level=level, late=True)
            yield Script(up="21", down="21", sessions=sessions, level=level, reuse=True)
    for level in (3, 4):
        yield Script(down="222", serve=2, sessions="ckr", level=level, subscribe=True)
    for qos in "12":
        yield Script(up=qos * 3, window=2, level=4)
        yield Script(down=qos * 3, serve=2, level=4)
        yield Script(up=qos * 3, window=2, start="offline", deferred=True, level=4)
        yield Script(up=qos * 4, window=1, pace=1, store="ram")
        yield Script(down=qos * 3, serve=2, store="ram", reuse=True)
    yield Script(up="2222", window=2, pace=1, store="ram", sessions="cr")


def level_5_scripts():
    """A broker that uses what level 5 leaves to it: its limits, its reasons, the session's
    end, topics by number, properties."""
    for qos in "12":
        yield Script(up=qos * 3, window=3, level=5, receive=1)
        yield Script(up=qos * 3, window=2, level=5, start="offline", deferred=True)
        yield Script(down=qos * 3, serve=3, level=5, held=2)
        yield Script(up=qos * 5, window=4, pace=1, level=5, aliases=1, expiry=20)
    yield Script(up="222", window=3, level=5, late=True, receive=2)
    yield Script(up="2212", window=3, level=5, size=9, grow=6, buffer=200, most=30)
    yield Script(up="1212", down="12", window=1, level=5, start="offline", age=300, talk=True)
    yield Script(up="11", down="21", level=5, alive=20, talk=True, subscribe=True)
    for sessions in ("cr", "ck", "kc", "ckrc"):
        yield Script(up="21", down="21", level=5, sessions=sessions, reuse=True)


def hard_scripts():
    """A broker that waits, bursts, age limits, calls in hooks, a journal without room: a
    part of their places will do."""
    yield Script(up="1212", down="12121212", serve=20, pressure=40, size=20)
    yield Script(up="2222", down="11111111", serve=20, pressure=60, size=20, start="offline")
    yield Script(down="1" * 12, serve=12, narrow=3)
    yield Script(down="11", spread_ms=560_000_000, keepalive=60_000, sessions="mr")
    yield Script(down="2" * 30, serve=30)
    yield Script(up="1111", age=5, window=1, start="offline")
    yield Script(up="1212", age=5, window=1, start="offline", sessions="r")
    yield Script(up="11111111", age=5, window=1, queue=2, overflow="drop_oldest")
    yield Script(down="1", ping_ms=5000, keepalive=20)
    for call in INSIDE:
        yield Script(up="1112", down="12", window=1, queue=1, overflow="drop_oldest", inside=call)
        yield Script(up="1112", age=5, window=1, start="offline", inside=call)
    for overflow in ("refuse", "drop_oldest", "latest"):
        yield Script(up="12" * 6, size=20, grow=14, buffer=250, window=2, queue=20,
                     store="journal", blocks=5, overflow=overflow, start="offline")  # fmt: skip
    yield Script(down="1" * 6, spread_ms=1, serve=8)
    yield Script(up="1" * 8, down="1" * 8, serve=8, window=8, pace=2, size=20, pressure=30,
                 hasty=True, latency_ms=3, spread_ms=2)  # fmt: skip
    yield Script(up="1" * 6, size=40, start="offline", store="journal", deferred=True,
                 reboot=True)  # fmt: skip
    yield Script(up="22", start="offline", deferred=True, reboot=True)
    yield Script(up="111111", size=40, start="offline", store="journal", reboot=True)
    yield Script(down="2222", serve=2, store="journal")


def reset_scripts():
    """Up to four messages over the real journal, where resets are tried at every place."""
    for script in single_scripts(longest=4):
        yield replace(script, store="journal")
    for script in (*session_scripts(), *level_5_scripts()):
        if script.store != "ram":
            yield replace(script, store="journal")


def flash_scripts():
    """Scripts that make the journal reclaim blocks; a reset at each operation of the flash."""
    yield Script(up="12" * 20, down="2" * 8, size=40, spread_ms=2, queue=4, held=2, serve=2,
                 store="journal", blocks=5)  # fmt: skip
    yield Script(up="2" * 30, down="1" * 4, size=50, window=2, queue=2, store="journal",
                 blocks=4)  # fmt: skip


def pair_scripts():
    """Two messages, each way and both ways, for every pair of places."""
    for qos in "12":
        for window in (1, 2):
            yield Script(up=qos * 2, window=window)
            yield Script(down=qos * 2, serve=window)
    yield Script(up="21", window=2, start="offline", deferred=True)
    yield Script(up="2", down="2", window=1, late=True)


def single_faults(places):
    """Every fault that can strike a run that passes `places`, place by place."""
    for place, count in places.items():
        for at in range(count):
            for kind in _KINDS[place]:
                yield kind._replace(at=at)
            if place == "store":  # or all that was lazy is there after all
                yield Fault(place, at, "reset", NEVER)
            if place == "flash":
                for value in range(1, _TORN * len(MODES)):
                    yield Fault(place, at, "reset", value)


def first_faults(places, kinds):
    """Single faults, at each place only so many `kinds` of them, which take turns; 0: all.

    A flash that fails is tried at each place, between so many ways to cut it off: once or
    more often than the journal tries.
    """
    turn = 0
    for _, group in groupby(single_faults(places), key=lambda item: item[:2]):
        faults = list(group)
        for fault in faults:
            if kinds and fault.kind == "fail":
                # Two by two, so that who takes every other fault meets both.
                yield fault._replace(value=_OFTEN) if fault.at & 2 else fault
        faults = [fault for fault in faults if not kinds or fault.kind != "fail"]
        for k in range(min(kinds or len(faults), len(faults))):
            yield faults[(turn + k) % len(faults)]
        turn += kinds


def second_faults(first, before, places):
    """One fault at each place behind `first`, the kinds taking turns.

    `before`: the places passed when `first` struck; `places`: in the whole run.
    """
    turn = first.at + len(first.kind)
    for place, count in places.items():
        kinds = _KINDS[place]
        for at in range(before[place], count):
            turn += 1
            if (place, at) != (first.place, first.at):
                yield kinds[turn % len(kinds)]._replace(at=at)


def random_schedule(seed):
    """A script of up to 12 messages each way and up to 6 faults, all from `seed`."""
    rng = random.Random(seed)
    script = _random_script(rng)
    faults = {}
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6))):
        fault = _random_fault(rng, script)
        faults[fault.place, fault.at] = fault
    if rng.random() < 0.25:
        script = replace(script, level=5, **chosen(rng, _LEVEL_5))
    if script.store == "journal" and rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 2, 3))):
            # Opening a journal reads all of its blocks, and each record is read back.
            reach = 2 * script.blocks + 4 * (len(script.up) + len(script.down))
            at = rng.randrange(reach)
            faults["load", at] = Fault("load", at, "fail", rng.choice((1, 1, 2, 3, 5, 9, 40)))
    kinds = {fault.kind for fault in faults.values()}
    if kinds & {"lose", "late"}:
        # Such brokers need a client that asks again by itself.
        script = replace(script, retry=script.retry or 30)
    if "forget" in kinds:
        # Ids that the broker forgot may block the way until they time out.
        script = replace(script, await_rel=300)
    return script, tuple(faults.values())


def _random_fault(rng, script):
    place = rng.choice(("up", "up", "up", "down", "down", *_PLACES))
    messages = len(script.up) + len(script.down)
    reach = 3 * messages
    if place in ("up", "down", "read"):
        reach = 30 + messages * (14 + script.size)
    fault = rng.choice(_KINDS[place])._replace(at=rng.randrange(reach + 2))
    if fault.kind in ("jump", "stall", "late", "jam"):
        return fault._replace(value=rng.choice((1, 7, 900, fault.value)))
    if fault.kind == "away":
        days = rng.choice((0.01, 1, 6.3, 8, 12.5, 20))
        return fault._replace(at=rng.randrange(3), value=int(days * 86_400_000))
    if fault.kind in ("narrow", "fail"):
        return fault._replace(value=rng.choice((1, 2, 3, 5, 9)))
    if place == "open":
        return fault._replace(at=rng.randrange(4))
    if place == "store":
        return fault._replace(value=rng.choice((0, 0, 1, 2, NEVER)))
    if place == "flash":
        return fault._replace(value=rng.randrange(100))
    return fault


def _random_script(rng):
    qos = rng.choice(("1", "2", "12", "012", "12", "2"))
    up = "".join(rng.choice(qos) for _ in range(rng.randrange(0, 13)))
    down = "".join(rng.choice(qos) for _ in range(rng.randrange(0, 13)))
    ordered = rng.random() < 0.2 and "0" not in qos
    if ordered:
        up = rng.choice("12") * len(up)
    fixed = {"ordered": True, "overflow": "refuse", "age": 0} if ordered else {}
    return Script(up=up, down=down, **chosen(rng, _SETTINGS, fixed))
