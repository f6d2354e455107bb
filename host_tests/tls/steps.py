"""What a program does with TLS, one function each; runs under CPython and MicroPython.

In an `ssl`, ["FILE"] stands for the contents of a file, as bytes.
"""

import asyncio
import select
import sys
import time

from host_tests.choice import modules_with
from host_tests.standin import packets
from host_tests.standin.dice import Thrown

from umqtt31 import NETWORK, MQTTClient, MQTTError  # isort: skip - with the stand-ins for a computer
import socket

import tls
from umqtt31.aio import MQTTClient as AioClient
from umqtt31.simple import MQTTClient as SimpleClient
from umqtt31.tls import context_of, text_of, wrap

_MOST_MS = 20000
_CONNECT = packets.connect(b"tls")


def loaded(ssl):
    """The option `ssl` with the contents of files in it; "unchecked" is a context of the program's
    own, which checks nothing."""
    if ssl == "unchecked":
        ssl = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
        ssl.verify_mode = tls.CERT_NONE
    if isinstance(ssl, dict):
        for name in ssl:
            if isinstance(ssl[name], list):
                with open(ssl[name][0], "rb") as file:
                    ssl[name] = file.read()
    return ssl


def open_stream(port, server, context):
    """-> (a TLS stream over a socket that begins to connect, the socket)."""
    sock = socket.socket()
    sock.setblocking(False)
    try:
        sock.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
    except OSError as error:
        if error.errno != 115:
            raise
    return wrap(sock, context, server), sock


def until(step):
    """Call `step` until it returns something -> what it returned."""
    for _ in range(_MOST_MS):
        found = step()
        if found is not None:
            return found
        time.sleep_ms(1)
    raise RuntimeError("it takes too long")


def shake(stream):
    """Send CONNECT and read CONNACK -> what came."""
    answer = bytearray(4)
    if until(lambda: stream.write(_CONNECT, 0, len(_CONNECT))) != len(_CONNECT):
        raise RuntimeError("CONNECT went out in part")
    n = until(lambda: stream.readinto(answer, 4))
    return bytes(answer[:n])


def order(control):
    """Let the relay do what comes next."""
    sock = socket.socket()
    sock.connect(socket.getaddrinfo("127.0.0.1", control)[0][-1])
    answer = bytearray(1)
    until(lambda: sock.readinto(answer, 1))  # it closes when it has obeyed
    sock.close()


def context_error(ssl):
    """-> "" or the class and text of what context_of() raises."""
    try:
        context_of(loaded(ssl))
    except (TypeError, ValueError) as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


def outcomes(cases):
    """Handshake and CONNECT for each [port, server, ssl] -> b"CONNACK" or a text each."""
    return [_outcome(*case) for case in cases]


def _outcome(port, server, ssl):
    context = context_of(loaded(ssl))
    stream, _sock = open_stream(port, server, context)
    try:
        return shake(stream)
    except (OSError, ValueError) as error:
        return text_of(error, server)
    finally:
        stream.close()


def client_on(port, ssl, **options):
    client = MQTTClient(b"tls", "127.0.0.1", port, ssl=loaded(ssl), buffer_size=1024, **options)
    client.connect()
    return client


def refusals(cases):
    """For each [port, server, ssl] connect() and reconnect() -> [code, errno, text] of both.

    Anything but an MQTTError ends it.
    """
    with Thrown(modules_with("random")):
        return [_refusals(*case) for case in cases]


def _refusals(port, server, ssl):
    client = MQTTClient(b"tls", server, port, user="u", password="p", ssl=loaded(ssl))
    found = []
    try:
        client.connect()
    except MQTTError as error:
        found.append([error.code, error.errno, str(error)])
    until(lambda: client.reconnect() or client.last_error)
    error = client.last_error
    found.append([error.code, error.errno, str(error)])
    client.disconnect()
    return found


def locked(port, ssl):
    """Messages with a certificate of our own, the heap locked -> how many were received at each
    QoS, and what is left in flight."""
    from host_tests.client import locked_rounds

    return locked_rounds.play(
        client_on(port, ssl, max_inflight=10, queue_bytes=4096, max_awaiting_rel=20)
    )


def starved(port, ca, kilobytes):
    """With next to no memory left to malloc, from which Mbed TLS takes it on the unix port as on
    ESP32: what malloc can give is taken but so many pieces of 1 KB, most of them side by side
    -> what the handshake ended in."""
    import struct

    import ffi

    libc = ffi.open("libc.so.6")
    malloc, free = libc.func("p", "malloc", "L"), libc.func("v", "free", "p")
    context = context_of({"ca": ca})
    pieces = [malloc(1024) for _ in range(kilobytes)]
    malloc(1024)  # a barrier
    # RLIMIT_AS: no more from the system.
    if libc.func("i", "setrlimit", "iP")(9, struct.pack("LL", 1, 1)):
        raise OSError("setrlimit")
    size = 1 << 24
    while size >= 16:
        if not malloc(size):
            size >>= 1
    for piece in pieces:
        free(piece)
    try:
        return shake(open_stream(port, "localhost", context)[0])
    except (OSError, ValueError) as error:
        return text_of(error, "localhost")


