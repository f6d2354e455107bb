"""Counts what was accepted, received, lost, duplicated and out of order, per stream.  Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.boards.envelope import read_envelope

Number = tuple[int, int]  # boot, sequence


@dataclass(frozen=True)
class Account:
    """The balance of one stream.  `accepted` over all boots; `disordered` counts first
    arrivals behind a later reading."""

    stream: int
    qos: int
    accepted: int
    received: int
    lost: int
    duplicated: int
    disordered: int


def number_of(payload: bytes) -> tuple[int, Number]:
    """The stream of a reading, and its boot and sequence number.  Raises ValueError."""
    found = read_envelope(payload)
    if found is None:
        raise ValueError(f"not a reading: {payload.hex()}")
    return found.stream, (found.boot, found.sequence)


def balance(
    qos_by_stream: list[int], accepted: Mapping[tuple[int, int], int], envelopes: Iterable[bytes]
) -> list[Account]:
    """One account per stream.

    `accepted[boot, stream]` is how many readings the node is known to have accepted.
    Numbers run from 1 without a gap within a boot, so a later one that arrived shows
    that all before it were accepted too.
    """
    arrived: list[list[Number]] = [[] for _ in qos_by_stream]
    for envelope in envelopes:
        stream, number = number_of(envelope)
        arrived[stream].append(number)
    return [
        _account(stream, qos, _highest(stream, accepted, arrived[stream]), arrived[stream])
        for stream, qos in enumerate(qos_by_stream)
    ]


def _highest(stream, accepted, arrived) -> dict[int, int]:
    # By boot: the highest number known to be accepted.
    highest = {boot: number for (boot, one), number in accepted.items() if one == stream}
    for boot, sequence in arrived:
        highest[boot] = max(sequence, highest.get(boot, 0))
    return highest


def _account(stream: int, qos: int, highest: dict[int, int], arrived: list[Number]) -> Account:
    seen: set[Number] = set()
    latest: Number = (0, 0)
    disordered = 0
    for number in arrived:
        disordered += number not in seen and number < latest
        latest = max(latest, number)
        seen.add(number)
    accepted = sum(highest.values())
    lost, duplicated = accepted - len(seen), len(arrived) - len(seen)
    return Account(stream, qos, accepted, len(arrived), lost, duplicated, disordered)
