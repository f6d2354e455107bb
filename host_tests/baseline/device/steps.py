"""Does each kind of work of the client COUNT times, twice, and prints its name.

Usage: micropython -m steps COUNT NAMES.  The work lies between two calls of math.erf(),
at which callgrind, told so, begins a new count.  The far end is this program itself, at
the other end of a Unix socket: what it writes is there at once, so that every run does
the same steps.  The first round makes what is made on first use.

NAMES names are made before the library's.  MicroPython keeps where it found a name in
128 places by the number of the name: those of two names may be the same, and a name
more in the library makes other pairs of them.
"""

import asyncio
import gc
import io
import math
import random
import socket
import sys
import time

count, names = int(sys.argv[1]), int(sys.argv[2])
for k in range(names):
    getattr(sys, "a name more %d" % k, None)

from umqtt31 import FileBlockDevice, Journal, MQTTClient  # noqa: E402
from umqtt31.aio import MQTTClient as AioClient  # noqa: E402
from umqtt31.simple import MQTTClient as SimpleClient  # noqa: E402

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)
CONNACK = b"\x20\x02\x00\x00"
CONNACK_5 = b"\x20\x03\x00\x00\x00"


class Clock:
    """Stands still, so that nothing comes due in one run and not in the next."""

    ticks_add = time.ticks_add
    ticks_diff = time.ticks_diff
    sleep_ms = time.sleep_ms

    def __init__(self):
        stopped = io.BytesIO(bytes(1000))
        stopped.seek(1000)
        self.ticks_ms = stopped.tell  # as quick as the clock's own


class Pair:
    """Both ends of a connection: `near` for a client of a level, `far` to answer it."""

    def __init__(self, path, level=4):
        address = b"\x01\x00" + path  # sockaddr_un
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(1)
        self.near = socket.socket(socket.AF_UNIX)
        self.near.connect(address)
        self.far = listener.accept()[0]
        self.near.setblocking(False)
        self.far.setblocking(False)
        self.far.write(CONNACK_5 if level == 5 else CONNACK)
        self._properties = b"\x00" if level == 5 else b""
        self._answer = bytearray(4)
        self._sent = bytearray(4096)

    def answer(self, first, packet_id):
        """Write PUBACK, PUBREC, PUBREL or PUBCOMP to the client."""
        answer = self._answer
        answer[0] = first
        answer[1] = 2
        answer[2] = packet_id >> 8
        answer[3] = packet_id & 255
        self.far.write(answer)

    def give(self, qos):
        """Write `count` messages to the client."""
        for k in range(count):
            packet_id = bytes([1, k]) if qos else b""
            body = bytes([0, len(TOPIC)]) + TOPIC + packet_id + self._properties + PAYLOAD
            self.far.write(bytes([0x30 | qos << 1, len(body)]) + body)

    def release(self):
        """Write PUBREL for each of them."""
        for k in range(count):
            self.answer(0x62, 0x100 + k)

    def drain(self):
        """Forget what the client wrote."""
        while self.far.readinto(self._sent):
            pass


class Acknowledging:
    """A stream to `pair` on which each PUBLISH at QoS 1 is acknowledged as it is written."""

    def __init__(self, pair):
        self._pair = pair
        self._write = pair.near.write
        self.readinto = pair.near.readinto
        self.close = pair.near.close
        self._id_at = 4 + len(TOPIC)

    def write(self, buf, off, n):
        # A larger frame would come from the heap, and be most of what is counted.
        n = self._write(buf, off, n)
        if buf[off] == 0x32:
            self._answer(buf, off + self._id_at)
        return n

    def _answer(self, buf, at):
        self._pair.answer(0x40, buf[at] << 8 | buf[at + 1])


def nothing(client, pair, qos):
    pass


def idle(client, pair, qos):
    for _ in range(count):
        client.poll()


def publish(client, pair, qos):
    for _ in range(count):
        packet_id = client.publish(TOPIC, PAYLOAD, False, qos)
        if qos:
            pair.answer(0x40 if qos == 1 else 0x50, packet_id)
            client.poll()
        if qos == 2:
            pair.answer(0x70, packet_id)
            client.poll()


def publish_and_wait(client, pair, qos):
    for _ in range(count):
        client.publish(TOPIC, PAYLOAD, False, qos)


