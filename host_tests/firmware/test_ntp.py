"""NTP and names in the background, against servers of this test's own on the loopback."""

import select
import socket
import struct
from unittest.mock import Mock

import pytest

from asking import NTP, Names

NOW_S = 1_800_000_000


class Server:
    """A UDP server that the test steps by hand."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def question(self):
        """The next question, which is there already -> (bytes, who asked)."""
        assert select.select([self.socket], [], [], 5)[0], "nobody asked"
        return self.socket.recvfrom(512)

    def answer(self, asker, make):
        """What `asker` makes of the answer to its question: `make` gets that."""
        assert asker.work() is None
        question, who = self.question()
        self.socket.sendto(make(question), who)
        return heard(asker)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.socket.close()


@pytest.fixture
def ntp(server, clock):
    return NTP(f"127.0.0.1:{server.port}", lambda: None, clock)


def time_answer(question, seconds=NOW_S, fraction=0, stratum=2, mode=4, origin=None, leap=0):
    """What a server says to `question`, RFC 4330 section 4."""
    assert len(question) == 48
    assert question[0] & 7 == 3  # a client
    head = bytes([leap << 6 | 0x20 | mode, stratum]) + bytes(22)
    when = struct.pack(">II", (seconds + 2208988800) & 0xFFFFFFFF, fraction)
    return head + (origin or question[40:48]) + when + when


def heard(ntp):
    """What work() gives once the datagram is here."""
    assert select.select([ntp._socket], [], [], 5)[0]
    return ntp.work()


@pytest.mark.parametrize(
    ("seconds", "fraction", "expected"),
    [
        (NOW_S, 0, NOW_S),
        (NOW_S, 0x7FFFFFFF, NOW_S),
        (NOW_S, 0x80000000, NOW_S + 1),
        (2**32 - 2208988800 + 5, 0, 2**32 - 2208988800 + 5),  # the second era, from 2036
    ],
)
def test_ntp_gives_the_time_to_the_second(clock, server, ntp, seconds, fraction, expected):
    assert ntp.work() is ntp.work() is None  # nothing came yet, and nothing waits
    assert server.answer(ntp, lambda q: time_answer(q, seconds, fraction)) == expected
    assert not ntp.is_asking
    clock.sleep_ms(6 * 3600 * 1000 - 1)
    ntp.work()
    assert not ntp.is_asking
    clock.sleep_ms(1)
    ntp.work()
    assert ntp.is_asking


def test_ntp_without_answer_asks_again_with_growing_pauses(clock, ntp):
    asked = []
    for _ in range(60):
        was_asking = ntp.is_asking
        ntp.work()
        if ntp.is_asking and not was_asking:
            asked.append(clock.now_ms // 1000)
        clock.sleep_ms(1000)
    assert asked == [0, 5, 12, 23, 42]
    assert ntp.error == "no time from 127.0.0.1: no answer"


def test_ntp_of_a_computer_that_refuses_says_so_in_the_system_s_words(server, ntp):
    """MicroPython's errors hold a number alone, which str() explains."""
    server.socket.close()
    assert ntp.work() is heard(ntp) is None
    assert ntp.error.startswith("no time from 127.0.0.1: [Errno ")


@pytest.mark.parametrize("change", [{"origin": b"x" * 8}, {"mode": 3}])
def test_ntp_overhears_what_is_no_answer_to_its_question(clock, server, ntp, change):
    assert ntp.work() is None
    question, who = server.question()
    for changed, expected in ((change, None), ({}, NOW_S)):
        server.socket.sendto(time_answer(question, **changed), who)
        assert heard(ntp) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"stratum": 0},
        {"stratum": 16},
        {"leap": 3},
        {"seconds": -2208988800},  # a time stamp of 0
        {"seconds": 0},
        {"seconds": 1_700_000_000},  # a router that has not asked yet itself
    ],
)
def test_ntp_of_a_server_without_time_says_so_and_asks_again_soon(clock, server, ntp, change):
    assert server.answer(ntp, lambda q: time_answer(q, **change)) is None
    assert ntp.error == "no time from 127.0.0.1: the server does not know the time"
    clock.sleep_ms(2000)
    assert server.answer(ntp, time_answer) == NOW_S


