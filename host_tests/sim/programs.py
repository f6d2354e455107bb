"""Programs: what the random programs of all fronts have in common.

From a seed come the faults, the world and the broker's messages.  For fronts whose programs
are handed copies, and acknowledge when they are done with them, there are rules of their own.
"""

import random
from collections import Counter
from functools import partial

from host_tests.standin import packets as p

from .faults import NEVER, fault
from .incoming import Incoming
from .rules import Rules, Violation
from .world import World

_BREAKS = (("close", "up"), ("close", "down"), ("tear", "up"), ("tear", "down"), ("restart", "up"))
_DELAYS = (("stall", "up"), ("stall", "down"), ("split", "up"), ("jam", "up"), ("narrow", "up"))
_REACH = 600  # bytes from the start of a run in which faults strike
RESETS = (("up", _REACH), ("read", _REACH), ("store", 200), ("flash", 100))


class Program:
    """A random program, the same for the same seed."""

    _make_world = World
    _rules = Rules
    _settle_ms = None  # after the last fault, None: the program itself looks at the time
    _topics = (b"d/1", b"d/2")  # of the broker's messages
    _down_qos = (1, 2)
    _acts = ()  # up to which throw, which: a method here, or the client's with such arguments

    def __init__(self, seed, over=None):
        self._dice = dice = random.Random(seed)
        self._choose()
        self.faults = self._choose_faults()
        self.world = self._make_world(
            seed=seed,
            faults=self.faults.values(),
            latency_ms=dice.choice((1, 30)),
            serve=dice.choice((1, 4, 20)),
            reuse=dice.random() < 0.5,
            over=over,
            rules=self._rules,
            settle_ms=self._settle_ms,
            **self._terms(),
        )

    def _choose(self):
        # What faults and world depend on.
        pass

    def _choose_faults(self):
        # Some that end a connection, some that only delay; two at one place are left out.
        found = {}
        for kinds, most in ((_BREAKS, 5), (_DELAYS, 3)):
            for _ in range(self._dice.randint(0, most)):
                kind, place = self._dice.choice(kinds)
                at = self._dice.randint(20, _REACH)
                found[place, at] = fault(kind, place, at)
        return found

    def _add_strikes(self, found, strikes, level, chance):
        for kind, place, reach, least in strikes:
            if level >= least and self._dice.random() < chance:
                at = self._dice.randint(0, reach)
                found[place, at] = fault(kind, place, at)

    def _add_reset(self, found, place, reach):
        dice = self._dice
        at = dice.randint(0, reach)
        value = dice.choice((0, 1, 2, NEVER)) if place == "store" else dice.randrange(100)
        found[place, at] = fault("reset", place, at, value)

    def _terms(self):
        # What else the world is to be like.
        return {}

    def _have_sent(self):
        # The broker is to have messages, now and later.
        self._down = self._dice.randint(1, 24)
        for number in range(self._down):
            topic, qos = self._dice.choice(self._topics), self._dice.choice(self._down_qos)
            delay_ms = self._dice.choice((0, 0, self._dice.randint(0, 4000)))
            send = partial(self.world.send, topic, self._payload(number), qos)
            self.world.call(delay_ms, send)

    def _payload(self, number):
        return b"%d" % number

    def _step(self):
        # The program does one of `_acts`.
        throw = self._dice.random()
        _, name, *choices = next(row for row in self._acts if throw < row[0])
        if name[0] == "_":
            getattr(self, name)()
        else:
            self._try(getattr(self._client, name), *map(self._dice.choice, choices))

    def _is_quiet(self):
        # Has the broker sent all that it is to have?
        world = self.world
        return world.broker.is_done and len(world.rules.incoming.messages) == self._down


def broken_promise(program):
    """Run a program to its end, or to the promise that it breaks."""
    try:
        program.run()
    except Violation as violation:
        return violation
    return None


class Handed(Incoming):
    """Judges what a program is handed as copies, and what is acknowledged when."""

    def __init__(self, rules):
        super().__init__(rules)
        self._done = {}  # the how-manieth
        self._count = 0
        self._handed = Counter()
        self._left = Counter()  # left without being done, so that it comes again
        self._answered = set()

    def on_publish(self, link, packet):
        qos, packet_id, topic, payload = p.publish_fields(packet, self._rules.level)
        if qos:
            kind = p.PUBACK if qos == 1 else p.PUBREC
            link.notes.owed[kind].append((packet_id, topic + b"\0" + payload))

    def on_pubrel(self, link, packet):
        pass

    def on_session_lost(self):
        """Held ids may take all places until they are forgotten, and only then more comes."""
        self.may_hold_old_ids = True

    def on_answer(self, link, packet):
        kind, packet_id = packet[0] >> 4, p.read_id(packet)
        if kind == p.PUBCOMP:
            return
        owed = link.notes.owed[kind]
        k = self._find_answered(owed, packet_id)
        if k < 0 and self._rules.secret_losses:  # its id seems to be held
            k = next((k for k, one in enumerate(owed) if one[0] == packet_id), -1)
        if k < 0:
            rule = "MQTT-4.6.0-2" if kind == p.PUBACK else "MQTT-4.6.0-3"
            self._fail(rule, f"{p.NAMES[kind]} {packet_id}, owed are {owed}")
        key = owed.pop(k)[1]
        self._answered.add(key)
        if key not in self._done and self._rules.secret_losses:
            self.messages[key].is_forgotten = True  # taken for a repetition
        elif key not in self._done:
            self._fail("MQTT-4.3.2-4", f"{key!r} is acknowledged before it is done")

    def _find_answered(self, owed, packet_id):
        # -> the place of what this answers, -1 if it is not its turn.
        return 0 if owed and owed[0][0] == packet_id else -1

    def on_handed(self, topic, payload):
        key = topic + b"\0" + payload
        if key not in self.messages:
            self._fail("31-3.3", f"{key!r} is handed over, which nobody sent")
        self._handed[key] += 1
        self._done.pop(key, None)
        if self.messages[key].qos == 2 and self._handed[key] > 1 + self._left[key]:
            self._fail("MQTT-4.3.3-10", f"{key!r} is handed over again")

    def on_left(self, topic, payload):
        """The program left it without being done."""
        self._left[topic + b"\0" + payload] += 1

    def on_done(self, topic, payload):
        self._count += 1
        self._done[topic + b"\0" + payload] = self._count

    def on_reset(self):
        """What is not answered may come again, done or not."""
        self.may_hold_old_ids |= self._rules.secret_losses > 0
        for key in self._handed:
            if key not in self._answered:
                self._left[key] = self._handed[key]

    def on_clean_connect(self):
        """The client asks for a clean session, and may forget what it has answered."""
        self._left.update(self._handed - self._left)

    def check_end(self):
        for key, message in self.messages.items():
            if message.qos and key not in self._done and not message.is_forgotten:
                self._fail(f"31-4.1-Q{message.qos}", f"{message} is lost")
