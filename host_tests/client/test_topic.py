"""Topic names and filters against a reference written the obvious way.  App. A."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from umqtt31 import topic

levels = st.sampled_from(["", "a", "b", "A", "aa", "é", " ", "$x"])
names = st.lists(levels, min_size=1, max_size=4).map("/".join)
patterns = st.builds(
    lambda parts, end: "/".join([*parts, *end]),
    st.lists(levels | st.just("+"), min_size=0, max_size=4),
    st.sampled_from([[], ["#"], ["a"], ["+"]]),
)


def reference(pattern, name):
    """Level by level, as Appendix A says it."""
    wanted, given_levels = pattern.split("/"), name.split("/")
    for i, level in enumerate(wanted):
        if level == "#":
            return True
        if i == len(given_levels):
            return False
        if level not in ("+", given_levels[i]):
            return False
    if len(wanted) == len(given_levels):
        return True
    return False


def parent_matches(pattern, name):
    """# stands for the parent level too."""
    return pattern.endswith("/#") and reference(pattern[:-2], name)


@given(patterns, names)
@example("finance/+", "finance")
@example("sport/#", "sport")
@example("#", "/")
@example("+/#", "a")
def test_matching_is_as_the_reference_says(pattern, name):
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC."""
    expected = reference(pattern, name) or parent_matches(pattern, name)
    data = name.encode()
    assert topic.matches(pattern.encode(), data) is expected
    # In the middle of a buffer, as a received PUBLISH has it.
    around = b"a/" + data + b"/b"
    assert topic.matches(pattern.encode(), around, 2, 2 + len(data)) is expected


def is_filter(text):
    parts = text.split("/")
    for i, part in enumerate(parts):
        if "#" in part and (part != "#" or i != len(parts) - 1):
            return False
        if "+" in part and part != "+":
            return False
    return True


def is_valid(data, wildcards):
    try:
        topic.check(data, wildcards)
        return True
    except ValueError:
        return False


@given(st.text(alphabet="ab/#+é \0", max_size=8) | st.text(max_size=20))
def test_validity_of_names_and_filters_is_as_the_reference_says(text):
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC, 31-3.3-WILD, 31-2.2-TOPIC."""
    data = text.encode("utf-8", "surrogatepass")
    sound = bool(text) and "\0" not in text
    assert is_valid(data, False) is (sound and "#" not in text and "+" not in text)
    assert is_valid(data, True) is (sound and is_filter(text))


@given(st.binary(min_size=1, max_size=12))
def test_bytes_that_are_not_utf8_are_refused(data):
    """31-2.2-TOPIC: lead bytes, their followers and the range, as RFC 3629 has them."""
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        # Overlong forms and numbers above U+10FFFF have the form of UTF-8.
        if error.reason != "invalid continuation byte" or data[error.start] not in b"\xe0\xf0\xf4":
            assert not is_valid(data, True), data


@pytest.mark.parametrize(
    ("text", "wildcards", "valid"),
    [
        ("x" * 32767, False, True),
        ("x" * 32768, False, False),
        ("é" * 32767, False, True),
        ("é" * 32768, True, False),
        ("€" * 21845, False, True),
        ("x" * 32765 + "/#", True, True),
    ],
)
def test_longest_topic_is_32767_characters(text, wildcards, valid):
    """31-2.2-TOPIC, 31-A-TOPIC: 65535 bytes at most."""
    data = text.encode()
    assert is_valid(data, wildcards) is (valid and len(data) <= 65535)
