"""Command messages: an id if the sender wants an answer, a word, an argument."""

import pytest

import commands


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"sample", ("", "sample", "")),
        (b"interval 250", ("", "interval", "250")),
        (b"#17 reset", ("17", "reset", "")),
        (b" #a-b  interval  9\n", ("a-b", "interval", "9")),
        (b"#1234567890123456 sample", ("1234567890123456", "sample", "")),
        (b"#12345678901234567 sample", ("", "", "")),
        (b"# sample", ("", "", "")),
        (b"#9", ("9", "", "")),
        (b"#9 interval 5 6", ("9", "", "")),
        (b"", ("", "", "")),
        (b"\xff\x00", ("", "", "")),
    ],
)
def test_parse_takes_a_command_apart(text, found):
    assert commands.parse(text) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [("250", 250), ("0", 0), ("", None), ("-5", None), ("1.5", None), ("9" * 10, None),
     ("²", None), ("1_0", None)],
)  # fmt: skip
def test_number_is_digits_only(text, value):
    assert commands.number(text) == value
