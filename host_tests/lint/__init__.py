"""Checks of the source: style, spelling, types, and that boards can compile and run it."""
