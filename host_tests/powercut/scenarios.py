"""The scenarios: a setting and the calls, covering every record and every way round.

`calls()` walks at random with fixed seeds; the named ones bring about what a walk
meets too seldom.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .life import Call, Opened, Setting

_SMALL = Setting()
_ONCE = replace(_SMALL, block_bytes=512, page_bytes=64, cell_bytes=64, blocks=6)
_LONG = replace(_SMALL, block_bytes=512, slot_bytes=90, blocks=5)  # packets over pages
_FEW = replace(_SMALL, blocks=4, slots=2, held_slots=1)
_BOARD = Setting(4, 4096, 256, 64, slots=6, slot_bytes=256)


@dataclass(frozen=True)
class Scenario:
    """Calls to make on a journal of this setting."""

    name: str
    setting: Setting
    calls: tuple[Call, ...]


def scenarios(scale: int = 1) -> Iterator[Scenario]:
    """All scenarios; `scale` makes the random ones longer."""
    yield Scenario("fill up and empty", _SMALL, tuple(_fill(_SMALL)))
    yield Scenario("one message stays while the ring turns", _SMALL, tuple(_stay(60, 9)))
    yield Scenario("received ids stay while the ring turns", _SMALL, tuple(_hold_long()))
    runs = replace(_SMALL, held_slots=20)
    yield Scenario("runs of received ids while the ring turns", runs, tuple(_hold_runs()))
    yield Scenario("new sessions in all places", _ONCE, tuple(_renew_often()))
    yield Scenario("nearly full all the time", _FEW, tuple(_nearly_full(_FEW, 30 * scale)))
    long = replace(_LONG, slots=10)
    yield Scenario("large packets, nearly full", long, tuple(_nearly_full(long, 20 * scale)))
    yield Scenario("sizes of a board", _BOARD, tuple(_stay(70, 170)))
    worn = replace(_SMALL, blocks=7, slots=4, worn=(2,))
    yield Scenario("a block is worn out", worn, tuple(walk(4, worn, 60 * scale)))
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
            yield ("pubrec", source.choice([i for i, qos in waiting.items() if qos == 2]))
            yield ("commit",)
        elif dice < 0.8 and len(held) < setting.held_slots:
            held.append(source.randrange(1, 65536))
            yield ("hold", held[-1])
            yield ("commit",)
        elif dice < 0.87 and held:
            yield ("release", held.pop(source.randrange(len(held))))
            yield ("commit",)
        elif dice < 0.9:
            yield ("online",)
        elif dice < 0.92:
            yield ("renew", source.random() < 0.5)
            held.clear()
        elif dice < 0.93:
            yield ("fetch",)
        elif dice < 0.95:
            yield ("tidy",)
        elif dice < 0.97:
            yield ("commit",)
        else:
            yield ("sync",)


def _fill(setting: Setting) -> Iterator[Call]:
    for packet_id in range(1, 20):
        yield ("put", packet_id, 1, bytes([packet_id] * setting.slot_bytes), False)
    yield ("online",)
    yield ("commit",)
    yield ("check",)
    for packet_id in range(1, 7):
        yield ("remove", packet_id)
    yield ("sync",)


def _stay(count: int, size: int) -> Iterator[Call]:
    yield ("put", 1, 2, b"the one that stays", False)
    yield ("online",)
    yield ("pubrec", 1)
    yield ("commit",)
    for packet_id in range(2, count):
        yield ("put", packet_id, 1, bytes([packet_id] * size), True)
        yield ("remove", packet_id)
    yield ("check",)


def _hold_long() -> Iterator[Call]:
    yield ("hold", 7)
    for packet_id in range(1, 40):
        yield ("hold", 1000 + packet_id)
        yield ("commit",)
        yield ("release", 1000 + packet_id)
        yield ("commit",)


def _renew_often() -> Iterator[Call]:
    for packet_id in range(1, 30):
        yield ("put", packet_id, 2, bytes([packet_id] * 15), packet_id % 3 > 0)
        yield ("pubrec", packet_id)
        yield ("hold", packet_id + 100)
        if packet_id % 3 == 0:
            yield ("renew", packet_id % 2 == 0)
            yield ("online",)
            yield ("commit",)
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
        yield ("pubrec", source.choice(waiting))
        yield ("commit",)
