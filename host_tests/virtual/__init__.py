"""A board without hardware: real MicroPython behind a pseudo terminal.

`repl` runs inside MicroPython and speaks the REPL of a board; `board` is the
computer's side: it owns the terminal, and plays power switch and USB plug.
"""

from .board import VirtualBoard

__all__ = ["VirtualBoard"]