def silence(port, ssl):
    """Nothing answers -> (code, seconds waited)."""
    from host_tests.client import network

    return network.connect_without_answer(port, ssl=loaded(ssl))


def messages(port, ssl, length):
    """Publish one message of each QoS to ourselves -> what came, by QoS."""
    client = client_on(port, ssl)
    found = []
    client.set_callback(lambda topic, msg: found.append((topic, msg)))
    client.subscribe("tls/#", 2)
    for qos in range(3):
        client.publish("tls/%d" % qos, b"%d" % qos * length, qos=qos)

    def step():
        client.poll(10)
        return True if len(found) == 3 and not client.inflight else None

    until(step)
    client.disconnect()
    return sorted(found)


def cut(port, control, ssl):
    """The network ends a connection that is in use -> the code of the error."""
    client = client_on(port, ssl)
    order(control)
    try:
        until(lambda: client.poll(10) or None)
    except MQTTError as error:
        return error.code


async def _tasks(port, ssl, length):
    found = []
    options = {"ssl": loaded(ssl), "buffer_size": 1024, "max_inflight": 2, "max_mqueue_len": 0}
    async with AioClient(b"aio", "127.0.0.1", port, **options) as client:
        await client.subscribe("aio/#", 2)

        async def publish():
            # More than a window, of more than fits in one record's rest.
            for k in range(12):
                await client.publish("aio/%d" % k, b"%x" % k * length, qos=k % 3)

        publishing = asyncio.create_task(publish())
        async for message in client.messages():
            found.append((message.topic, message.payload))
            if len(found) == 12:
                message.done()
                break
        await publishing
        await client.flush()
    return sorted(found)


def tasks(port, ssl, length):
    """As `messages()`, by tasks: twelve of them -> what came."""
    return asyncio.run(_tasks(port, ssl, length))


def waiting(port, ssl, count):
    """A program of umqtt31.simple's that waits with select for input -> the messages it got."""
    found = []
    client = SimpleClient(b"waits", "127.0.0.1", port, keepalive=60, ssl=loaded(ssl))
    client.set_callback(lambda topic, msg: found.append(msg))
    client.connect()
    poller = select.poll()
    poller.register(client.sock, select.POLLIN)
    # CPython's TLS does not tell select what it holds.
    pending = getattr(client.sock, "pending", int)
    idle = 0
    while len(found) < count and idle < 20:
        if pending() or poller.poll(100):
            client.check_msg()
        else:
            idle += 1
    client.disconnect()
    return found


def text_of_number(number, is_lost=False):
    """What is said of the OSError with this number behind the handshake; or, if `is_lost`, of a
    connection in use whose stream raises it."""
    error = OSError(number)
    if is_lost:
        return str(MQTTError(NETWORK, error, (("localhost", 8883, True), 4, False)))
    return text_of(error, None)


def closes_after(port, server, ssl):
    """After a handshake that failed: -> (was it open before close(), is it open after)."""
    stream, sock = open_stream(port, server, context_of(loaded(ssl)))
    try:
        shake(stream)
    except (OSError, ValueError):
        pass
    before = _is_open(stream, sock)
    stream.close()
    return before, _is_open(stream, sock)


def _is_open(stream, sock):
    if sys.implementation.name == "cpython":
        return stream.raw.fileno() >= 0
    try:
        sock.write(b"x")
    except OSError as error:
        return error.errno != 9  # EBADF
    return True


def flood(port, control, ssl, count, length):
    """Publish to ourselves while nothing gets through, then while it does
    -> the numbers of the messages that came back whole and in their place."""
    stream, sock = open_stream(port, "localhost", context_of(loaded(ssl)))
    sock.setsockopt(1, 7, 4096)  # SO_SNDBUF, so that room ends soon
    shake(stream)
    subscribe = packets.subscribe(1, (b"flood", 0))
    until(lambda: stream.write(subscribe, 0, len(subscribe)))
    answer = bytearray(5)
    until(lambda: stream.readinto(answer, 5))
    order(control)
    messages = [packets.publish(b"flood", bytes([k]) * length) for k in range(count)]
    received = bytearray(count * len(messages[0]))
    buf = bytearray(4096)
    pos = waits = 0

    def read():
        n = stream.readinto(buf, len(buf))
        received[pos : pos + (n or 0)] = buf[: n or 0]
        return n

    for packet in messages:
        done = 0
        while done < len(packet):
            n = stream.write(packet, done, len(packet) - done)
            if n is not None:
                done += n
                continue
            waits += 1
            if waits == 20:
                order(control)
            pos += read() or 0
            time.sleep_ms(1)
    if waits < 20:
        raise RuntimeError("there was always room")
    while pos < len(received):
        pos += until(read) or len(received)
    stream.close()
    return [k for k in range(count) if received.find(messages[k]) == k * len(messages[0])]
