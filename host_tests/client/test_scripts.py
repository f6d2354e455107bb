"""The scripts of `dialogues/`, each at its levels, and that the player notices a wrong one."""

import contextlib

import pytest

from host_tests.client.runner import FOLDER
from host_tests.client.scripts import Script, read_scripts

DIALOGUES = FOLDER / "dialogues"
SCRIPTS = [
    pytest.param(
        script, level, id=f"{path.relative_to(DIALOGUES).with_suffix('')}-{script.name}-{level}"
    )
    for path in sorted(DIALOGUES.rglob("*.txt"))
    for script in read_scripts(path)
    for level in script.levels
]


@pytest.mark.parametrize(("script", "level"), SCRIPTS, indirect=["level"])
def test_script(script, level):
    script.play(level)


# What happens: each row below says it with one mistake.
RIGHT = """
with keepalive=0 retry_interval=10
publish "a" q2 -> 1 / (0 s) / C: PUBLISH 1 "a" q2
(9.999 s) / C: nothing / (0.001 s) / C: PUBLISH 1 "a" q2 dup
B: PUBREC 1, PUBLISH 7 "b" / C: PUBREL 1, PUBACK 7 / A: "b" q1
lost / connect / C: PUBREL 1 dup@3 / B: PUBCOMP 1 / inflight 0
publish "c" q1, q1 x2 / C: PUBLISH 2 "c", PUBLISH 3..4
B: SUBACK 5 1 to SUBSCRIBE 5 a:1 / subscribe a 1 -> 1
on_message "d": publish "e" q0 | "f": raise KeyError
feed PUBLISH "d", PUBLISH "f" / poll -> KeyError / C: PUBLISH "e" / A: "d", "f"
publish qos=3 -> ValueError / lost / publish q0 -> CLOSED
with connect_timeout=2 offline
stream / open -> TIMEOUT in 2 s / C: CONNECT
stream / B: CONNACK 9 to CONNECT / open -> MQTTError 9
with store offline / room 1 / unreachable 1 / open -> NETWORK ECONNREFUSED / connections 1
[publish "g"] x1 / publish -> FULL / connect / C: PUBLISH 1 "g"
write_most 4 / publish q0 / C: PUBLISH :4
with robust / feed end / socket / B: CONNACK 0 0@3 1@4 to CONNECT / check_msg / told lost
"""


def play(text, level=3):
    script = Script("script %d" % level)
    script.lines = list(enumerate(text.strip().split("\n"), 1))
    script.play(level)


@pytest.mark.parametrize("level", [3, 4], indirect=True)
def test_right_script_plays(level):
    play(RIGHT, level)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('C: PUBLISH 1 "a" q2 dup', 'C: PUBLISH 1 "a" q2'),
        ('C: PUBLISH 1 "a" q2 dup', 'C: PUBLISH 1 "a" dup'),
        ('C: PUBLISH 1 "a" q2 dup', 'C: PUBLISH 1 "A" q2 dup'),
        ('C: PUBLISH 1 "a" q2 dup', "C: nothing"), ("(9.999 s)", "(9.998 s)"),
        ("(9.999 s)", "(10 s)"), ("C: PUBREL 1, PUBACK 7", "C: PUBREL 1"),
        ("C: PUBREL 1, PUBACK 7", "C: PUBACK 7, PUBREL 1"),
        ("C: PUBREL 1, PUBACK 7", "C: PUBREL 1, PUBACK 7, PINGREQ"),
        ("C: PUBREL 1, PUBACK 7 / ", ""), ("PUBREL 1 dup@3", "PUBREL 1"),
        ("PUBREL 1 dup@3", "PUBREL 1 dup@4"), ('A: "b" q1', 'A: "b"'), ('A: "b" q1', "A: nothing"),
        ("inflight 0", "inflight 1"), ("B: PUBCOMP 1 / ", ""), ("C: PUBLISH 2", "C: PUBLISH 3"),
        ("PUBLISH 3..4", "PUBLISH 3..5"), ("-> 1", "-> 2"), ("a:1", "a:2"),
        ("subscribe a 1 -> 1", "subscribe a 1 -> 0"), ("subscribe a 1 -> 1", "poll"),
        ("ValueError", "TypeError"), ("-> CLOSED", "-> NETWORK"), ("-> CLOSED", ""),
        ("-> CLOSED", '-> CLOSED "no such words"'), ("qos=3", "qos=1"),
        ('"d": publish "e"', '"d": publish "g"'), ('"d": publish', '"g": publish'),
        ('"f": raise', '"g": raise'), ("-> KeyError", "-> IndexError"), ('A: "d", "f"', 'A: "d"'),
        ("in 2 s", "in 1 s"), ("in 2 s", "in 3 s"), ("MQTTError 9", "MQTTError 8"),
        ("ECONNREFUSED", "ETIMEDOUT"), ("connections 1", "connections 2"), ("room 1", "room 2"),
        ('"g"] x1', '"g"] x2'), (":4", ":3"), ("told lost", "told nothing"),
        (" / connect / ", " / "), ("keepalive=0 ", "keepalive=5 "), ("with ", "with more "),
        ("lost / connect", "lots / connect"),
    ],
)  # fmt: skip
def test_wrong_script_fails(right, wrong):
    assert right in RIGHT
    with pytest.raises(AssertionError):
        play(RIGHT.replace(right, wrong, 1))


RIGHT_AIO = """
with aio streams=2 / begin flush / ends / feed PUBLISH 7 "a" / A: "a" q1 / C: nothing / done
leave / C: PUBACK 7 / feed end / stats.reconnects 1 / begin subscribe t 1 / waits
C: SUBSCRIBE 1 t:1 / feed SUBACK 1 1 / ends -> 1 / begin reconnected / cancel
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("aio", "aio"), ("flush / ends", "flush / waits"), ("waits", "ends"), ("-> 1", "-> 2"),
        ('A: "a"', 'A: "b"'), ("C: nothing", "C: PUBACK 7"), ("done", "poll"), ("C: PUBACK 7", ""),
        ("PUBACK 7", "PUBACK 8"), ("streams=2", "streams=1"), ("reconnects 1", "reconnects 2"),
    ],
)  # fmt: skip
def test_script_of_asyncio_plays_when_it_is_right_alone(right, wrong):
    assert right in RIGHT_AIO
    with contextlib.nullcontext() if right == wrong else pytest.raises(AssertionError):
        play(RIGHT_AIO.replace(right, wrong, 1))


def test_step_that_fails_is_named_with_its_line():
    with pytest.raises(AssertionError, match=r"script, line 2: C: PUBACK 1"):
        play("publish\nC: PUBACK 1")


@pytest.mark.parametrize(
    ("packets", "is_right"),
    [
        ("PUBLISH 1..2, PUBACK 7", True),
        ("PUBACK 7, PUBLISH 1..2", True),
        ("PUBLISH 2, PUBLISH 1, PUBACK 7", False),
        ("PUBLISH 1..2", False),
        ("PUBLISH 1..2, PUBACK 7 x2", False),
    ],
)
def test_mixed_takes_kinds_in_any_order_and_leaves_nothing_out(packets, is_right):
    with contextlib.nullcontext() if is_right else pytest.raises(AssertionError):
        play("publish / B: PUBLISH 7 / publish / C: %s mixed" % packets)


def test_two_tables_are_played_for_all_pairs():
    tables = 'for qos: 0, 1\nfor text: "a", "q{qos}"\npublish {text} q{qos}\n'
    play(tables + "C: PUBLISH {qos} {text}")
    with pytest.raises(AssertionError):
        play(tables + 'C: PUBLISH {qos} "a"')
