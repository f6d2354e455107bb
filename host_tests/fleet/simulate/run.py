"""Runs a simulated fleet and writes it: pcap, or what a subscriber prints as JSON lines."""

import dataclasses
import datetime
import heapq
import json

from host_tests.standin import packets

from . import faults, tcp
from .fleet import START_US, World
from .kinds import KINDS, pick

WIRE_KINDS = ("twice", "swapped", "split", "overlapped")
_STRETCH = 20_000  # readings between two writes, so that memory does not grow with time


@dataclasses.dataclass
class Plan:
    """What to simulate.  `fault_rate` and `wire_rate` are per reading and per segment."""

    devices: int = 10
    readings: int = 1_000
    interval_s: int = 60
    seed: int = 1
    fault_rate: float = 0.0
    kinds: tuple = tuple(KINDS)
    wire_rate: float = 0.0
    wire_kinds: tuple = WIRE_KINDS
    gap_rate: float = 0.0
    levels: tuple = (3, 4)
    qos: int | None = None
    heavy: float = 0.0  # part of all readings that the first device sends
    is_forwarded: bool = True  # to subscribers
    plain: float = 0.0  # part of the devices that send plain values instead of readings
    foreign: float = 0.0  # part of these on whose topic somebody uncaptured writes too
    subscriber_levels: tuple = (4,)  # of the devices' own subscribers


def pcap(plan, stream):
    """Write a capture to the binary `stream` -> `Truth`."""
    stream.write(tcp.PCAP_HEADER)
    return _run(plan, stream, _PcapWriter)


def json_lines(plan, stream):
    """Write to the text `stream` what the subscribers print -> `Truth`."""
    return _run(plan, stream, _JsonWriter)


def write(plan, path):
    """Write the traffic to `path` by its ending, the truth beside it -> `Truth`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as stream:
            truth = json_lines(plan, stream)
    else:
        with path.open("wb") as stream:
            truth = pcap(plan, stream)
    beside = path.with_name(path.name + ".truth.json")
    beside.write_text(json.dumps(dataclasses.asdict(truth), indent=1), encoding="utf-8")
    return truth


def _run(plan, stream, kind):
    world = World(plan)
    writer = kind(plan, stream, world)
    for number, client in enumerate(world.subscribers):
        world.start(START_US + number * 1_000, client)
    interval_us = plan.interval_s * 1_000_000
    others = max(1, plan.devices - 1)
    heavy_us = int(interval_us * (1 - plan.heavy) / others / plan.heavy) if plan.heavy else 0
    due = []
    for number, device in enumerate(world.devices):
        first = START_US + 5_000_000 + number * interval_us // max(1, plan.devices)
        world.start(first - 2_000_000, device)
        due.append((first, number))
    heapq.heapify(due)
    for done in range(plan.readings):
        at, number = heapq.heappop(due)
        device = world.devices[number]
        at = max(at, device.busy_until)
        _keep_alive(world, device, at)
        _keep_alive(world, device.subscriber, at)
        fault = faults.normal
        if plan.fault_rate and world.random.random() < plan.fault_rate:
            fault = pick(world, device, plan.kinds)
        device.busy_until = fault(world, device, at) + 100_000
        pause_us = heavy_us if plan.heavy and number == 0 else interval_us
        heapq.heappush(due, (max(at + pause_us, device.busy_until), number))
        if done % _STRETCH == _STRETCH - 1:
            _keep_alive_all(world, due[0][0])
            writer.write(world.take(due[0][0]))
    end = max(at for at, _ in due) + 120_000_000
    _keep_alive_all(world, end)
    for client in (*world.devices, *world.subscribers):
        world.disconnect(max(end, client.busy_until), client)
    writer.write(world.take(1 << 62))
    return world.truth


def _keep_alive(world, client, until):
    step = client.keep_alive_s * 900_000
    while until - client.last_sent > step:
        world.ping(client.last_sent + step, client)


def _keep_alive_all(world, until):
    for client in (*world.subscribers, *world.devices):
        _keep_alive(world, client, until)


class _PcapWriter:
    def __init__(self, plan, stream, world):
        self._plan, self._stream = plan, stream
        self._random, self._truth = world.random, world.truth

    def write(self, emitted):
        rough = self._plan.wire_rate
        gaps = self._plan.gap_rate
        counts = self._truth.packets
        frames = []
        for ts, _, connection, direction, payload, flags in emitted:
            if payload:
                kind = packets.NAMES[payload[0] >> 4]
                counts[kind] = counts.get(kind, 0) + 1
                if rough and self._random.random() < rough:
                    frames += self._rough(connection, ts, direction, payload)
                    continue
                # What the capture missed: PUBLISHes of devices, which the broker did get.
                may_miss = gaps and kind == "PUBLISH" and not direction
                if may_miss and self._random.random() < gaps:
                    connection.frame(ts, direction, payload)
                    counts[kind] -= 1
                    self._truth.gaps += 1
                    continue
            frames.append(connection.frame(ts, direction, payload, flags))
        self._stream.write(b"".join(frames))

    def _rough(self, connection, ts, direction, payload):
        kind = self._random.choice(self._plan.wire_kinds)
        before = connection.seq[direction]
        if kind == "twice":
            frame = connection.frame(ts, direction, payload)
            return [frame, connection.frame(ts, direction, payload, seq=before)]
        cut = self._random.randrange(1, len(payload))
        if kind == "overlapped":
            # The second segment repeats some bytes of the first one.
            more = self._random.randrange(cut, len(payload) + 1)
            connection.frame(ts, direction, payload)
            first = connection.frame(ts, direction, payload[:more], seq=before)
            return [first, connection.frame(ts, direction, payload[cut:], seq=before + cut)]
        first = connection.frame(ts, direction, payload[:cut])
        second = connection.frame(ts, direction, payload[cut:])
        return [second, first] if kind == "swapped" else [first, second]


class _JsonWriter:
    # As `mosquitto_sub -F` prints with the format of docs/reference/fleet-tables.md.
    def __init__(self, plan, stream, world):
        self._stream, self._counts = stream, world.truth.packets

    def write(self, emitted):
        for ts, _, _, direction, payload, _ in emitted:
            if direction != 1 or not payload or payload[0] >> 4 != 3:
                continue
            self._counts["PUBLISH"] = self._counts.get("PUBLISH", 0) + 1
            qos, packet_id, topic, message = packets.publish_fields(payload)
            moment = datetime.datetime.fromtimestamp(ts / 1e6, datetime.UTC)
            row = {"tst": moment.isoformat(), "topic": topic.decode(), "qos": qos}
            row |= {"retain": payload[0] & 1, "payloadlen": len(message)}
            row["payload"] = message.hex()
            if qos:
                row["mid"] = packet_id
            self._stream.write(json.dumps(row) + "\n")
