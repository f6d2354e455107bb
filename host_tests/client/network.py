"""What a client does on a real socket with a broker that misbehaves, one function each.

Called by `test_network.py` under CPython and MicroPython; each returns numbers and bytes.
"""

import time

from umqtt31 import MQTTClient, MQTTError


def new_client(port, server="127.0.0.1", **options):
    return MQTTClient(b"dev", server, port, **options)


def code_of_connect(client):
    """-> 0 or the code; after an error the client must be closed."""
    try:
        client.connect()
    except MQTTError as error:
        return 1000 if client.is_connected else error.code
    return 0


def connect_code(port):
    """One connect()."""
    return code_of_connect(new_client(port))


def connect_without_answer(port, **options):
    """Nothing comes, so the clock may be turned: -> (code, seconds waited)."""
    from host_tests.choice import turn
    from host_tests.standin.clock import Clock

    clock = Clock()
    turn(clock)
    try:
        code = code_of_connect(new_client(port, connect_timeout=3, **options))
    finally:
        turn(time)
    return code, clock.now_ms // 1000


def connect_to_unknown_name(port):
    """A name that cannot exist (RFC 2606)."""
    return code_of_connect(new_client(port, "nowhere.invalid"))


def receive(port, count, on_connect=lambda client: None, **options):
    """Poll until so many messages came, 30 s at most -> (code of what ended it or 0, payloads,
    what on_oversize was told)."""
    payloads, told = [], []
    client = new_client(port, **options)
    client.on_message = lambda message: payloads.append(message.payload)
    client.on_oversize = lambda *lengths: told.append(lengths)
    client.connect()
    on_connect(client)
    start = time.ticks_ms()
    try:
        while len(payloads) < count and time.ticks_diff(time.ticks_ms(), start) < 30000:
            client.poll(100)
    except MQTTError as error:
        assert not client.is_connected and client.stats.sent == client.inflight
        return error.code, payloads, told
    assert client.stats.oversize == len(told)
    client.disconnect()
    return 0, payloads, told


def receive_until_error(port):
    """What was accepted stays in flight."""
    return receive(port, 99, lambda client: client.publish(b"t", b"kept", qos=1))


def receive_a_megabyte(port):
    """And one message behind it."""
    return receive(port, 1, buffer_size=256)


def receive_slowly(port):
    """Many messages cut into odd segments."""
    return receive(port, 300)
