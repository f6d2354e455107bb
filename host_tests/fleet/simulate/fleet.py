"""The simulated world: devices, a broker, subscribers, and time.

Every reading is published by its device and forwarded to one subscriber; packets
are put on a list with their time and leave, sorted, a stretch of time after the
other.  The same seed gives the same bytes.  What goes wrong is in `faults`; what
happened is kept in `Truth`.
"""

import random
import struct
from dataclasses import dataclass, field

from host_tests.standin import packets

from . import tcp

STEP_US = 200  # from a packet to its answer
FORWARD_US = 1_000  # from a PUBLISH at the broker to the forwarded one
START_US = 1_767_225_600_000_000  # 2026-01-01 00:00:00 UTC
_PAUSE_US = 2_000_000  # before a client that lost its connection is back
_READING = struct.Struct(">BBHIIIBB23sBiBi").pack


def reading(firmware, boot, sequence, uptime_s, stream, device, values):
    """A payload of docs/reference/readings.md with two values, temperature and voltage."""
    head = 0x75, 1, firmware, boot, sequence, uptime_s, stream, 2, device
    return _READING(*head, 1, values[0], 4, values[1])


@dataclass
class Truth:
    """What an audit has to find, no more and no less.

    Readings are (device, boot, stream, sequence).  `violations` are (requirement,
    client id), `overtaken` and `repeated` count by (client id, topic), `faults` by kind;
    `plain_lost` are (client id, topic, microseconds) of lost messages that are no
    readings, `findings` (name, client id), `excused` violations that a connection which
    broke, in the capture or before it, explains.
    """

    seed: int
    readings: int = 0
    packets: dict = field(default_factory=dict)
    faults: dict = field(default_factory=dict)
    never_sent: list = field(default_factory=list)
    not_delivered: list = field(default_factory=list)
    duplicated: list = field(default_factory=list)
    redelivered: list = field(default_factory=list)
    overtaken: list = field(default_factory=list)
    plain_lost: list = field(default_factory=list)
    repeated: list = field(default_factory=list)
    incomplete: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    violations: list = field(default_factory=list)
    excused: list = field(default_factory=list)
    gaps: int = 0


class Client:
    """A device or a subscriber, and its connection of the moment."""

    def __init__(self, number, name, address, level, qos, keep_alive_s):
        self.number = number
        self.name = name
        self.address = address
        self.level = level
        self.qos = qos
        self.keep_alive_s = keep_alive_s
        self.no_properties = packets.no_properties(level)
        self.connection = None
        self.connections = 0
        self.has_broken = False
        self.ids = [0, 0]
        self.busy_until = 0
        self.last_sent = 0
        self.subscriber = None
        self.topic = b""
        self.boot = 1
        self.booted = 0
        self.sequence = 0
        self.is_plain = False  # sends plain values, which come again and again
        self.has_foreign = False  # somebody who was not captured writes to its topic
        self.expiry_s = 0  # of the session, at level 5

    def next_id(self, direction):
        """A fresh packet id for messages sent in this direction."""
        self.ids[direction] = self.ids[direction] % 65535 + 1
        return self.ids[direction]


