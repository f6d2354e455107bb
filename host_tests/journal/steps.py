"""What tests of the journal do to one: open it, put a message in, recover."""

from host_tests.powercut.life import Opened, Setting
from umqtt31.journal import Journal


class Desk(Opened):
    """A journal, and the core's part in using it; messages have names, here numbers."""

    def __init__(self, flash, client_id, slots, slot_bytes, held_slots, level, options):
        options.setdefault("program_bytes", 256)

        def journal(device, **_):
            return Journal(device, **options)

        setting = Setting(
            slots=slots,
            slot_bytes=slot_bytes,
            held_slots=held_slots,
            client_id=client_id,
            level=level,
            journal=journal,
        )
        super().__init__(setting, flash)
        self.ids = {}  # slot -> packet id
        self.commit, self.sync, self.tidy = (
            self.journal.commit,
            self.journal.sync,
            self.journal.tidy,
        )

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
    """A journal on `flash`, open as a client would open it."""
    return Desk(flash, client_id, slots, slot_bytes, held_slots, level, options)


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
        self.held = list(desk.held_ids())
        self.last_id = desk.last_id
        self.is_clean = desk.is_clean


def recovered(desk):
    """-> what it tells a session after a reset."""
    return Found(desk)


def put(desk, slot, packet_id, packet=b"packet", qos=1, sent=False):
    """Put a message in, when those of an earlier life are fetched -> was there room?"""
    while desk.behind:
        desk.fetch()
    if not Opened.put(desk, packet_id, qos, packet, sent, 1):
        return False
    desk.ids[slot] = packet_id
    return True
