"""Gives dialogues that are written as scripts their players.

`dialogues/README.md` describes the notation.  Runs under CPython and MicroPython.
"""

from host_tests.client import dialogue
from host_tests.client.dialogue import levels_of, speak
from host_tests.client.player import Player
from host_tests.client.reading import Text, read


class Script(Text):
    """`levels` that it is for, and is it played with the heap locked, too?"""

    def __init__(self, title):
        super().__init__(title)
        self.levels = tuple(int(one) for one in self.words if one.isdigit()) or (3, 4, 5)
        self.is_locked = "locked" in self.words

    def play(self, level):
        """Play it at this level."""
        speak(level)
        text = "\n".join([line for _, line in self.lines])
        drops = "dropped " in text.replace("stats.dropped", "")
        for make in self._players("with aio" in text):
            self.play_with(lambda make=make: make(level, drops, drops or "max_age=" in text))

    def _players(self, is_aio):
        if is_aio:
            from host_tests.client.aio_player import AioPlayer

            return [AioPlayer]
        if self.is_locked:
            from host_tests.client.locked.player import LockedPlayer

            return [Player, LockedPlayer]
        return [Player]


def read_scripts(path):
    """-> the scripts of a file."""
    return read(path, Script)


def tests_of(what):
    """-> (name, levels, test) of each function in the module of this name, or of each script in
    the file with this path."""
    if what.endswith(".txt"):
        return [
            (one.name, one.levels, lambda one=one: one.play(dialogue.default_level))
            for one in read_scripts(what)
        ]
    module = __import__(what, None, None, ("*",))
    names = [name for name in dir(module) if name.startswith("test_")]
    return [(name, levels_of(module, name), getattr(module, name)) for name in names]
