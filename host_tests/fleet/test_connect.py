"""The quick way to read CONNECT, SUBSCRIBE and their answers gives what the general one does."""

import random

import pytest

from host_tests.standin import packets
from tools.fleet.decode import connect

_NAMES = [b"", b"dev-1", b'quote"back\\slash', "Ünï\u2028".encode(), b"\x00\x1f", b"\xff\xfe"]


def _body(packet):
    return packet[packets.body_start(packet) :]


def _bodies():
    for level in (3, 4, 5):
        none = packets.no_properties(level)
        for name in _NAMES:
            for clean in (True, False):
                for will in ((), (b"will/topic", b"offline")):
                    flags = packets.CLEAN * clean | (0x28 | packets.WILL) * bool(will)
                    packet = packets.connect(name, flags, 300, *will, level=level)
                    yield 1, _body(packet), level
            yield 8, _body(packets.subscribe(7, (name, 2), properties=none)), level
        yield 2, _body(packets.connack(0, level > 3, none)), level
        yield 9, _body(packets.suback(7, 1, properties=none)), level
    yield 8, b"\0\1" + b"\0\1a\0" + b"\0\3b/#\2", 4
    yield 9, b"\0\1\0\2\x80", 4


_BODIES = list(_bodies())


@pytest.mark.parametrize("seed", range(4))
def test_quick_way_when_bytes_are_whole_cut_or_changed_equals_the_general_one(seed):
    rng = random.Random(seed)
    for kind, body, level in _BODIES:
        variants = [body, body + b"\0\4user", *(body[:size] for size in range(len(body)))]
        for _ in range(20):
            changed = bytearray(body)
            if changed:
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            variants.append(bytes(changed))
        for one in variants:
            fields, error = connect.read(kind, one, level)
            wanted = connect.to_json(fields) if fields else None
            if kind == 1:
                client_id, found_level, *found = connect.read_connect(one)
                assert client_id == fields.get("client_id")
                assert found_level == fields.get("level", 0)
                wanted = connect.to_json(fields)
            else:
                found = connect.read_text(kind, one, level)
            assert tuple(found) == (wanted, error), (kind, one, level)
