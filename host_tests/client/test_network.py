"""Real sockets and a broker that refuses, is silent, lies or goes away."""

import functools

import pytest

from host_tests.brokers import free_port
from host_tests.client import network
from host_tests.client.listener import CLOSE, HEARS, HOLD, RESET, Broker
from host_tests.client.runner import FOLDER, call_on
from host_tests.standin import packets as wire
from tools.boards.compile import compile_file, compile_library
from tools.project import ROOT
from umqtt31 import CLOSED, NETWORK, PROTOCOL, TIMEOUT


@pytest.fixture
def client(desk):
    """client(NAME, PORT): a function of network.py."""
    return functools.partial(desk, network)


def test_unreachable_broker_is_a_network_error(client):
    assert client("connect_code", free_port()) == NETWORK


def test_unknown_server_name_is_a_network_error(client):
    assert client("connect_to_unknown_name", 1883) == NETWORK


def test_broker_that_never_answers_ends_in_a_time_out(client):
    """31-3.1-CONNACK: connect_timeout is 3 s here."""
    with Broker((HOLD,)) as broker:
        assert client("connect_without_answer", broker.port) == (TIMEOUT, 3)


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        ((b"HTTP/1.1 400 Bad Request\r\n" * 4, HOLD), {PROTOCOL}),
        ((b"\x00\x00", HOLD), {PROTOCOL}),
        ((b"\x20\x02\x00", CLOSE), {CLOSED}),
        ((CLOSE,), {CLOSED}),
        ((RESET,), {NETWORK, CLOSED}),
    ],
    ids=["http", "zero", "half", "closes", "resets"],
)
def test_garbage_or_nothing_in_place_of_connack_is_named(client, script, codes):
    """31-3.2-CONNACK."""
    with Broker(script) as broker:
        assert client("connect_code", broker.port) in codes


@pytest.mark.parametrize(
    ("script", "codes", "payloads"),
    [
        ((wire.publish(b"t", b"whole"), b"\x32\x20\x00\x01t", CLOSE), {CLOSED}, [b"whole"]),
        ((HEARS, wire.publish(b"t", b"whole") + b"\x30\xff\xff", RESET), {NETWORK, CLOSED}, None),
        ((b"\x30\xff\xff\xff\xff\x01", HOLD), {PROTOCOL}, []),
        ((bytes(range(256)), HOLD), {PROTOCOL}, []),
    ],
    ids=["closes mid-packet", "resets mid-packet", "five length bytes", "garbage"],
)
def test_broker_that_breaks_off_or_lies_is_named_and_nothing_is_lost(
    client, script, codes, payloads
):
    """31-2.1-LEN: five length bytes, as one of the lies."""
    with Broker((wire.connack(), *script)) as broker:
        code, received, _ = client("receive_until_error", broker.port)
    assert code in codes
    assert payloads is None or received == payloads


def test_stream_cut_into_odd_segments_arrives_whole(client):
    messages = [b"%d " % k * (k % 60) for k in range(300)]
    data = b"".join(
        wire.publish(b"t", payload, k % 2, k + 1) for k, payload in enumerate(messages)
    )
    pieces = [data[i : i + 997] for i in range(0, len(data), 997)]
    with Broker((wire.connack(), *pieces, HOLD)) as broker:
        assert client("receive_slowly", broker.port) == (0, messages, [])
    acks = b"".join(wire.puback(k + 1) for k in range(300) if k % 2)
    assert broker.received[0] == acks + wire.disconnect()


def test_build_without_socket_works_over_a_stream(micropython, tmp_path):
    """`import umqtt31` and connect(stream=…) need no socket; connect() says what is missing."""
    (tmp_path / "socket.py").write_text('raise ImportError("no module named socket")\n')
    program = (
        "from host_tests.standin import packets as wire\n"
        "from host_tests.standin.stream import ScriptedStream\n"
        "from umqtt31 import MQTTClient, MQTTError\n"
        "client = MQTTClient('dev', 'broker')\n"
        "stream = ScriptedStream()\n"
        "stream.answer(wire.connect(), wire.connack())\n"
        "client.connect(stream=stream)\n"
        "print(client.is_connected)\n"
        "try:\n"
        "    client.connect()\n"
        "except MQTTError as error:\n"
        "    print(error.code, 'no sockets' in str(error))\n"
    )
    done = micropython.run(program, micropypath=[tmp_path, ROOT, ROOT / "lib"])
    assert done.stdout == f"True\n{NETWORK} True\n", done.stdout + done.stderr


def test_message_of_a_megabyte_passes_through_a_heap_of_64_kilobytes(micropython, tmp_path):
    """The large message is drained, acknowledged and reported; the next one arrives."""
    compile_library(tmp_path / "umqtt31", "armv6m", is_plain=True)
    compile_file(FOLDER / "network.py", tmp_path / "host_tests/client/network.mpy", "armv6m")
    big = wire.publish(b"big", bytes(1 << 20), 1, 5)
    with Broker((wire.connack(), big, wire.publish(b"t", b"after", 1, 6), HOLD)) as broker:
        # Twice as much where a word has 64 bits: the same number of objects.
        heap_bytes, args = micropython.bits * 2048, [broker.port]
        found = call_on(micropython, network, "receive_a_megabyte", args, [tmp_path], heap_bytes)
    assert found == (0, [b"after"], [(3, 1 << 20)])
    assert broker.received[0] == wire.puback(5) + wire.puback(6) + wire.disconnect()
