"""Text of others: none of it does anything to a terminal but show."""

import sys
import unicodedata

from tools.terminal import printable

# Controls, formats (bidirectional overrides among them), surrogates, private and unassigned
# ones; separators of lines, paragraphs and words.
CLASSES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
ALL = [chr(code) for code in range(sys.maxunicode + 1)]
HOSTILE = {one for one in ALL if unicodedata.category(one) in CLASSES and one != " "}


def test_printable_leaves_nothing_of_any_control_class():
    assert {unicodedata.category(one) for one in HOSTILE} == CLASSES
    assert set("\x00\x1b\x7f\x9b\u202e\u2066\u2028\ufeff\U000e0001\ud800") < HOSTILE
    assert set(printable("".join(HOSTILE))) == {"\ufffd"}


def test_printable_leaves_all_that_is_to_be_seen():
    seen = "".join(one for one in ALL if one not in HOSTILE)
    assert printable(seen) == seen
