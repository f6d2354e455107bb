"""The examples of Appendix A, word by word, and a few of the traps beside them."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import publish
from umqtt31 import MQTTError

LEVELS = (3,)  # at all levels the same

# Filter: topics that match it.
MATCHES = {
    "finance/stock/ibm/#": (
        "finance/stock/ibm", "finance/stock/ibm/closingprice", "finance/stock/ibm/currentprice/now"
    ),
    "#": ("a", "a/b/c", "/"), "finance/stock/+": ("finance/stock/ibm", "finance/stock/"),
    "finance/+/ibm": ("finance/stock/ibm",), "+": ("finance",), "+/+": ("/finance",),
    "/+": ("/finance",), "+/tennis/#": ("sport/tennis",), "a b/ /c": ("a b/ /c",),
    "+/+/+": ("//",),
}  # fmt: skip
NO_MATCHES = {
    "finance/+": ("finance",), "+": ("/finance",), "ACCOUNTS": ("Accounts",), "a": ("a/b",),
    "finance/stock/+": ("finance/stock/ibm/closingprice",), "finance": ("/finance",),
    "finance/#": ("financex", "financ"), "a/b": ("a",), "a/+": ("b/a",), "a/b/#": ("a",),
    "a/": ("a",),
}  # fmt: skip


def matches(pattern, name):
    """Does a message with this topic match the filter?"""
    d = Dialogue()
    found = []
    d.client.on_message = lambda message: found.append(message.matches(pattern))
    d.b2c(publish(name, b""))
    return found == [True]


def is_name(topic):
    """Would publish() take it?"""
    error = error_of(Dialogue(is_connected=False).client.publish, topic, b"")
    assert isinstance(error, (ValueError, MQTTError)), error
    return isinstance(error, MQTTError)


def is_filter(topic):
    """Would subscribe() take it?"""
    error = error_of(Dialogue(is_connected=False).client.subscribe, topic)
    assert isinstance(error, (ValueError, MQTTError)), error
    return isinstance(error, MQTTError)


def test_filters_match_as_appendix_a_says():
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC."""
    for table in (MATCHES, NO_MATCHES):
        for pattern, names in table.items():
            assert is_filter(pattern.encode())
            for name in names:
                assert is_name(name.encode())
                found = matches(pattern.encode(), name.encode())
                assert found == (table is MATCHES), (pattern, name)


# 311-4.7.1-2, 311-4.7.1-3, MQTT-4.7.1-1, MQTT-4.7.1-2.
def test_wildcards_in_the_wrong_place_are_refused():
    """31-A-HASH, 31-A-PLUS, 31-3.3-WILD."""
    for bad in (b"a#", b"a/#/b", b"#a", b"##", b"/#/", b"a+", b"+a", b"a/+b", b"++", b"a/b+/c"):
        assert not is_filter(bad), bad
    for good in (b"#", b"+", b"a/#", b"/#", b"+/#", b"+/+", b"/+/", b"a/+/b"):
        assert is_filter(good) and not is_name(good), good


# 311-1.5.3-1, 311-1.5.3-2, 311-4.7.3-1, 311-4.7.3-2, MQTT-4.7.3-2.
def test_topics_are_utf8_without_nul():
    """31-A-TOPIC, 31-2.2-TOPIC."""
    for bad in (b"", b"\x00", b"a\x00", b"\x80", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xf5aa"):
        assert not is_name(bad) and not is_filter(bad), bad
    for good in ("a", "é", "€", "𝄞", "a b", "\x01", "/", "//", "a/"):
        assert is_name(good.encode()) and is_filter(good.encode()), good