class World:
    """Makes clients and moves packets; `faults` and `run` drive it."""

    def __init__(self, plan):
        self.random = random.Random(plan.seed)
        self.truth = Truth(plan.seed)
        self._plan = plan
        self._out, self._count = [], 0
        collector = self._client(0, b"collector", 4, 2)
        self.devices, self.subscribers = [], [collector]
        for number in range(plan.devices):
            level = plan.levels[number % len(plan.levels)]
            qos = number % 3 if plan.qos is None else plan.qos
            device = self._client(number, b"dev-%06d" % number, level, qos)
            self.devices.append(device)
            device.subscriber, group = collector, b"all"
            if number % 4 == 3:
                # Its own subscriber, so that a lost connection hits one device only.
                level = plan.subscriber_levels[number // 4 % len(plan.subscriber_levels)]
                device.subscriber = self._client(number, b"watch-%06d" % number, level, 2)
                device.subscriber.expiry_s, group = 3600, b"own"
                self.subscribers.append(device.subscriber)
            # Spread over the numbers, the same for every seed.
            device.is_plain = number * 7919 % 100 < plan.plain * 100
            if device.is_plain:
                device.has_foreign = number * 104729 % 100 < plan.foreign * 100
            device.topic = b"fleet/%b/%b/reading/1" % (group, device.name)

    def _client(self, number, name, level, qos):
        kind = {b"d": 11, b"w": 12, b"c": 13}[name[:1]]
        if number % 8 == 5:
            address = bytes((0xFD, kind, *[0] * 10)) + number.to_bytes(4, "big")
        else:
            address = bytes((kind,)) + number.to_bytes(3, "big")
        return Client(number, name, address, level, qos, 90)

    def emit(self, ts, client, direction, payload=b"", flags=tcp.PSH | tcp.ACK):
        """Put one packet (or a bare segment) on the wire at `ts`."""
        self._count += 1
        self._out.append((ts, self._count, client.connection, direction, payload, flags))
        if direction == 0:
            client.last_sent = ts

    def take(self, before):
        """All that was emitted for times before `before`, in order."""
        self._out.sort()
        cut = len(self._out)
        while cut and self._out[cut - 1][0] >= before:
            cut -= 1
        ready, self._out = self._out[:cut], self._out[cut:]
        return ready

    # Connections

    def connect(self, ts, client, clean=False, has_session=False, keep_alive_s=None):
        """TCP handshake, CONNECT, CONNACK -> the time when all is done."""
        client.connections += 1
        port = 20_000 + client.connections % 40_000
        address = client.address
        server = bytes((10, 0, 0, 1)) if len(address) == 4 else b"\xfd" + bytes(14) + b"\1"
        isn = self.random.getrandbits(32), self.random.getrandbits(32)
        client.connection = tcp.Connection(address, server, port, *isn)
        self.emit(ts, client, 0, b"", tcp.SYN)
        self.emit(ts + 50, client, 1, b"", tcp.SYN | tcp.ACK)
        keep_alive_s = client.keep_alive_s if keep_alive_s is None else keep_alive_s
        level = client.level
        asked = b""
        if level == 5 and client.expiry_s:
            asked = packets.properties(session_expiry=client.expiry_s)
        flags = packets.CLEAN if clean else 0
        hello = packets.connect(client.name, flags, keep_alive_s, level=level, properties=asked)
        self.emit(ts + 100, client, 0, hello)
        is_present = has_session and level > 3  # level 3 cannot tell of a session
        answer = packets.connack(0, is_present, client.no_properties)
        self.emit(ts + 300, client, 1, answer)
        return ts + 500

    def start(self, ts, client):
        """The first connection, from a clean session, as far as the level can say so."""
        if client.level == 3:
            # Level 3 does not tell whether an old session was found, so it is cleared.
            ts = self.connect(ts, client, clean=True)
            ts = self.disconnect(ts, client) + 1_000
        ts = self.connect(ts, client)
        if client.name[:1] != b"d":
            self.subscribe(ts, client)
            ts += 1_000
        client.busy_until = ts
        client.booted = ts
        return ts

    def subscribe(self, ts, client):
        """A subscriber asks for its device's readings, a collector for all."""
        own = b"fleet/own/dev-%06d/#" % client.number
        name = b"fleet/all/+/reading/#" if client.name[:1] == b"c" else own
        packet_id = client.next_id(0)
        none = client.no_properties
        self.emit(ts, client, 0, packets.subscribe(packet_id, (name, 2), properties=none))
        self.emit(ts + STEP_US, client, 1, packets.suback(packet_id, 2, properties=none))

    def disconnect(self, ts, client):
        """DISCONNECT and an orderly end -> the time when all is done."""
        self.emit(ts, client, 0, packets.disconnect())
        self.emit(ts + 50, client, 0, b"", tcp.FIN | tcp.ACK)
        self.emit(ts + 100, client, 1, b"", tcp.FIN | tcp.ACK)
        return ts + 200

    def cut(self, ts, client):
        """The connection breaks -> the time when the client is back."""
        self.emit(ts, client, self.random.randrange(2), b"", tcp.RST | tcp.ACK)
        client.has_broken = True
        return ts + _PAUSE_US

    def ping(self, ts, client):
        """PINGREQ and PINGRESP."""
        self.emit(ts, client, 0, packets.pingreq())
        self.emit(ts + STEP_US, client, 1, packets.pingresp())

    # Messages

    def reading(self, device, ts, skip=0):
        """The device's next reading -> (its identity, payload)."""
        device.sequence += 1 + skip
        if device.is_plain:
            return self.identity(device), b"%d" % (20 + self.random.randrange(3))
        uptime_s = (ts - device.booted) // 1_000_000
        values = (2000 + device.sequence % 500, 3300 - device.sequence % 90)
        boot = (0x0100 + device.number % 3, device.boot)
        payload = reading(*boot, device.sequence, uptime_s, 1, device.name, values)
        self.truth.readings += 1
        return self.identity(device), payload

    @staticmethod
    def identity(device, sequence=None):
        """(device, boot, stream, sequence), of the latest reading or of that number."""
        return (device.name.decode(), device.boot, 1, sequence or device.sequence)

    def publish(self, ts, client, direction, topic, payload, qos, packet_id, dup=0, expiry_s=None):
        """One PUBLISH packet; `expiry_s` is level 5's."""
        section = client.no_properties
        if section and expiry_s is not None:
            section = packets.properties(message_expiry=expiry_s)
        packet = packets.publish(topic, payload, qos, packet_id, dup, 0, section)
        self.emit(ts, client, direction, packet)

    def begin(self, ts, device, packet_id=None):
        """The PUBLISH of the device's next reading -> (its identity, payload, packet id)."""
        identity, payload = self.reading(device, ts)
        packet_id = device.next_id(0) if packet_id is None else packet_id
        self.publish(ts, device, 0, device.topic, payload, device.qos, packet_id)
        return identity, payload, packet_id

    def lose(self, ts, device, identity):
        """Note a message that was published at `ts` and will not be forwarded."""
        if device.is_plain:
            who = device.subscriber.name.decode()
            self.truth.plain_lost.append((who, device.topic.decode(), ts))
        else:
            self.truth.not_delivered.append(identity)

    def answer(self, ts, client, direction, qos, packet_id, release=None):
        """All that follows a PUBLISH sent in `direction` at `ts`; `release`: another PUBREL."""
        back = 1 - direction
        if qos == 1:
            self.emit(ts + STEP_US, client, back, packets.puback(packet_id))
        elif qos == 2:
            self.emit(ts + STEP_US, client, back, packets.pubrec(packet_id))
            self.release(ts + 2 * STEP_US, client, direction, packet_id, release)

    def release(self, ts, client, direction, packet_id, release=None):
        """PUBREL and PUBCOMP."""
        self.emit(ts, client, direction, release or packets.pubrel(packet_id))
        self.emit(ts + STEP_US, client, 1 - direction, packets.pubcomp(packet_id))

    def send(self, ts, device, payload, dup=0, packet_id=None, expiry_s=None):
        """A whole flow from the device to the broker -> its packet id."""
        packet_id = packet_id or device.next_id(0)
        self.publish(ts, device, 0, device.topic, payload, device.qos, packet_id, dup, expiry_s)
        self.answer(ts, device, 0, device.qos, packet_id)
        return packet_id

    def forward(self, ts, device, payload, qos=None):
        """A whole flow from the broker to the device's subscriber."""
        if not self._plan.is_forwarded:
            return
        qos = device.qos if qos is None else qos
        subscriber = device.subscriber
        packet_id = subscriber.next_id(1)
        self.publish(ts, subscriber, 1, device.topic, payload, qos, packet_id)
        self.answer(ts, subscriber, 1, qos, packet_id)
