"""The scripts of `traces/`: what the audit says of captures, and nothing else."""

import contextlib
from pathlib import Path

import pytest

from host_tests.client.reading import Text, read
from host_tests.fleet.traces import Trace

SCRIPTS = [
    pytest.param(script, id=f"{path.stem}-{script.name}")
    for path in sorted((Path(__file__).parent / "traces").glob("*.txt"))
    for script in read(path)
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_trace(script):
    script.play_with(Trace)


RIGHT = """
pub connects / sub connects kept / sub subscribes #:1 / pub >> "1..3" >> sub
pub < "missing" missing / pub < PINGRESP / pub >> "4" / pub >> 5 "5" >> sub
(10 s) / sub > PINGREQ / audit: lost "4" proved, finding bytes_missing, nothing
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""), (", finding bytes_missing", ""), ('lost "4" proved, ', ""), ("proved", "likely"),
        ('lost "4"', 'lost "3"'), (", nothing", ", finding clock_set"), (" missing /", " /"),
        ("(10 s)", "(1 s)"), ('"4" /', '"4" >> sub /'), ("pub >> 5", "pub << 5"), ("kept", "held"),
    ],
)  # fmt: skip
def test_trace_plays_when_it_is_right_alone(right, wrong):
    assert right in RIGHT
    script = Text("script")
    script.lines = list(enumerate(RIGHT.replace(right, wrong, 1).strip().split("\n"), 1))
    with contextlib.nullcontext() if right == wrong else pytest.raises(AssertionError):
        script.play_with(Trace)
