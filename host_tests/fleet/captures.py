"""Captures made by hand: a few packets of a few connections, and the pipeline on them.

`Capture` writes frames as the simulator does, with packets that are written apart
from everything that decodes them.
"""

import io
import itertools
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa

from host_tests.fleet.simulate import tcp
from host_tests.standin import packets
from tools.fleet import schemas, tables
from tools.fleet.audit.judge import judge
from tools.fleet.audit.readings import readings
from tools.fleet.audit.routes import routes
from tools.fleet.capture import files, link
from tools.fleet.capture.frames import Tally
from tools.fleet.decode.decoder import Decoder

SERVER = bytes((10, 0, 0, 1))
START_US = 1_700_000_000_000_000
C2S, S2C = 0, 1


class Capture:
    """A pcap file in the making; time goes on by a millisecond with each frame."""

    def __init__(self):
        self.frames = [tcp.PCAP_HEADER]
        self.now = START_US
        self.ports = 40_000

    def connection(
        self, name=b"c1", level=4, clean=True, keep_alive_s=60, present=False, said=(), **more
    ):
        """Open a connection: handshake, CONNECT, CONNACK -> `Talk`; `said`: their properties."""
        talk = self.middle(name, level=level, **more).open()
        of_client, of_server = (_properties(one, level) for one in said or ({}, {}))
        flags = packets.CLEAN if clean else 0
        hello = packets.connect(name, flags, keep_alive_s, level=level, properties=of_client)
        talk.send(C2S, hello)
        talk.send(S2C, packets.connack(0, present, of_server))
        return talk

    def middle(self, name=b"c1", level=4, port=None, isn=1000, server=SERVER):
        """A connection of which the capture did not see the beginning."""
        self.ports += 1
        client = bytes((10, 1, 0, sum(name) % 250 + 1))
        connection = tcp.Connection(client, server, port or self.ports, isn, 7000)
        return Talk(self, connection, level)

    def write(self, path):
        """Write the file -> its path."""
        path.write_bytes(b"".join(self.frames))
        return path

    def events(self):
        """What `decode` makes of it."""
        with tempfile.TemporaryDirectory() as folder:
            return decode(self.write(Path(folder) / "one.pcap"))[0]

    def audit(self, exempt=()):
        """All tables of its audit."""
        return audit(self.events(), exempt)


def connected(*names, **more):
    """-> (`Capture`, a connection of each of these clients, …)"""
    capture = Capture()
    return capture, *(capture.connection(name, **more) for name in names or (b"c1",))


def routed(qos=2, clean=True):
    """-> (`Capture`, a publisher, a subscriber to everything)"""
    capture, publisher = connected(b"pub")
    subscriber = capture.connection(b"sub", clean=clean)
    subscriber.subscribe(b"#", qos)
    return capture, publisher, subscriber


def begun(*args, **more):
    """-> (`Capture`, a connection of which it did not see the beginning)"""
    capture = Capture()
    return capture, capture.middle(*args, **more)


def _properties(said, level):
    return packets.properties(**said) if said else packets.no_properties(level)


