"""What tests of the journal do to one: open it, put a message in, recover."""

from host_tests.powercut.life import Collector
from umqtt31.journal import Journal


def opened(flash, client_id=b"node-17", slots=200, slot_bytes=256, held_slots=4, **options):
    """A journal on `flash`, open as a client would open it."""
    journal = Journal(flash, **options)
    journal.open(client_id, slots, slot_bytes, held_slots)
    return journal


def recovered(journal):
    """-> what it tells a session after a reset."""
    found = Collector()
    journal.recover(found)
    return found


def put(journal, slot, packet_id, packet=b"packet", qos=1, sent=False):
    """Put a packet into a slot -> was there room?"""
    buf = bytearray(300)
    buf[: len(packet)] = packet
    return journal.put(slot, packet_id, qos, buf, len(packet), sent)
