"""The demo's book-keeping finds what is lost, repeated and out of order, and no more."""

import struct

import pytest

from tools.demo.accounts import Account, balance, number_of


def envelope(boot, sequence, stream=0, count=1):
    head = struct.pack(">BBHIIIBB23s", 0x75, 2, 0x0100, boot, sequence, 9, stream, count, b"d")
    return head + bytes(5 * count + 4)


def account(accepted, arrived):
    (found,) = balance(
        [2], {(boot, 0): n for boot, n in accepted.items()}, [envelope(*one) for one in arrived]
    )
    return found


@pytest.mark.parametrize(
    ("accepted", "arrived", "expected"),
    [
        # accepted, received, lost, duplicated, disordered
        ({1: 3}, [(1, 1), (1, 2), (1, 3)], (3, 3, 0, 0, 0)),
        ({1: 3}, [(1, 1), (1, 3)], (3, 2, 1, 0, 0)),
        ({1: 3}, [(1, 1), (1, 2), (1, 2), (1, 3)], (3, 4, 0, 1, 0)),
        ({1: 3}, [(1, 2), (1, 1), (1, 3)], (3, 3, 0, 0, 1)),
        # A redelivery is a duplicate, and not out of order.
        ({1: 4}, [(1, 1), (1, 2), (1, 3), (1, 2), (1, 3), (1, 4)], (4, 6, 0, 2, 0)),
        # Killed before it could say so: what arrived was accepted, all before it too.
        ({1: 1}, [(1, 1), (1, 3)], (3, 2, 1, 0, 0)),
        # A new boot starts at 1 again.
        ({1: 2, 2: 2}, [(1, 1), (1, 2), (2, 1), (2, 2)], (4, 4, 0, 0, 0)),
        ({1: 2, 2: 1}, [(1, 1), (2, 1), (1, 2)], (3, 3, 0, 0, 1)),
        ({1: 2, 2: 1}, [(1, 1), (2, 1)], (3, 2, 1, 0, 0)),
        ({1: 1}, [], (1, 0, 1, 0, 0)),
    ],
)
def test_balance_of_one_stream_counts_each_fault_once(accepted, arrived, expected):
    found = account(accepted, arrived)
    assert (
        found.accepted, found.received, found.lost, found.duplicated, found.disordered
    ) == expected  # fmt: skip


def test_balance_keeps_streams_apart():
    envelopes = [envelope(1, 1, 0), envelope(1, 1, 1), envelope(1, 2, 1)]
    assert balance([1, 2], {(1, 0): 2, (1, 1): 2}, envelopes) == [
        Account(0, 1, 2, 1, 1, 0, 0),
        Account(1, 2, 2, 2, 0, 0, 0),
    ]


@pytest.mark.parametrize(
    "payload",
    [b"", b"online", envelope(1, 1)[:-1], envelope(1, 1) + b"\0", b"\x76" + envelope(1, 1)[1:]],
)
def test_number_of_something_else_is_refused(payload):
    with pytest.raises(ValueError, match="not a reading"):
        number_of(payload)
