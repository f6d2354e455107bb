"""Link: one simulated TCP connection, byte by byte, with the faults that strike it.

The client has it as its stream (`readinto`, `write`, `close`); the broker pushes
packets into it.  Bytes take the world's latency, keep their order and may come in
other pieces than they were sent.  It knows nothing of MQTT.
"""

from collections import deque

from .faults import fault

_ECONNRESET = 104


class DeviceReset(BaseException):
    """The device lost its power: whatever the program was doing ends here."""


class Link:
    """A connection of `world`; closed by either side, or by a fault."""

    def __init__(self, world, number):
        self.world = world
        self.number = number
        self.is_closed = False  # by the client
        self.is_dropped = False  # by the broker
        self.is_torn = False  # using it raises ECONNRESET
        self.is_deaf = False  # what the client writes vanishes
        self.is_mute = False  # what the broker writes vanishes
        self.is_busy = False  # the broker is "unavailable" when it gets CONNECT
        self.is_distrusted = False  # its certificate is wrong: the handshake ends in ValueError
        self.blocked_at = -1  # since when something waits for room, -1: nothing does
        self.freed_at = 0  # since when there is room again, -1: there is none
        self.took_at = 0  # when something of a write was taken last, or began to wait
        self.is_paused = False  # the broker reads nothing until the client has read more
        self.in_transit = 0  # bytes that the broker has not got yet
        self.most_up = world.narrow  # bytes that one write takes at most, 0: any number
        self.was_jammed = False
        self.up_stalled_until = self.down_stalled_until = self.jam_until = 0
        self.arrivals = deque()  # b"": the end of the stream
        self.ready = bytearray()  # arrived, not yet read
        self.said = bytearray()  # written by the client, not yet a whole packet
        self.heard = bytearray()  # the same at the broker
        self.to_skip = 0  # bytes of the next write that were shown to the rules before
        self.ends = deque()  # where each packet down ends
        self.taken_bytes = self.read_bytes = self.pushed_bytes = self.last_up = self.last_down = 0
        self.level = 3  # for the broker, since CONNECT
        self.aliases = {}  # topics by number, as the broker knows them
        self.notes = None  # what the rules keep about this connection

    # --- the client's side ----------------------------------------------------------

    def setblocking(self, *_):
        pass

    setsockopt = connect = setblocking

    def readinto(self, buf, n):
        """-> bytes read, None when there is nothing, 0 at the end of the stream."""
        world = self.world
        if world.is_dead:
            raise DeviceReset
        if self.is_torn:
            raise OSError(_ECONNRESET, "connection reset")
        if not self.arrived():
            return 0 if self.is_at_end() else None
        ready = self.ready
        n = min(n, len(ready))
        counter = world.read
        if counter.count + n > counter.next:
            n = counter.next - counter.count
            if not n:
                world.strike(counter.take(), self)
                raise DeviceReset
        counter.count += n
        buf[:n] = ready[:n]
        del ready[:n]
        self.read_bytes += n
        if self.is_paused and self.unread_bytes() <= world.pressure:
            self.is_paused = False
            world.schedule(world.now, self, b"")
        return n

    def take(self, n):
        """The client handles so many more of the bytes that it has read."""
        self.taken_bytes += n
        ends = self.ends
        while ends and ends[0][0] <= self.taken_bytes:
            self.world.rules.on_read(self, ends.popleft()[1])

    def arrived(self):
        """Bytes that can be read now."""
        arrivals = self.arrivals
        while arrivals and arrivals[0][0] <= self.world.now and arrivals[0][1]:
            self.ready += arrivals.popleft()[1]
        return len(self.ready)

    def is_at_end(self):
        """Does nothing come behind what has arrived?"""
        arrivals = self.arrivals
        return self.is_torn or bool(arrivals) and arrivals[0][0] <= self.world.now

    def is_stuck(self):
        """Does something that the client wrote wait for room, or is there none?"""
        return self.to_skip > 0 or self.jam_until > self.world.now or not self._room()

    def unread_bytes(self):
        return self.pushed_bytes - self.read_bytes

    def write(self, buf, off, n):
        """-> bytes taken, None when there is no room."""
        world = self.world
        if world.is_dead:
            raise DeviceReset
        if self.is_distrusted:
            raise ValueError("the certificate is not trusted")  # as ports raise it
        room = 0 if self.jam_until > world.now else self._room()
        if not room and not self.is_torn:
            self.was_jammed = True
            if not self.to_skip:
                world.rules.outgoing.on_no_room(self, bytes(buf[off : off + n]))
            return self._block(None)
        data = bytes(buf[off : off + n])
        # What the client wanted to send counts as sent, whatever becomes of it.
        world.rules.on_write(self, data[self.to_skip :])
        self.to_skip = 0
        if self.is_torn:
            world.rules.outgoing.on_write_failed()
            raise OSError(_ECONNRESET, "connection reset")
        taken = self._send(data[:room])
        if taken != n:
            self.to_skip = n - (taken or 0)
            return self._block(taken)
        if self.freed_at < 0:
            self.freed_at = world.now
        if self.freed_at < world.now:
            self.blocked_at = -1
        return taken

    def _block(self, taken):
        # What follows may have been chosen now, and leave much later.
        if self.blocked_at < 0:
            self.blocked_at = self.world.now
        if taken or self.freed_at >= 0:
            self.took_at = self.world.now
        self.freed_at = -1
        return taken

    def stuck_ms(self):
        """For how long nothing was taken of what waits for room; 0 if nothing waits."""
        return self.world.now - self.took_at if self.freed_at < 0 else 0

    def _room(self):
        # How many bytes the socket takes now.
        room = self.most_up or 1 << 30
        pressure = self.world.pressure
        if pressure and not self.is_deaf:
            waiting = self.in_transit + (len(self.heard) if self.is_paused else 0)
            room = min(room, max(0, pressure - waiting))
        return room

    def _send(self, data):
        if self.is_deaf:
            return len(data)
        counter = self.world.up
        n = len(data)
        if counter.count + n > counter.next:
            n = counter.next - counter.count
            counter.count += n
            if n:
                self._depart(data[:n])
            return self._strike_up(counter.take(), data, n)
        counter.count += n
        self._depart(data)
        return n

    def _depart(self, item):
        world = self.world
        if isinstance(item, bytes):
            self.in_transit += len(item)
        self.last_up = when = max(
            self.last_up, world.now + world.latency_up, self.up_stalled_until
        )
        world.schedule(when, self, item)

    def _strike_up(self, fault, data, n):
        world = self.world
        world.strike(fault, self)
        kind = fault.kind
        if kind == "reset":
            raise DeviceReset
        if kind == "jam":
            self.jam_until = world.now + fault.value
            self.was_jammed = True
        elif kind == "narrow":
            self.most_up = fault.value
        elif kind == "stall":
            self.up_stalled_until = world.now + fault.value
            return n + (self._send(data[n:]) or 0)
        elif kind != "split":
            self._break(fault)
            return len(data)
        return n or None

    def close(self):
        """The client gives the connection up; the broker hears of it if it can."""
        if self.is_closed or self.world.is_dead:
            return
        self.is_closed = True
        self.world.rules.on_close(self)
        if not self.is_deaf and not self.is_torn:
            self._depart("closed")

    # --- the broker's side ----------------------------------------------------------

    def push(self, packet):
        if self.is_mute or self.is_dropped:
            return
        self.pushed_bytes += len(packet)
        self.ends.append((self.pushed_bytes, packet))
        counter = self.world.down
        while counter.count + len(packet) > counter.next:
            n = counter.next - counter.count
            counter.count += n
            if n:
                self._arrive(packet[:n])
            fault = counter.take()
            self.world.strike(fault, self)
            if fault.kind in ("restart", "forget"):
                # The broker is gone now, and so is what it has not heard yet.
                self.is_dropped = True
                world = self.world
                world.schedule(world.now, self, fault.kind)
            if fault.kind not in ("split", "stall"):
                self._break(fault)
                return
            since = max(self.last_down, self.world.now + self.world.latency_down)
            self.down_stalled_until = since + fault.value
            packet = packet[n:]
        counter.count += len(packet)
        self._arrive(packet)

    def drop(self):
        if not self.is_dropped:
            self.is_dropped = True
            if not self.is_mute:
                self._arrive(b"")

    def _arrive(self, piece):
        world = self.world
        self.last_down = when = max(
            self.last_down, world.now + world.latency_down, self.down_stalled_until
        )
        self.arrivals.append((when, piece))

    # --- faults ---------------------------------------------------------------------

    def end(self, kind):
        """The connection ends now, as by a fault of this kind."""
        struck = fault(kind, "up", self.world.up.count)
        self.world.strike(struck, self)
        self._break(struck)

    def _break(self, fault):
        """The connection ends: neatly, abruptly, unnoticed, or with the broker."""
        kind = fault.kind
        self.is_deaf = True
        if kind == "close":
            self._arrive(b"")
            self._depart("closed")
        elif kind == "tear":
            self.is_torn = True
            self._depart("closed")
        elif kind != "hang":  # restart or forget
            self._arrive(b"")
            if not self.is_dropped:
                self._depart(kind)
        self.is_mute = True

    def next_arrival(self):
        """When the client can read, or write again."""
        if self.is_closed:
            return None
        if self.is_torn or self.ready:
            return self.world.now
        when = self.arrivals[0][0] if self.arrivals else None
        if self.jam_until > self.world.now:
            return self.jam_until if when is None else min(when, self.jam_until)
        return when
