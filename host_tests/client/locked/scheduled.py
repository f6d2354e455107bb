"""The library locks the heap only where MicroPython lets nothing in: no Ctrl-C, which would
leave it locked for good, and no timer's function, which could not allocate.

Each function looks at every jump of a program, from a scheduled function.  MicroPython.
"""

import micropython
from host_tests.client import wire
from host_tests.client.flash import FailingFlash
from host_tests.client.locked.player import LockedDialogue

_LEAST = 100  # jumps of each


class Watch:
    """`with Watch():` at each jump inside it an allocation must succeed."""

    def __init__(self):
        self.looked = self.failed = 0
        self._is_over = False
        self._again = self._look

    def _look(self, _):
        self.looked += 1
        try:
            bytearray(1)
        except MemoryError:
            self.failed += 1
        if not self._is_over:
            micropython.schedule(self._again, None)

    def __enter__(self):
        micropython.schedule(self._again, None)

    def __exit__(self, *_):
        self._is_over = True
        assert self.looked > _LEAST and not self.failed, (self.looked, self.failed)


def _use(d):
    # All QoS both ways, as far as no connection is needed that was not there.
    for qos in (0, 1, 2):
        d.client.publish(b"t", b"x", qos=qos)
        d.client.publish(b"t", bytes(200), qos=qos)
    d.stream.feed(wire.puback(1) + wire.pubrec(3) + wire.publish(b"t", b"x", 2, 7))
    poll_all(d.client)
    d.stream.feed(wire.pubcomp(3) + wire.pubrel(7) + wire.publish(b"t", b"x", 1, 8))
    poll_all(d.client)
    d.clock.now_ms += 60_000
    d.client.ping()


def poll_all(client):
    while client.poll():
        pass


def test_in_ram():
    d = LockedDialogue()
    with Watch():
        _use(d)


def test_in_a_journal():
    for is_grouping in (False, True):
        d = LockedDialogue(store=FailingFlash().journal(group_commit=is_grouping))
        with Watch():
            _use(d)


def test_in_opening_a_journal():
    flash = FailingFlash()
    _use(LockedDialogue(store=flash.journal()))
    store = flash.journal()
    with Watch():
        LockedDialogue(store=store)
