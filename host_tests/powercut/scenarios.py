"""The scenarios: a setting and the calls, covering every record and every way round.

`walk()` calls at random with fixed seeds; the named ones bring about what a walk
meets too seldom.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from .life import Call, Opened, Setting, calls

_SMALL = Setting()
_ONCE = replace(_SMALL, block_bytes=512, page_bytes=64, cell_bytes=64, blocks=6)
_LONG = replace(_SMALL, block_bytes=512, slot_bytes=90, blocks=5)  # packets over pages
_FEW = replace(_SMALL, blocks=4, slots=2, held_slots=1)
_BOARD = Setting(4, 4096, 256, 64, slots=6, slot_bytes=256)


class Scenario(NamedTuple):
    """Calls to make on a journal of this setting."""

    name: str
    setting: Setting
    calls: tuple[Call, ...]


def scenarios(scale: int = 1) -> Iterator[Scenario]:
    """All scenarios; `scale` makes the random ones longer."""
    runs = replace(_SMALL, held_slots=20)
    long = replace(_LONG, slots=10)
    worn = replace(_SMALL, blocks=7, slots=4, worn=(2,))
    for name, setting, made in (
        ("fill up and empty", _SMALL, _fill(_SMALL)),
        ("one message stays while the ring turns", _SMALL, _stay(60, 9)),
        ("received ids stay while the ring turns", _SMALL, _hold_long()),
        ("runs of received ids while the ring turns", runs, _hold_runs()),
        ("new sessions in all places", _ONCE, _renew_often()),
        ("nearly full all the time", _FEW, _nearly_full(_FEW, 30 * scale)),
        ("large packets, nearly full", long, _nearly_full(long, 20 * scale)),
        ("sizes of a board", _BOARD, _stay(70, 170)),
        ("a block is worn out", worn, walk(4, worn, 60 * scale)),
    ):
        yield Scenario(name, setting, tuple(made))
    for seed, setting in enumerate((_SMALL, _ONCE, _LONG, _FEW)):
        for is_deferred in (False, True):
            name = f"walk {seed}" + (", group commit" if is_deferred else "")
            used = replace(setting, group_commit=is_deferred)
            yield Scenario(name, used, tuple(walk(seed, used, 90 * scale)))


def of_any_sizes(seed: int) -> Scenario:
    """A walk on a journal of sizes that nobody chose."""
    source = random.Random(seed)
    while True:
        cell_bytes = source.choice((32, 64, 128))
        page_bytes = cell_bytes * source.choice((1, 2, 4))
        block_bytes = page_bytes * source.choice((2, 3, 4, 8))
        setting = Setting(
            source.randint(4, 9),
            block_bytes,
            page_bytes,
            cell_bytes,
            slots=source.choice((1, 2, 5, 12, 30)),
            slot_bytes=source.randint(11, max(11, block_bytes // 2)),
            held_slots=source.choice((1, 3, 7)),
            group_commit=source.random() < 0.4,
            client_id=b"c" * source.choice((0, 1, 5, 23, 60)),
        )
        try:
            Opened(setting, setting.flash())
        except ValueError:
            continue  # packets too large for such blocks
        return Scenario(f"sizes {seed}", setting, tuple(walk(seed, setting, 60)))


def walk(seed: int, setting: Setting, count: int) -> Iterator[Call]:
    """`count` random calls as a session would make them."""
    source = random.Random(seed)
    waiting: dict[int, int] = {}  # packet id -> QoS
    held: list[int] = []
    packet_id = 0
    for _ in range(count):
        dice = source.random()
        if dice < 0.4 and len(waiting) < setting.slots:
            packet_id += 1
            waiting[packet_id] = source.choice((1, 2))
            n = source.choice((4, 11, setting.slot_bytes // 2, setting.slot_bytes))
            packet = source.randbytes(n)
            yield ("put", packet_id, waiting[packet_id], packet, source.random() < 0.5)
        elif dice < 0.65 and waiting:
            done = next(iter(waiting)) if source.random() < 0.7 else source.choice([*waiting])
            del waiting[done]
            yield ("remove", done)
        elif dice < 0.73 and 2 in waiting.values():
            received = source.choice([i for i, qos in waiting.items() if qos == 2])
            yield from calls(f"pubrec {received}; commit")
        elif dice < 0.8 and len(held) < setting.held_slots:
            held.append(source.randrange(1, 65536))
            yield from calls(f"hold {held[-1]}; commit")
        elif dice < 0.87 and held:
            yield from calls(f"release {held.pop(source.randrange(len(held)))}; commit")
        elif dice < 0.9:
            yield ("online",)
        elif dice < 0.92:
            yield ("renew", source.random() < 0.5)
            held.clear()
        else:
            likely = ((0.93, "fetch"), (0.95, "tidy"), (0.97, "commit"), (1, "sync"))
            yield (next(name for most, name in likely if dice < most),)


def _fill(setting: Setting) -> Iterator[Call]:
    for packet_id in range(1, 20):
        yield ("put", packet_id, 1, bytes([packet_id] * setting.slot_bytes), False)
    yield from calls("online; commit; check")
    yield from calls("remove 1; remove 2; remove 3; remove 4; remove 5; remove 6; sync")


def _stay(count: int, size: int) -> Iterator[Call]:
    yield ("put", 1, 2, b"the one that stays", False)
    yield from calls("online; pubrec 1; commit")
    for packet_id in range(2, count):
        yield ("put", packet_id, 1, bytes([packet_id] * size), True)
        yield ("remove", packet_id)
    yield ("check",)


def _hold_long() -> Iterator[Call]:
    yield ("hold", 7)
    for packet_id in range(1001, 1040):
        yield from calls(f"hold {packet_id}; commit; release {packet_id}; commit")


def _renew_often() -> Iterator[Call]:
    for packet_id in range(1, 30):
        yield ("put", packet_id, 2, bytes([packet_id] * 15), packet_id % 3 > 0)
        yield from calls(f"pubrec {packet_id}; hold {packet_id + 100}")
        if packet_id % 3 == 0:
            yield ("renew", packet_id % 2 == 0)
            yield from calls("online; commit")
        if packet_id > 4:
            yield ("remove", packet_id - 4)


def _hold_runs() -> Iterator[Call]:
    # Up to 8 runs, split and closed, while messages turn the ring.
    for packet_id in range(1, 25):
        yield ("hold", packet_id)
        if packet_id % 5 == 0:
            yield ("release", packet_id - 2)
        if packet_id > 8:
            yield ("release", packet_id - 8)
        yield ("put", packet_id, 1, bytes([packet_id] * 15), True)
        yield ("remove", packet_id)


def _nearly_full(setting: Setting, count: int) -> Iterator[Call]:
    source = random.Random(setting.blocks)
    waiting: list[int] = []
    for packet_id in range(1, count):
        if len(waiting) == setting.slots:
            yield ("remove", waiting.pop(source.randrange(len(waiting))))
        waiting.append(packet_id)
        yield ("put", packet_id, 2, source.randbytes(setting.slot_bytes), True)
        yield from calls(f"pubrec {source.choice(waiting)}; commit")
