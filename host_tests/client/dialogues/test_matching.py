"""The examples of Appendix A, word by word, and a few of the traps beside them."""

from host_tests.client.dialogue import error_of
from umqtt31 import topic

MATCHES = [
    (b"finance/stock/ibm/#", b"finance/stock/ibm"),
    (b"finance/stock/ibm/#", b"finance/stock/ibm/closingprice"),
    (b"finance/stock/ibm/#", b"finance/stock/ibm/currentprice/now"),
    (b"#", b"a"),
    (b"#", b"a/b/c"),
    (b"#", b"/"),
    (b"finance/stock/+", b"finance/stock/ibm"),
    (b"finance/stock/+", b"finance/stock/"),
    (b"finance/+/ibm", b"finance/stock/ibm"),
    (b"+", b"finance"),
    (b"+/+", b"/finance"),
    (b"/+", b"/finance"),
    (b"+/tennis/#", b"sport/tennis"),
    (b"a b/ /c", b"a b/ /c"),
    (b"+/+/+", b"//"),
]

NO_MATCHES = [
    (b"finance/+", b"finance"),
    (b"+", b"/finance"),
    (b"finance/stock/+", b"finance/stock/ibm/closingprice"),
    (b"ACCOUNTS", b"Accounts"),
    (b"finance", b"/finance"),
    (b"finance/#", b"financex"),
    (b"finance/#", b"financ"),
    (b"a/b", b"a"),
    (b"a", b"a/b"),
    (b"a/+", b"b/a"),
    (b"a/b/#", b"a"),
    (b"a/", b"a"),
]


def test_filters_match_as_appendix_a_says():
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC."""
    for pattern, name in MATCHES:
        assert topic.matches(pattern, name) is True, (pattern, name)
    for pattern, name in NO_MATCHES:
        assert topic.matches(pattern, name) is False, (pattern, name)
    for pattern, name in MATCHES + NO_MATCHES:
        topic.check(pattern, True)
        topic.check(name)


# 311-4.7.1-2, 311-4.7.1-3, MQTT-4.7.1-1, MQTT-4.7.1-2.
def test_wildcards_in_the_wrong_place_are_refused():
    """31-A-HASH, 31-A-PLUS, 31-3.3-WILD."""
    for bad in (b"a#", b"a/#/b", b"#a", b"##", b"/#/", b"a+", b"+a", b"a/+b", b"++", b"a/b+/c"):
        assert isinstance(error_of(topic.check, bad, True), ValueError), bad
    for good in (b"#", b"+", b"a/#", b"/#", b"+/#", b"+/+", b"/+/", b"a/+/b"):
        topic.check(good, True)
        assert isinstance(error_of(topic.check, good), ValueError), good


# 311-1.5.3-1, 311-1.5.3-2, 311-4.7.3-1, 311-4.7.3-2, MQTT-4.7.3-2.
def test_topics_are_utf8_without_nul():
    """31-A-TOPIC, 31-2.2-TOPIC."""
    for bad in (b"", b"\x00", b"a\x00", b"\x80", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xf5aa"):
        assert isinstance(error_of(topic.check, bad), ValueError), bad
    for good in ("a", "é", "€", "𝄞", "a b", "\x01", "/", "//", "a/"):
        topic.check(good.encode())
