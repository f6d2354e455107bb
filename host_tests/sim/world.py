"""World: one device, its network, a broker and the time, all turned by one hand.

Everything that happens follows from the program, the settings and the faults: the
same three give the same run, byte for byte.  Nothing waits for real time.
"""

import heapq
from dataclasses import replace

from .broker import Broker
from .clock import Clock, injected
from .device import Device
from .faults import PLACES, Counter
from .network import DeviceReset, Link
from .rules import Rules
from .settings import Script

_LONGEST_DROWSE_MS = 256
_MOST_TURNS = 4000
_MOST_RESETS = 50
_ECONNREFUSED = 111
_EHOSTUNREACH = 113


class World:
    """`settings`: of client, network and broker, which `more` changes.  `faults`: see
    `faults.parse()`.  `settle_ms`: when all has to be done after the last fault, and after
    `lasts_ms`, None: whenever.  `over`: what makes the client's stream of a link, `Records` or
    `Unsteady`, None for the link itself.  `rules` judge the run.  `is_traced`: keep a log."""

    def __init__(
        self,
        settings=None,
        *,
        faults=(),
        settle_ms=None,
        lasts_ms=0,
        over=None,
        rules=Rules,
        is_traced=False,
        **more,
    ):
        settings = settings or Script()
        settings = replace(settings, **more) if more else settings
        self.seed = settings.seed
        self.now = 0
        self._settle_ms = settle_ms
        self.pressure = settings.pressure
        self.narrow = settings.narrow
        self._lasts_ms = lasts_ms
        self._over = over
        self.away_until = 0  # nobody can be reached before
        self.latency_up = self.latency_down = settings.latency_ms
        self.trace = [] if is_traced else None
        self.struck = []
        self.places_at_first = {}  # passed when the first fault struck
        self.is_dead = False
        self.link = None
        self.links = 0
        self.clock = Clock(self)
        self._events = []
        self._serial = 0
        self._drowse = 0
        self._survivors = 0
        self._quiet_since = lasts_ms
        faults = list(faults)
        for place in PLACES:  # world.up, world.down and so on
            setattr(self, place, Counter([one for one in faults if one.place == place]))
        self.rules = rules(self)
        self.rules.outgoing.is_late = settings.late
        self.rules.outgoing.has_limits = settings.most > 0
        self.broker = Broker(self, settings)
        self.device = Device(self)

    def places(self):
        """How often each place was passed in this run: the faults that could strike it."""
        return {place: getattr(self, place).count for place in PLACES}

    @property
    def delivered(self):
        """What the receivers of the client's messages saw: (topic, payload) in order."""
        return self.rules.delivered

    # --- running --------------------------------------------------------------------

    def run(self, program):
        """Run `program(device)` from each boot on until it returns; raises Violation at the first
        broken promise."""
        with injected(self):
            for _ in range(_MOST_RESETS):
                try:
                    program(self.device)
                    break
                except DeviceReset:
                    self._reset()
        if self.rules.violation:
            raise self.rules.violation
        self.rules.check_end()

    def _reset(self):
        self.note("device resets")
        self.rules.on_reset()
        self.device.medium.cut(self._survivors)
        if self.link:
            # Nobody tells the broker; what is under way still arrives.
            self.link.is_closed = self.link.is_deaf = self.link.is_mute = True
        self.is_dead = False
        self._quiet_since = max(self.now, self.away_until, self._lasts_ms)

    def meet(self, counter, link=None):
        """A place is passed -> the fault that strikes there."""
        struck = counter.step()
        if struck:
            self.strike(struck, link)
        return struck

    def strike(self, fault, link):
        if not self.struck:
            self.places_at_first = self.places()
        self.struck.append(fault)
        self._quiet_since = max(self.now, self.away_until, self._lasts_ms)
        self.note(f"FAULT {fault}")
        if fault.kind == "reset":
            self.is_dead = True
            self._survivors = fault.value
        elif fault.kind == "away":
            self.away_until = self._quiet_since = self.now + fault.value

    def send(self, topic, payload, qos):
        """Some other client publishes a message that the device has subscribed to."""
        self.rules.incoming.on_sent(topic + b"\0" + payload, qos)
        self.broker.send(topic, payload, qos)

    def open_link(self, *address):
        """The client opens a connection -> its stream; raises OSError when there is no way."""
        if self.is_dead:
            raise DeviceReset
        struck = self.meet(self.open)
        kind = struck and struck.kind
        if self.now < self.away_until:
            raise OSError(_EHOSTUNREACH, "no route to host")
        if kind == "refuse":
            raise OSError(_ECONNREFUSED, "connection refused")
        link = Link(self, self.links)
        link.is_busy = kind == "busy"
        link.is_distrusted = kind == "distrust"
        self.links += 1
        self.link = link
        self.rules.on_open(link)
        self.note(f"client opens connection {link.number}")
        return self._over(link, self.seed) if self._over else link

    def note(self, text):
        if self.trace is not None:
            self.trace.append(f"{self.now:8d} ms  {text}")

    # --- time -----------------------------------------------------------------------

    def schedule(self, when, link, item):
        """At `when`, bytes of a link or what became of it reach the broker."""
        self._serial += 1
        heapq.heappush(self._events, (when, self._serial, link, item))

    def call(self, delay_ms, function):
        self.schedule(self.now + delay_ms, None, function)

    def next_event_in(self, most):
        """Ticks until something happens to the device or the broker, `most` at most."""
        when = self.now + most
        if self._events:
            when = min(when, self._events[0][0])
        if self.link:
            arrival = self.link.next_arrival()
            if arrival is not None:
                when = min(when, arrival)
        return max(0, when - self.now)

    def sleep(self, ms):
        """The device sleeps; longer than it wanted, where nothing goes on anyway."""
        if self.is_dead:
            raise DeviceReset
        if self._drowse > ms:
            ms = max(ms, self.next_event_in(self._drowse))
        if self.next_event_in(ms + 1) > ms:
            self._drowse = min(2 * max(ms, 1, self._drowse), _LONGEST_DROWSE_MS)
        else:
            self._drowse = 0
        self.advance(ms)

    def advance(self, ms):
        target = self.now + ms
        events = self._events
        while events and events[0][0] <= target:
            when, _, link, item = heapq.heappop(events)
            if when > self.now:
                self.now = when
            self._happen(link, item)
        self.now = target
        if self._settle_ms is not None:
            incoming = self.rules.incoming
            most_ms, most_turns = self._settle_ms, _MOST_TURNS
            if incoming.may_hold_old_ids:  # with pings for all that time
                most_ms += incoming.held_ms
                most_turns += incoming.held_ms // 1000
            if target - self._quiet_since > most_ms or self.turn.count > most_turns:
                self.rules.fail("termination", "faults are over, and still not all is done")

    def _happen(self, link, item):
        broker = self.broker
        if link is None:
            item()
        elif isinstance(item, bytes):
            if not link.is_dropped:
                broker.on_bytes(link, item)
        elif item == "closed":
            broker.on_closed(link)
        else:
            broker.restart(item == "forget")
