"""What the nodes said about their heap, and whether it stayed what it was.

Reads the `heap FREE LARGEST` lines of a node's console; no I/O.
"""

from dataclasses import dataclass

# Between two readings the heap may differ by what is alive at that moment: the text of
# the last error, a socket.  Anything that grows is far beyond it within a short soak.
TOLERANCE_BYTES = 1024


@dataclass(frozen=True)
class Heap:
    """Bytes free after a collection, and the largest block among them."""

    free: int
    largest: int


def boots(lines: list[str]) -> list[list[Heap]]:
    """The heap over time, boot by boot, from a node's console."""
    found: list[list[Heap]] = []
    for line in lines:
        word, *values = line.split()
        if word == "boot":
            found.append([])
        elif word == "heap" and found:
            found[-1].append(Heap(*map(int, values)))
    return [boot for boot in found if boot]


def is_steady(boot: list[Heap]) -> bool:
    """Is the heap at the end of a boot as it was once the node was connected?

    The first reading is from before the connection and does not count.
    """
    settled = boot[1:] or boot
    first, last = settled[0], settled[-1]
    return (
        last.free >= first.free - TOLERANCE_BYTES
        and last.largest >= first.largest - TOLERANCE_BYTES
    )