def receive(client, pair, qos):
    client.poll()


def receive_singly(client, pair, qos):
    for _ in range(count):
        client.check_msg()


def measure(name, work, client, pair, qos=0):
    math.erf(0)
    work(client, pair, qos)
    math.erf(0)
    pair.drain()
    print(name)


def measure_all(client, pair):
    measure("nothing", nothing, client, pair)
    measure("idle poll", idle, client, pair)
    for qos in (0, 1, 2):
        measure("publish QoS %d" % qos, publish, client, pair, qos)
    for qos in (0, 1, 2):
        pair.give(qos)
        measure("receive QoS %d" % qos, receive, client, pair)
    pair.release()
    measure("release QoS 2", receive, client, pair)


def measure_level(level):
    pair = Pair(b"level %d" % level, level)
    client = MQTTClient("bench", "", level=level, max_awaiting_rel=2 * count)
    client.on_message = ignore
    client.connect(stream=pair.near)
    pair.drain()
    for _is_warm in (False, True):
        gc.collect()
        measure_at_level(client, pair, level)
    if client.inflight:
        raise RuntimeError("not everything was acknowledged at level %d" % level)


def measure_at_level(client, pair, level):
    for qos in (0, 1, 2):
        measure("level %d: publish QoS %d" % (level, qos), publish, client, pair, qos)
    for qos in (0, 1, 2):
        pair.give(qos)
        measure("level %d: receive QoS %d" % (level, qos), receive, client, pair)
    pair.release()
    client.poll()
    pair.drain()


def measure_journal(client, pair):
    for qos in (1, 2):
        measure("journal: publish QoS %d" % qos, publish, client, pair, qos)


def measure_simple(client, pair):
    measure("simple: publish QoS 0", publish_and_wait, client, pair)
    measure("simple: publish QoS 1", publish_and_wait, client, pair, 1)
    pair.give(0)
    measure("simple: receive QoS 0", receive_singly, client, pair)


def run(coroutine):
    return asyncio.get_event_loop().run_until_complete(coroutine)


async def take(messages):
    left = count
    async for _message in messages:
        left -= 1
        if not left:
            break


def receive_in_loop(client, pair, qos):
    run(take(client.messages()))


def publish_in_loop(client, pair, qos):
    async def publish_all():
        for _ in range(count):
            await client.publish(TOPIC, PAYLOAD, False, qos)

    run(publish_all())


def measure_aio(client, pair):
    measure("aio: publish QoS 0", publish_in_loop, client, pair)
    for qos in (0, 1):
        pair.give(qos)
        measure("aio: receive QoS %d" % qos, receive_in_loop, client, pair)


def ignore(*_):
    pass


random.seed(31)  # the first packet id
for name, module in sys.modules.items():
    if name.startswith("umqtt31") and hasattr(module, "time"):
        module.time = Clock()
pairs = [Pair(b"one"), Pair(b"two"), Pair(b"three"), Pair(b"four")]
client = MQTTClient("bench", "", max_awaiting_rel=2 * count)
client.on_message = ignore
journal = Journal(FileBlockDevice("journal", 16))
journalled = MQTTClient("bench", "", store=journal, max_awaiting_rel=16)
simply = SimpleClient("bench", "", keepalive=60)
simply.set_callback(ignore)
tasks = AioClient("bench", "")
client.connect(stream=pairs[0].near)
journalled.connect(stream=pairs[1].near)
simply.connect(stream=Acknowledging(pairs[2]))
run(tasks.connect(stream=lambda: pairs[3].near))
tasks._opener = None  # asyncio can wait for this one
# Of asyncio's clock, which C reads, nothing comes due.
sys.modules["umqtt31.aio"].sleep_ms = lambda ms: asyncio.sleep_ms(ms and 1000000)
for pair in pairs:
    pair.drain()
for _is_warm in (False, True):
    gc.collect()
    measure_all(client, pairs[0])
    measure_journal(journalled, pairs[1])
    measure_simple(simply, pairs[2])
    measure_aio(tasks, pairs[3])
if client.inflight or journalled.inflight or simply.inflight:
    raise RuntimeError("not everything was acknowledged")
# After all else: what these make takes places in the heap and changes what others cost.
for level in (4, 5):
    measure_level(level)
