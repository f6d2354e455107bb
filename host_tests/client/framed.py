"""Bytes through a Framing, fed as a front feeds it.  Runs under CPython and MicroPython."""

from umqtt31.framing import MALFORMED, Framing


class Feeder:
    """`framing`, and all that it found: `found` is [(first byte, body)], MALFORMED at the end
    if that is what it said; of an oversize PUBLISH the body is (topic length, packet id,
    payload length)."""

    def __init__(self, size):
        self.framing = Framing(size)
        self.found = []

    def feed(self, data):
        """The stream gives `data`, as much at a time as is asked for."""
        framing = self.framing
        while data and MALFORMED not in self.found:
            n = min(framing.need, len(data))
            assert 0 < framing.need <= len(framing.into)
            for i in range(n):
                framing.into[i] = data[i]
            data = data[n:]
            first = framing.take(n)
            while first:
                self._keep(first)
                # A packet of two bytes: what was read behind it is of the next one.
                first = framing.take(0) if framing.have and first != MALFORMED else 0
        return self.found

    def _keep(self, first):
        framing = self.framing
        if first == MALFORMED:
            self.found.append(MALFORMED)
        elif framing.is_oversize:
            numbers = framing.field, framing.packet_id, framing.payload_len
            self.found.append((first, numbers))
        else:
            body = bytes((framing.field >> 8, framing.field & 255))
            body += bytes(framing.rx[: max(framing.length - 2, 0)])
            self.found.append((first, body[: framing.length]))


def read_all(pieces, size):
    """-> what is in `pieces`, the bytes of which arrive one piece after the other."""
    feeder = Feeder(size)
    for piece in pieces:
        feeder.feed(piece)
    return feeder.found
