"""A reading as a JSON object, for programs that know no envelope: Home Assistant, Node-RED.

The same fields as the envelope (docs/reference/readings.md), values by name in their usual unit.
Allocates.
"""

import json

from reading import Reading

# kind: (name, decimals of its usual unit)
KINDS = {
    1: ("temperature", 2),
    2: ("humidity", 2),
    3: ("pressure", 2),
    4: ("supply", 3),
    5: ("signal", 0),
    6: ("free_heap", 0),
    16: ("cause", 0),
    17: ("largest_block", 0),
    18: ("reconnects", 0),
    19: ("drops", 0),
    20: ("fill", 2),
    21: ("corrupt_pages", 0),
    22: ("bad_blocks", 0),
    23: ("journal_failed", 0),
    24: ("forged_commands", 0),
}


class JSONReading(Reading):
    """As Reading, but `number()` gives JSON."""

    def __init__(self, device, firmware, boot):
        super().__init__(device, firmware, boot)
        release = "%d.%d" % (firmware >> 8, firmware & 255)
        about = json.dumps(device), release, boot
        self._head = '{"device": %s, "firmware": "%s", "boot": %d' % about
        self._values = []  # (kind, value)

    def clear(self):
        super().clear()
        self._values.clear()

    def add(self, kind, value):
        is_taken = super().add(kind, value)
        if is_taken:
            self._values.append((kind, value))
        return is_taken

    def named(self):
        """-> [(kind, name, value as text)]; the second temperature is temperature_2."""
        counts = {}
        found = []
        for kind, value in self._values:
            name, decimals = KINDS.get(kind, ("kind_%d" % kind, 0))
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] > 1:
                name = "%s_%d" % (name, counts[kind])
            found.append((kind, name, _decimal(value, decimals)))
        return found

    def number(self, stream, sequence, uptime_s, time_high=0, time_low=0):
        """Address the sample to a stream -> the whole object, as bytes."""
        about = stream, sequence, uptime_s
        text = self._head + ', "stream": %d, "sequence": %d, "uptime_s": %d' % about
        if time_high:
            text += ', "time": %d' % (time_high << 16 | time_low)
        for _, name, value in self.named():
            text += ', "%s": %s' % (name, value)
        return (text + "}").encode()


def _decimal(value, decimals):
    # No floats: most ports have them in single precision.
    if not decimals:
        return str(value)
    scale = 10**decimals
    whole, part = divmod(abs(value), scale)
    return "%s%d.%s" % ("-" if value < 0 else "", whole, str(scale + part)[1:])