@pytest.mark.parametrize("days", [1, 6, 7, 10, 12])
def test_ntp_asks_at_once_however_long_there_was_no_network(clock, server, ntp, days):
    """Ticks come round every 12 days: after 7 a node with TLS waited 5 more for the time."""
    for _ in range(days * 24):
        assert ntp.work(False) is None
        clock.sleep_ms(3_600_000)
    assert server.answer(ntp, time_answer) == NOW_S
    for _ in range(days * 24):
        ntp.work(False)
        clock.sleep_ms(3_600_000)
    assert server.answer(ntp, time_answer) == NOW_S


def dns_answer(question, *records, flags=0x8180):
    """RFC 1035 section 4: the question again, then the records."""
    head = question[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
    return head + question[12:] + b"".join(records)


def record(kind, data, name=b"\xc0\x0c"):
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


ALIAS = record(5, b"\x05other\x03org\x00")


@pytest.fixture
def names(clock):
    return Names(NAME, lambda: "127.0.0.1", clock)


@pytest.fixture
def dns(server, monkeypatch):
    monkeypatch.setattr("asking._DNS_PORT", server.port)
    return server


@pytest.mark.parametrize(("host", "before"), [("pool.example", []), ("pool.example.", [ALIAS])])
def test_ntp_looks_its_servers_name_up_without_waiting(clock, dns, host, before):
    ntp = NTP(f"{host}:{dns.port}", lambda: "127.0.0.1", clock)
    assert ntp.work() is None
    question, who = dns.question()
    assert question[2:] == b"\1\0\0\1\0\0\0\0\0\0\4pool\7example\0\0\1\0\1"
    name = b"\x05other\x03org\x00" if before else b"\xc0\x0c"
    dns.socket.sendto(dns_answer(question, *before, record(1, bytes([127, 0, 0, 1]), name)), who)
    assert heard(ntp) is None
    assert dns.answer(ntp, time_answer) == NOW_S


@pytest.mark.parametrize(
    "answer",
    [
        lambda q: dns_answer(q, flags=0x8183),
        lambda q: dns_answer(q, ALIAS),
        lambda q: dns_answer(q, ALIAS)[:30],
        lambda q: dns_answer(q, record(1, bytes(4)))[:-6],
    ],
)
def test_ntp_whose_name_is_not_known_says_so(clock, dns, answer):
    ntp = NTP("pool.example", lambda: "127.0.0.1", clock)
    assert dns.answer(ntp, answer) is None
    assert not ntp.is_asking
    assert ntp.error.startswith("no time from pool.example: ")


# --- the broker's name --------------------------------------------------------------

NAME = "broker.example"


def found(names, dns, address):
    """Let the name server say so."""
    answer = record(1, bytes(map(int, address.split("."))))
    assert dns.answer(names, lambda q: dns_answer(q, answer)) == address


def test_name_of_the_broker_is_looked_up_in_the_background_and_kept(clock, dns, names):
    assert not names.is_ready
    found(names, dns, "127.0.0.7")
    assert names.is_ready
    assert names.look_up(NAME, 1883)[-1] == ("127.0.0.7", 1883)
    clock.sleep_ms(300_000)
    found(names, dns, "127.0.0.8")  # it moved
    for _ in range(1000):
        clock.sleep_ms(1000)  # and the name server is away
        names.work()
    assert names.is_ready
    assert names.look_up(NAME, 1883)[-1] == ("127.0.0.8", 1883)


def test_name_without_answer_is_not_asked_from_the_port_and_told(clock, dns, names):
    for _ in range(5):
        names.work()
        clock.sleep_ms(1000)
    assert not names.is_ready
    assert names.error == "no address of broker.example: no answer"


@pytest.mark.parametrize(
    "answer", [lambda q: dns_answer(q, flags=0x8183), lambda q: q[:2] + b"\x80"]
)
def test_name_that_the_name_server_does_not_know_is_left_to_the_port(clock, dns, answer):
    """It has answered, so the port's look-up ends soon, too; and the port may know more."""
    names = Names("localhost", lambda: "127.0.0.1", clock)
    assert dns.answer(names, answer) is None
    assert names.is_ready
    assert names.look_up("localhost", 1883)[-1] == ("127.0.0.1", 1883)
    clock.sleep_ms(2000)
    found(names, dns, "127.0.0.7")


def test_name_server_that_is_not_known_yet_is_told(clock):
    names = Names(NAME, Mock(side_effect=OSError("no link")), clock)
    names.work()
    assert (names.is_ready, names.error) == (False, "no address of broker.example: no link")
