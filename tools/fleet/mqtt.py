"""What the pipeline takes from the device library: packet constants and topic matching.

The library is found beside `tools`, or (as on a cluster) where Python finds it.
"""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("umqtt31") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from umqtt31 import packettypes as packet
from umqtt31 import topic

__all__ = ["is_filter", "matches", "packet", "topic"]


def is_filter(text):
    """Is the text a filter of topics?"""
    try:
        topic.check(text.encode("utf-8", "surrogateescape"), True)
    except ValueError:
        return False
    return True


def matches(pattern, name):
    """Does the filter match the topic name?  Both are text."""
    if name.startswith("$") and pattern[:1] in ("+", "#"):
        return False  # topics of the broker itself are only seen when asked for
    return topic.matches(pattern.encode(), name.encode())
