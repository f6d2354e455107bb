"""Text of others: none of it does anything to a terminal but show."""

import sys
import unicodedata

from tools.terminal import printable

# Controls, formats (bidirectional overrides among them), surrogates, private and unassigned
# ones; separators of lines, paragraphs and words.
CLASSES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


def test_printable_leaves_all_that_is_to_be_seen_and_nothing_of_any_control_class():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    classes = list(map(unicodedata.category, everything))
    assert set(classes) > CLASSES
    shown = (
        one if one == " " or kind not in CLASSES else "\ufffd"
        for one, kind in zip(everything, classes)
    )
    assert printable(everything) == "".join(shown)


def test_printable_hides_what_is_known_to_do_harm():
    hostile = "\x00\x1b\x7f\x9b\u202e\u2066\u2028\ufeff\U000e0001\ud800"
    assert printable(hostile) == "\ufffd" * len(hostile)
