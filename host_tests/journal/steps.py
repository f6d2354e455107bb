"""What tests of the journal do to one: open it, reset, have it fail."""

from contextlib import contextmanager

import pytest

from host_tests.powercut.life import Opened, Setting
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL
from umqtt31.journal import Journal


def opened(
    flash, client_id=b"node-17", slots=200, slot_bytes=256, held_slots=4, level=3, **options
):
    """A journal on `flash`, or on a blank one of so many blocks, as a client would open it."""

    def journal(device, **_):
        return Journal(device, **{"program_bytes": 256, **options})

    setting = Setting(
        client_id=client_id,
        slots=slots,
        slot_bytes=slot_bytes,
        held_slots=held_slots,
        level=level,
        journal=journal,
    )
    return Opened(setting, Flash(flash) if isinstance(flash, int) else flash)


def found(flash, **options):
    """-> the State that a reset finds on this flash, or on that of a journal."""
    return opened(getattr(flash, "flash", flash), **options).state()


def filled(journal, most=1000, qos=1):
    """-> how many messages of one kind it took, with the ids from 1 on."""
    count = 0
    while count < most and journal.put(count + 1, qos):
        count += 1
    return count


def turn(journal, count, *, first=1, kept=0, packet=b"packet"):
    """Put so many messages in, with ids from `first` on; all but the newest `kept` are done."""
    for packet_id in range(first, first + count):
        assert journal.put(packet_id, packet=packet)
        if packet_id - kept >= first:
            journal.remove(packet_id - kept)


@contextmanager
def journal_error(text=None):
    """What is called inside raises JOURNAL and says this."""
    with pytest.raises(MQTTError, match=text) as caught:
        yield
    assert caught.value.code == JOURNAL


def fail(journal, *calls, erase=None, **methods):
    """Each of these calls raises JOURNAL, while `methods` and `erase` are those of its flash."""
    if erase:
        ioctl = journal.flash.ioctl
        methods["ioctl"] = lambda op, arg: erase() if op == 6 else ioctl(op, arg)
    with pytest.MonkeyPatch.context() as patch:
        for name, method in methods.items():
            patch.setattr(journal.flash, name, method)
        for call in calls:
            with journal_error():
                journal.do(call)


def fails(*_):
    """In the place of an operation of the flash."""
    raise OSError(5)
