"""Hostile bytes from a broker: only MQTTError comes out, and all else stays as it is.

`host_tests/fuzz/target.py` says what one input is and what is looked at.  `host_tests fuzz`
goes on from here, guided by coverage, for five minutes.
"""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umqtt31
from host_tests.client.runner import FOLDER
from host_tests.fuzz.cli import cli
from host_tests.fuzz.inputs import generate
from host_tests.fuzz.target import Finding, check, first_finding
from host_tests.running import said_by
from tools.project import ROOT
from umqtt31 import Message, MQTTError

CORPUS = sorted((FOLDER / "corpus").iterdir())
GENERATED = 100_000
BATCHES = 8


def test_corpus_finds_nothing():
    assert len(CORPUS) >= 20
    assert first_finding(path.read_bytes() for path in CORPUS) is None


@pytest.mark.parametrize("batch", range(BATCHES))
def test_generated_inputs_find_nothing(batch):
    """100,000 in all, the same ones in every run."""
    dice = random.Random(f"hostile {batch}")
    assert first_finding(generate(dice) for _ in range(GENERATED // BATCHES)) is None


@settings(max_examples=500)
@given(st.integers(0, 255), st.integers(0, 63), st.binary(max_size=80))
def test_any_bytes_find_nothing(situation, size, data):
    check(bytes((situation, size)) + data)


def steps_of(data):
    """How many lines of the library run for one input."""
    steps = 0

    def trace(frame, event, argument):
        nonlocal steps
        if "umqtt31" not in frame.f_code.co_filename:
            return None
        steps += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        check(data)
    finally:
        sys.settrace(previous)
    return steps


def test_steps_are_bounded_by_the_length_of_the_input():
    """Two lives of a client, each with two connections, and at most so much per byte."""
    dice = random.Random("steps")
    for _ in range(300):
        data = generate(dice)
        assert steps_of(data) <= 12_000 + 250 * len(data), data.hex()


ON_BOARD = """\
import sys
from host_tests.fuzz.target import first_finding
with open(sys.argv[1]) as file:
    print(first_finding(map(bytes.fromhex, map(str.strip, file))))
"""


def test_hostile_inputs_find_nothing_on_micropython(micropython, tmp_path):
    """The corpus and some of the generated ones, where copying works another way; the pieces are
    single bytes."""
    dice = random.Random("on board")
    inputs = [path.read_bytes() for path in CORPUS] + [generate(dice) for _ in range(1500)]
    inputs = [data[:1] + bytes([data[1] & 0xF0]) + data[2:] for data in inputs]
    listing = tmp_path / "inputs.txt"
    listing.write_text("\n".join(map(bytes.hex, inputs)))
    done = micropython.run(
        ON_BOARD, args=[listing], micropypath=[ROOT, ROOT / "lib"], heap_bytes=512 * 1024
    )
    assert done.stdout == "None\n", done.stdout + done.stderr


def raising(*_):
    raise IndexError("planted")


def half_a_packet(client, now, real=umqtt31._load):
    is_there = real(client, now)
    if is_there and client._left > 1:
        client._left -= 1
    return is_there


def left_open(client, code):
    client.is_connected = False
    raise MQTTError(code)


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Message, "read", raising),
        (umqtt31, "_load", half_a_packet),
        (umqtt31, "_due_in", lambda client, now: 0),
        (umqtt31, "fail", left_open),
    ],
    ids=["another exception", "half a packet", "no end", "left open"],
)
def test_planted_faults_are_found(monkeypatch, owner, name, fault):
    monkeypatch.setattr(owner, name, fault)
    dice = random.Random("planted")
    with pytest.raises(Finding):
        for _ in range(200):
            check(generate(dice))


def test_replay_of_a_sound_input_says_so():
    assert said_by(cli, "replay", CORPUS[0]) == f"{CORPUS[0].name}: nothing wrong\n"


def test_replay_of_a_finding_names_it_in_one_line(monkeypatch):
    monkeypatch.setattr(Message, "read", raising)
    output = said_by(cli, "replay", FOLDER / "corpus" / "qos1", status=1)
    assert output == "qos1: raised IndexError('planted')\n"
