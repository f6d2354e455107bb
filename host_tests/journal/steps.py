"""What tests of the journal do to one: open it, put a message in, reset."""

from contextlib import contextmanager

import pytest

from host_tests.powercut.life import Opened, Setting
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL
from umqtt31.journal import Journal


class Desk(Opened):
    """A journal, and the core's part in using it; messages have names, here numbers."""

    def __init__(self, flash, options, **sizes):
        def journal(device, **_):
            return Journal(device, **options)

        super().__init__(Setting(journal=journal, **sizes), flash)
        self.flash = flash
        self.ids = {}  # slot -> packet id
        own = self.journal
        self.commit, self.sync, self.tidy = own.commit, own.sync, own.tidy

    def remove(self, slot):
        self.journal.note(0x40, self.ids.pop(slot))

    def pubrec(self, slot):
        self.journal.note(0x50, self.ids[slot])

    def online(self):
        self.journal.note(0x20, 0)

    def hold_id(self, packet_id):
        self.hold(packet_id)
        self.journal.note(0x30, packet_id)

    def release_id(self, packet_id):
        self.journal.note(0x62, packet_id)
        self.release(packet_id)


def opened(
    flash, client_id=b"node-17", slots=200, slot_bytes=256, held_slots=4, level=3, **options
):
    """A journal on `flash`, or on a blank one of so many blocks, as a client would open it."""
    return Desk(
        Flash(flash) if isinstance(flash, int) else flash,
        {"program_bytes": 256, **options},
        client_id=client_id,
        slots=slots,
        slot_bytes=slot_bytes,
        held_slots=held_slots,
        level=level,
    )


class Found:
    """What a journal hands over: all of it is fetched.

    `messages`: (place, packet id, QoS, has PUBREC, maybe sent, packet), None for one that is lost.
    """

    def __init__(self, desk):
        self.messages = []
        for place in range(desk.behind):
            one = desk.fetch()
            if one:
                one = (place, one.packet_id, one.qos, one.has_pubrec, one.maybe_sent, one.packet)
            self.messages.append(one)
        self.ids = [one and one[1] for one in self.messages]
        self.held = list(desk.held_ids())
        self.last_id = desk.last_id
        self.is_clean = desk.is_clean
        self.corrupt_pages = desk.journal.corrupt_pages


def found(flash, **options):
    """-> what a reset finds on this flash, or on that of a journal."""
    return Found(opened(flash.flash if isinstance(flash, Desk) else flash, **options))


def put(desk, slot, packet_id, packet=b"packet", qos=1, sent=False):
    """Put a message in, when those of an earlier life are fetched -> was there room?"""
    while desk.behind:
        desk.fetch()
    if not Opened.put(desk, packet_id, qos, packet, sent, 1):
        return False
    desk.ids[slot] = packet_id
    return True


def filled(journal, most=1000, qos=1):
    """-> how many messages of one kind it took, with the names from 0 and the ids from 1 on."""
    count = 0
    while count < most and put(journal, count, count + 1, qos=qos):
        count += 1
    return count


@contextmanager
def journal_error(text=None):
    """What is called inside raises JOURNAL and says this."""
    with pytest.raises(MQTTError, match=text) as caught:
        yield
    assert caught.value.code == JOURNAL


def fails(*_):
    """In the place of an operation of the flash."""
    raise OSError(5)
