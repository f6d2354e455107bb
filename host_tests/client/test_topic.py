"""Topic names and filters against a reference written the obvious way.  App. A."""

from hypothesis import example, given
from hypothesis import strategies as st

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import publish
from umqtt31 import MQTTError

levels = st.sampled_from(["", "a", "b", "A", "aa", "é", " ", "$x"])
names = st.lists(levels, min_size=1, max_size=4).map("/".join)
patterns = st.builds(
    lambda parts, end: "/".join([*parts, *end]),
    st.lists(levels | st.just("+"), min_size=0, max_size=4),
    st.sampled_from([[], ["#"], ["a"], ["+"]]),
)


def matches(pattern, name):
    """Does a message with this topic match the filter?"""
    d = Dialogue()
    found = []
    d.client.on_message = lambda message: found.append(message.matches(pattern))
    d.b2c(publish(name, b""))
    return found == [True]


def is_valid(data, wildcards):
    """Would subscribe() take it, or publish()?"""
    client = Dialogue(is_connected=False).client
    error = error_of(client.subscribe, data) if wildcards else error_of(client.publish, data, b"")
    assert isinstance(error, (ValueError, MQTTError)), error
    return isinstance(error, MQTTError)


def reference(pattern, name):
    """Level by level, as Appendix A says it, and MQTT 5 §4.7.2: names that begin with $ are the
    broker's own, and no filter that begins with a wildcard takes them."""
    wanted, there = pattern.split("/"), name.split("/")
    if wanted[0] in ("#", "+") and name.startswith("$"):
        return False
    if wanted[-1] == "#":
        # What stands before it is matched too: the parent level.
        there = there[: len(wanted) - 1]
        wanted.pop()
    return len(wanted) == len(there) and all(
        level in ("+", other) for level, other in zip(wanted, there, strict=True)
    )


@given(patterns, names)
@example("finance/+", "finance")
@example("sport/#", "sport")
@example("#", "/")
@example("+/#", "a")
@example("#", "$SYS/uptime")
@example("+/uptime", "$SYS/uptime")
@example("$SYS/#", "$SYS/uptime")
def test_matching_is_as_the_reference_says(pattern, name):
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC."""
    expected = reference(pattern, name)
    if name:  # else no PUBLISH has it
        assert matches(pattern.encode(), name.encode()) is expected


def is_filter(text):
    parts = text.split("/")
    for i, part in enumerate(parts):
        if "#" in part and (part != "#" or i != len(parts) - 1):
            return False
        if "+" in part and part != "+":
            return False
    return True


@given(st.text(alphabet="ab/#+é \0", max_size=8) | st.text(max_size=20))
def test_validity_of_names_and_filters_is_as_the_reference_says(text):
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC, 31-3.3-WILD, 31-2.2-TOPIC."""
    data = text.encode()
    sound = bool(text) and "\0" not in text
    assert is_valid(data, False) is (sound and "#" not in text and "+" not in text)
    assert is_valid(data, True) is (sound and is_filter(text))


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return bool(data)


@given(st.binary(min_size=1, max_size=12) | st.text(max_size=6).map(str.encode))
def test_only_bytes_in_the_form_of_utf8_are_taken(data):
    """31-2.2-TOPIC."""
    plain = data.replace(b"#", b"h").replace(b"+", b"p").replace(b"\0", b"n")
    assert is_valid(plain, False) is is_utf8(plain)


def test_every_pair_of_a_lead_byte_and_the_next_is_taken_only_as_utf8():
    """31-2.2-TOPIC: no overlong form, no surrogate, nothing above U+10FFFF."""
    for lead in range(0x80, 0x100):
        followers = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        for second in range(0x70, 0xD0):
            data = b"a" + bytes((lead, second)) + b"\x80" * (followers - 1) + b"/b"
            assert is_valid(data, False) is is_utf8(data), data
