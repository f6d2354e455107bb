"""Simulates client, network, broker, flash and time with faults at any place.

The real device library runs in one process with everything around it under control;
README.md says how to test your own program with it.
"""

from host_tests import library  # makes umqtt31 importable

from .faults import parse
from .rules import Violation
from .world import World

__all__ = ["Violation", "World", "parse"]