class Talk:
    """One connection of a `Capture`."""

    def __init__(self, capture, connection, level):
        self.capture = capture
        self.wire = connection
        self.level = level

    def segment(self, direction, payload, flags=tcp.PSH | tcp.ACK, after_ms=1, seq=None):
        """One TCP segment."""
        self.capture.now += after_ms * 1000
        frame = self.wire.frame(self.capture.now, direction, payload, flags, seq)
        self.capture.frames.append(frame)

    def open(self):
        """The handshake of TCP -> self."""
        self.segment(C2S, b"", tcp.SYN)
        self.segment(S2C, b"", tcp.SYN | tcp.ACK)
        return self

    def send(self, direction, packet, after_ms=1):
        """One MQTT packet in a segment of its own."""
        self.segment(direction, packet, after_ms=after_ms)

    def publish(
        self, direction, topic, payload, qos=0, packet_id=None, dup=0, after_ms=1, retain=0, **more
    ):
        """A PUBLISH; `more` are its properties."""
        said = _properties(more, self.level)
        packet = packets.publish(topic, payload, qos, packet_id, dup, retain, said)
        self.send(direction, packet, after_ms)

    def ack(self, direction, first, packet_id, after_ms=1):
        """PUBACK 0x40, PUBREC 0x50, PUBREL 0x62, PUBCOMP 0x70."""
        self.send(direction, packets.packet(first, packets.u16(packet_id)), after_ms)

    def exchange(self, direction, topic, payload, packet_id, qos=1, answer_ms=1, **more):
        """A PUBLISH, with more as of `publish`, and what answers it."""
        self.publish(direction, topic, payload, qos, packet_id if qos else None, **more)
        if qos == 2:
            self.release(direction, packet_id)
        elif qos:
            self.ack(1 - direction, 0x40, packet_id, answer_ms)

    def release(self, direction, packet_id):
        """PUBREC, PUBREL and PUBCOMP of a PUBLISH in this direction."""
        for side, first in ((1 - direction, 0x50), (direction, 0x62), (1 - direction, 0x70)):
            self.ack(side, first, packet_id)

    def ping(self, after_ms=1):
        """PINGREQ and PINGRESP."""
        self.send(C2S, packets.pingreq(), after_ms)
        self.send(S2C, packets.pingresp())

    def quiet(self, after_ms=10_000):
        """PINGREQ, after a time in which nothing came."""
        self.send(C2S, packets.pingreq(), after_ms)

    def bye(self):
        """DISCONNECT."""
        self.send(C2S, packets.disconnect())

    def subscribe(self, name, qos=2, packet_id=1):
        """SUBSCRIBE and SUBACK."""
        none = packets.no_properties(self.level)
        self.send(C2S, packets.subscribe(packet_id, (name, qos), properties=none))
        self.send(S2C, packets.suback(packet_id, qos, properties=none))

    def reset(self):
        """The connection breaks."""
        self.segment(C2S, b"", tcp.RST | tcp.ACK)


def records(data):
    """Where the records of a pcap file begin."""
    starts, pos = [], 24
    while pos < len(data):
        starts.append(pos)
        pos += 16 + int.from_bytes(data[pos + 8 : pos + 12], "little")
    return starts


def pieces(data, rng, count):
    """So many pcap files of one, cut at records."""
    cuts = [24, *sorted(rng.sample(records(data)[1:], count - 1)), len(data)]
    return [data[:24] + data[begin:end] for begin, end in itertools.pairwise(cuts)]


def decode(path, ports=(1883,), chunk_bytes=1 << 24, site="default"):
    """-> (events as an Arrow table or None, tally) of one capture file."""
    return decode_all([path], ports, chunk_bytes, site)


def decode_all(paths, ports=(1883,), chunk_bytes=1 << 24, site="default"):
    """As `decode`, the files of one site, in order of their time."""
    tally, decoder, batches = Tally(), Decoder(site), []
    for path in paths:
        tally.last_ts, tally.is_cut = None, False  # of one file
        for frames in files.read_frames(path, tally, chunk_bytes=chunk_bytes):
            batches += decoder.feed(link.segments(frames, set(ports), tally), path.name)
    batches += decoder.finish()
    if not batches:
        return None, tally
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks(), tally


def audit(events, exempt=()):
    """All tables of the audit, without Spark: {name: Arrow table}."""
    found = judge(events)
    messages = found["messages"]
    routed = routes(messages, found["subscriptions"], exempt, found["wills"])
    collected = readings(messages.filter(messages["envelope"].is_valid()))
    for name in ("violations", "findings"):
        found[name] = tables.joined([found[name], routed[name]])
    found["losses"] = tables.joined([routed["losses"], collected["losses"]])
    found["readings"] = collected["readings"]
    found["routes"] = routed["routes"]
    return found


def simulated(plan):
    """-> (bytes of a simulated capture, its truth)."""
    from host_tests.fleet.simulate.run import pcap

    stream = io.BytesIO()
    truth = pcap(plan, stream)
    return stream.getvalue(), truth


def types(events):
    """{packet type: count} of the MQTT packets in events."""
    names = events["packet_type"].to_pylist() if events is not None else ()
    return dict(Counter(name for name in names if name in schemas.PACKET_TYPES))


def lost_of(tables, *names):
    """The columns `names` of the losses, and which of all that was published each is, from 1."""
    sent = [
        ts for side, ts in rows(tables["messages"], "direction", "first_sent") if side == "c2s"
    ]
    found = rows(tables["losses"], *names, "ts")
    return [(*row[:-1], sorted(sent).index(row[-1]) + 1) for row in found]


def rows(table, *names):
    """The columns `names` of a table as a list of tuples."""
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))
