"""The library locks the heap only where MicroPython lets nothing in: no Ctrl-C, which would
leave it locked for good, and no timer's function, which could not allocate.

Each function looks at every jump of a program, from a scheduled function.  MicroPython.
"""

from host_tests.client import wire
from host_tests.client.flash import FailingFlash
from host_tests.client.locked.bench import LONG, PAYLOAD, TOPIC, Bench, poll_all
from micropython import schedule

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
            schedule(self._again, None)

    def __enter__(self):
        schedule(self._again, None)

    def __exit__(self, *_):
        self._is_over = True
        assert self.looked > _LEAST and not self.failed, (self.looked, self.failed)


def _use(b):
    # All QoS both ways, as far as no connection is needed that was not there.
    for qos in (0, 1, 2):
        b.client.publish(TOPIC, PAYLOAD, qos=qos)
        b.client.publish(TOPIC, LONG[:200], qos=qos)
    b.stream.feed(wire.puback(1) + wire.pubrec(3) + wire.publish(TOPIC, PAYLOAD, 2, 7))
    poll_all(b.client)
    b.stream.feed(wire.pubcomp(3) + wire.pubrel(7) + wire.publish(TOPIC, PAYLOAD, 1, 8))
    poll_all(b.client)
    b.pass_ms(60_000)
    b.client.ping()


def test_in_ram():
    b = Bench()
    with Watch():
        _use(b)


def test_in_a_journal():
    b = Bench(store=FailingFlash().journal())
    with Watch():
        _use(b)


def test_in_a_journal_with_group_commit():
    b = Bench(store=FailingFlash().journal(group_commit=True))
    with Watch():
        _use(b)


def test_in_opening_a_journal():
    flash = FailingFlash()
    _use(Bench(store=flash.journal()))
    with Watch():
        Bench(store=flash.journal())
