"""Command messages: three words, and nothing else is one."""

import pytest

import commands


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"sample", commands.SAMPLE),
        (b"reset", commands.RESET),
        (b"interval 250", 250),
        (b"interval 86400000", 86400000),
    ],
)
def test_commands_that_are_known_are_understood(text, code):
    assert commands.parse(bytearray(text + b"left over"), len(text)) == code


@pytest.mark.parametrize(
    "text",
    [b"", b"s", b"samples", b"RESET", b"interval", b"interval ", b"interval 0", b"interval -5",
     b"interval 1 ", b"interval 1.5", b"interval 999999999", b"\xff\x00"],
)  # fmt: skip
def test_commands_that_are_unknown_are_none(text):
    assert commands.parse(bytearray(text.ljust(32, b"7")), len(text)) == commands.NONE
