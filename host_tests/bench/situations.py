"""Situations that a client may meet in the field, and what each does in them.

A far end behaves as a broker or a link may; the program on real MicroPython does what its
client's documentation says; what it sees within the time is the outcome.
"""

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from host_tests.standin import packets as p

from .answerer import GIVEN, Answer, Answerer, usual_answer
from .catalogue import Client
from .measures import Program, compiled

_GO = b"bench/go"
_DEADLINE_S = 40
_AT_ONCE = 4
# 0x3031 in an id looks like a PUBLISH to a client that leaves it unread.
_STRAY = p.puback(1) + p.puback(0x3031)
_AFTER = p.publish(GIVEN, b"after")
_TOLD = ("raises", "told", "connects again")
_LASTS = ("goes on",)


@dataclass(frozen=True)
class Situation:
    """`name` is what trial.py calls it; `good` are outcomes a program can live with."""

    name: str
    title: str
    good: tuple[str, ...]
    answer: Answer
    heap_bytes: int = 256 * 1024


def _is_go(packet: bytes) -> bool:
    return packet[0] >> 4 == p.PUBLISH and p.publish_fields(packet)[2] == _GO


def _on_go(data: bytes) -> Answer:
    # The usual answers, and `data` when the client says that it is ready.
    return lambda packet: data if _is_go(packet) else usual_answer(packet)


def _silent_to(*kinds: int) -> Answer:
    return lambda packet: b"" if packet[0] >> 4 in kinds else usual_answer(packet)


def _strict(packet: bytes) -> bytes | bytearray | None:
    if packet[0] >> 4 == p.PUBLISH and not p.publish_fields(packet)[1]:
        return None  # MQTT-2.3.1-1: no packet has the id 0
    return usual_answer(packet)


SITUATIONS = (
    Situation("length", "a length of five bytes comes", _TOLD,
              _on_go(b"\x30\xff\xff\xff\xff\x7f")),
    Situation("stray", "a PUBACK comes that nobody awaits", _LASTS, _on_go(_STRAY + _AFTER)),
    Situation("puback", "no PUBACK comes", _TOLD, _silent_to(p.PUBLISH)),
    Situation("connack", "no CONNACK comes", _TOLD, _silent_to(p.CONNECT)),
    Situation("silence", "the link goes dead, half open", _TOLD, _silent_to(*range(2, 16))),
    Situation("large", "1 MB comes, 64 KB of heap", _LASTS,
              _on_go(p.publish(GIVEN, bytes(1_000_000)) + _AFTER), 64 * 1024),
    Situation("wrap", "packet ids begin anew after 65,535", _LASTS, _strict),
    Situation("tls", "TLS is never answered", _TOLD, lambda packet: b""),
    Situation("burst", "50 messages at QoS 2 come at once", _LASTS,
              _on_go(b"".join(p.publish(GIVEN, b"x", 2, k + 1) for k in range(50)))),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a program sees, in two words, and whether it can live with that."""

    text: str
    is_good: bool


def measure_outcomes(clients: Sequence[Client], peers: Path) -> dict[str, dict[str, Outcome]]:
    """{situation's title: {client's title: outcome}}."""

    def try_all(client: Client) -> dict[str, Outcome]:
        with compiled(client, peers, "trial", 32) as program:
            return {one.title: _try(program, one) for one in SITUATIONS}

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(zip([client.title for client in clients], pool.map(try_all, clients)))
    return {
        one.title: {title: outcomes[one.title] for title, outcomes in found.items()}
        for one in SITUATIONS
    }


def _try(program: Program, situation: Situation) -> Outcome:
    heap = situation.heap_bytes
    with Answerer(True, situation.answer) as far_end:
        try:
            words = far_end.port, situation.name
            done = program.done(*words, heap_bytes=heap, timeout=_DEADLINE_S)
            text = (done.stdout.strip().splitlines() or [f"ends with {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            text = "hangs"
        waited = ("hangs", "unnoticed", "goes on") if situation.good is _TOLD else ("hangs",)
        if text in waited and far_end.connections > 1:
            text = "connects again"
    return Outcome(text, text.partition(" ")[0] in situation.good or text in situation.good)
